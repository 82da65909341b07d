// SPDX-License-Identifier: Apache-2.0
// The microkernels built into the command: their .s files are embedded at build time and assembled on first use.
#pragma once

#include <cstdint>
#include <map>
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

/// Block sizes that some memory does not hold.
class CapacityError : public KernelError {
 public:
  /// Bytes a core (SM, AM) or the cluster (GSM) would need; 0 where that is not known.
  struct Needs {
    std::int64_t sm_bytes = 0, am_bytes = 0, gsm_bytes = 0;
  };
  CapacityError(const Needs& needs, const std::string& message) : KernelError(message), m_needs(needs) {}
  const Needs& needs() const { return m_needs; }

 private:
  Needs m_needs;
};

/// Parameters of a template: they win over the .equ of that name in its .s file.
using Defines = std::map<std::string, std::int64_t>;

/// "gemm_f32_6x128" -> its program, .linear regions scheduled for `pipeline`; assembled once per name, pipeline and
/// defines. Throws KernelError listing the known names, isa::IsaError when it cannot be scheduled. The reference stays
/// valid.
const isa::Program& program(std::string_view name, const isa::Pipeline& pipeline = {}, const Defines& defines = {});
std::string_view source(std::string_view name);
std::vector<std::string_view> names();
/// What microcode includes, by its path from the top: AssembleOptions::include. Throws isa::IsaError when there is
/// none.
std::string included_source(const std::string& path);

}  // namespace mtsim::kernels
