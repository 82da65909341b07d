// SPDX-License-Identifier: Apache-2.0
// FP16 by its definition, independent of the bit tricks under test.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace mtsim::sim {

// significand * 2^exponent
inline double half_value(std::uint16_t h) {
  const int exponent = (h >> 10) & 31, fraction = h & 1023;
  const double sign = (h & 0x8000) ? -1 : 1;
  if (exponent == 31) return fraction ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

// Nearest FP16, ties to the even fraction, found by bisection over the ordered finite values.
inline std::uint16_t nearest_half(double x) {
  if (std::isnan(x)) return 0x7E00;
  const std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const double magnitude = std::fabs(x);
  if (magnitude >= 65520.0) return sign | 0x7C00;
  std::uint16_t low = 0, high = 0x7C00;  // half_value(low) <= magnitude
  while (high - low > 1) {
    const auto middle = static_cast<std::uint16_t>((low + high) / 2);
    (half_value(middle) <= magnitude ? low : high) = middle;
  }
  if (low == 0x7BFF) return sign | low;
  const double below = magnitude - half_value(low), above = half_value(low + 1) - magnitude;
  if (above < below || (above == below && (low & 1))) ++low;
  return sign | low;
}

}  // namespace mtsim::sim
