// SPDX-License-Identifier: Apache-2.0
// Number formats in integer arithmetic: the same bits on every host. Rounding is to nearest, ties to even.
#pragma once

#include <bit>
#include <cstdint>

#include "models/tensor.h"

namespace mtsim::models {

// NaN stays NaN (made quiet), infinities stay, subnormals are kept.
inline float bf16_to_f32(std::uint16_t value) { return std::bit_cast<float>(std::uint32_t{value} << 16); }

inline float f16_to_f32(std::uint16_t value) {
  const std::uint32_t sign = std::uint32_t{value & 0x8000u} << 16;
  const std::uint32_t exponent = (value >> 10) & 0x1F;
  std::uint32_t fraction = value & 0x3FF;
  if (exponent == 0x1F)
    return std::bit_cast<float>(sign | 0x7F800000 | fraction << 13 | (fraction != 0 ? 0x400000u : 0u));
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  if (fraction == 0) return std::bit_cast<float>(sign);
  // A subnormal is a normal number in FP32: fraction * 2^-24.
  const auto shift = static_cast<std::uint32_t>(std::countl_zero(fraction)) - 21;
  fraction = (fraction << shift) & 0x3FF;
  return std::bit_cast<float>(sign | (113 - shift) << 23 | fraction << 13);
}

inline std::uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

inline std::uint16_t f32_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return static_cast<std::uint16_t>(sign | 0x7E00);
  if (magnitude >= 0x477FF000) return static_cast<std::uint16_t>(sign | 0x7C00);  // 65520 and above round to infinity
  if (magnitude >= 0x38800000) {                                                  // 2^-14 and above: normal
    const std::uint32_t rounded = magnitude + 0xFFF + (magnitude >> 13 & 1);
    return static_cast<std::uint16_t>(sign | (rounded - (112u << 23)) >> 13);
  }
  if (magnitude < 0x33000000) return static_cast<std::uint16_t>(sign);  // below half of 2^-24
  const std::uint32_t exponent = magnitude >> 23;                       // 102 to 112
  const std::uint32_t fraction = (magnitude & 0x7FFFFF) | 0x800000;
  const std::uint32_t shift = 126 - exponent;  // to units of 2^-24
  const std::uint32_t whole = fraction >> shift, rest = fraction & ((1u << shift) - 1), half = 1u << (shift - 1);
  return static_cast<std::uint16_t>(sign | (whole + (rest > half || (rest == half && (whole & 1) != 0) ? 1 : 0)));
}

// `count` elements from unaligned bytes; whole blocks of Q8_0.
void convert(ElementType from, const char* source, std::int64_t count, float* to);
void convert(ElementType from, const char* source, std::int64_t count, std::uint16_t* to_f16);

}  // namespace mtsim::models
