// SPDX-License-Identifier: Apache-2.0
// Element types of operands in memory.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace mtsim::kernels {

enum class DType : std::uint8_t { f32, f16 };
inline constexpr std::array k_dtypes = {DType::f32, DType::f16};

constexpr std::int64_t bytes_of(DType dtype) { return dtype == DType::f32 ? 4 : 2; }
/// Elements in a lane of 64 bits.
constexpr int lanes_per_word(DType dtype) { return static_cast<int>(8 / bytes_of(dtype)); }
/// "f32", "f16".
constexpr std::string_view to_string(DType dtype) { return dtype == DType::f32 ? "f32" : "f16"; }
/// Nothing for a word that names no type.
constexpr std::optional<DType> parse_dtype(std::string_view word) {
  for (const DType dtype : k_dtypes) {
    if (word == to_string(dtype)) return dtype;
  }
  return std::nullopt;
}

}  // namespace mtsim::kernels
