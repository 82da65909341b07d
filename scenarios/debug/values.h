// SPDX-License-Identifier: Apache-2.0
// Bytes of registers and memory as numbers. Every number is the shortest text that reads back to the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mtsim::scenarios {

struct ValueType {
  enum class Kind : std::uint8_t { floating, hex, integer };
  std::string_view name;
  Kind kind = Kind::hex;
  std::size_t bytes = 8;
};

/// f16, f32, f64; hex and int (64 bits), hex8..hex32, int8..int32.
std::span<const ValueType> value_types();
const ValueType* find_value_type(std::string_view name);  // nullptr when there is none
const ValueType& value_type(std::string_view name);       // one there is

/// The number at the front of `bytes`, little-endian.
std::string number_text(std::span<const std::byte> bytes, const ValueType& type);

/// "32 x 1.5", or the first numbers and how many there are.
std::string summary(std::span<const std::byte> bytes, const ValueType& type);
/// "32 x 0 -> 32 x 1.5", or which of the numbers differ.
std::string change_summary(std::span<const std::byte> before, std::span<const std::byte> after, const ValueType& type);

/// Aligned lines of numbers; `heads[i]` in front of line i of `per_line` numbers.
std::string number_lines(std::span<const std::byte> bytes, const ValueType& type, std::size_t per_line,
                         const std::vector<std::string>& heads);

}  // namespace mtsim::scenarios
