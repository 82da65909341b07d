// SPDX-License-Identifier: Apache-2.0
// The texts of kernels/*/*.s as the build embedded them (embed.cmake writes the definition); NAME.inc.s is no
// microkernel but what some include.
#pragma once

#include <span>
#include <string_view>

namespace mtsim::kernels {

struct EmbeddedSource {
  std::string_view name;  // "gemm_f32_6x128", "exp.inc"
  std::string_view path;  // "kernels/gemm/gemm_f32_6x128.s", for messages
  std::string_view text;
};

/// Sorted by path.
std::span<const EmbeddedSource> embedded_sources();

}  // namespace mtsim::kernels
