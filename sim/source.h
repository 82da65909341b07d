// SPDX-License-Identifier: Apache-2.0
// Places in a DSP program, as findings and traces print them.
#pragma once

#include <source_location>
#include <string>
#include <string_view>

namespace mtsim::sim {

/// Folder and name, "gemm/gemm_large_m.cpp": enough to find a file, and the same wherever the project lies.
std::string short_path(std::string_view file);
/// "gemm/gemm_large_m.cpp:120"; "" when unknown.
std::string source_text(const std::source_location& place);

}  // namespace mtsim::sim
