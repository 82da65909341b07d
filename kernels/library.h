// SPDX-License-Identifier: Apache-2.0
// The microkernels built into the command: their .s files are embedded at build time and assembled on first use.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "isa/program.h"

namespace mtsim::kernels {

/// An operator that cannot run as asked: what, the value (in bytes where memory is short), what to do.
class KernelError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// "gemm_f32_6x128" -> its program. Throws KernelError listing the known names.
const isa::Program& program(std::string_view name);
std::string_view source(std::string_view name);
std::vector<std::string_view> names();

}  // namespace mtsim::kernels
