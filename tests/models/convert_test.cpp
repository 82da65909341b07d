// SPDX-License-Identifier: Apache-2.0
// Against slow definitions of the formats in FP64, which holds every value and every midpoint exactly.
#include "models/convert.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "models/sampler.h"
#include "tests/models/support.h"

using namespace mtsim::models;

namespace {

/// The number a pattern of `fraction_bits` stands for, by the definition of IEEE 754.
double defined_value(std::uint32_t pattern, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto exponent = static_cast<int>(pattern >> fraction_bits & ((1u << exponent_bits) - 1));
  const double fraction = pattern & ((1u << fraction_bits) - 1);
  const double sign = (pattern >> (exponent_bits + fraction_bits) & 1) != 0 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(fraction + std::ldexp(1.0, fraction_bits), exponent - bias - fraction_bits);
}

/// The pattern nearest to a value of 0 or more, the even one of two: by looking at all neighbours of a binary search.
std::uint32_t nearest(double value, int exponent_bits, int fraction_bits) {
  std::uint32_t low = 0, high = (1u << exponent_bits) - 1;
  high <<= fraction_bits;  // infinity, whose place is one step above the largest number
  const double infinity = std::ldexp(2.0, (1 << (exponent_bits - 1)) - 1);
  const auto at = [&](std::uint32_t pattern) {
    return pattern == high ? infinity : defined_value(pattern, exponent_bits, fraction_bits);
  };
  std::uint32_t last = high;
  while (last - low > 1) {
    const std::uint32_t middle = low + (last - low) / 2;
    (at(middle) <= value ? low : last) = middle;
  }
  if (value >= at(last)) return last;
  const double below = value - at(low), above = at(last) - value;
  if (below != above) return below < above ? low : last;
  return low % 2 == 0 ? low : last;
}

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

}  // namespace

TEST_CASE("every FP16 and BF16 pattern becomes the FP32 number it stands for", "[convert]") {
  for (std::uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
    const auto half = static_cast<std::uint16_t>(pattern);
    const float f16 = f16_to_f32(half), bf16 = bf16_to_f32(half);
    if ((pattern & 0x7C00) != 0x7C00) {
      const bool same = bits(f16) == bits(static_cast<float>(defined_value(pattern, 5, 10)));
      if (!same) FAIL("FP16 " << pattern);
    } else {
      const bool is_infinity = (pattern & 0x3FF) == 0;
      if (is_infinity ? !std::isinf(f16) || std::signbit(f16) != (pattern >> 15 != 0) : !std::isnan(f16))
        FAIL("FP16 " << pattern);
    }
    if ((pattern & 0x7F80) != 0x7F80) {
      if (bits(bf16) != bits(static_cast<float>(defined_value(pattern, 8, 7)))) FAIL("BF16 " << pattern);
    } else if ((pattern & 0x7F) == 0 ? !std::isinf(bf16) : !std::isnan(bf16)) {
      FAIL("BF16 " << pattern);
    }
    // And back: narrowing what was widened changes nothing but the kind of NaN.
    if (!std::isnan(f16) && f32_to_f16(f16) != half) FAIL("FP16 " << pattern);
    if (!std::isnan(bf16) && f32_to_bf16(bf16) != half) FAIL("BF16 " << pattern);
  }
}

TEST_CASE("FP32 rounds to the nearest FP16 and BF16, ties to even, subnormals and overflow included", "[convert]") {
  std::vector<float> values = {
      0.0F,     65504.0F,        65519.996F, 65520.0F,  65536.0F,        0x1p-24F,
      0x1p-25F, 0x1.000002p-25F, 0x1.8p-24F, 0x1p-149F, 0x1.ffdffep-15F, 0x1.ffep-15F,
      0x1p-14F, 0x1.002p0F,      0x1.006p0F, 0x1.01p0F, 0x1.03p0F,       std::numeric_limits<float>::max()};
  // Every FP16 number, the midpoint behind it and both neighbours of that.
  for (std::uint16_t pattern = 0; pattern < 0x7C00; ++pattern) {
    const float low = f16_to_f32(pattern),
                high = pattern == 0x7BFF ? 65536.0F : f16_to_f32(static_cast<std::uint16_t>(pattern + 1));
    const float middle = (low + high) / 2;
    values.insert(values.end(), {low, middle, std::nextafter(middle, 0.0F), std::nextafter(middle, 1e9F)});
  }
  RandomSequence random(1);
  for (int i = 0; i < 20000; ++i)
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random.next() & 0x7F7FFFFF)));
  for (const float value : values) {
    if (f32_to_f16(value) != nearest(value, 5, 10)) FAIL("FP16 of " << value);
    if (f32_to_f16(-value) != (nearest(value, 5, 10) | 0x8000)) FAIL("FP16 of " << -value);
    if (f32_to_bf16(value) != nearest(value, 8, 7)) FAIL("BF16 of " << value);
    if (f32_to_bf16(-value) != (nearest(value, 8, 7) | 0x8000)) FAIL("BF16 of " << -value);
  }
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(f32_to_f16(infinity) == 0x7C00);
  CHECK(f32_to_f16(-infinity) == 0xFC00);
  CHECK(f32_to_bf16(-infinity) == 0xFF80);
  CHECK(std::isnan(f16_to_f32(f32_to_f16(nan))));
  CHECK(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7F800001u)))));
}

TEST_CASE("Q8_0 is scale times byte, block by block", "[convert]") {
  std::string blocks;
  std::vector<float> expected;
  for (const auto& [scale, value] :
       {std::pair<std::uint16_t, double>{0x3555, defined_value(0x3555, 5, 10)}, {0x0001, 0x1p-24}, {0xC000, -2.0}}) {
    blocks += test::bytes_of(scale);
    for (int i = 0; i < 32; ++i) {
      const auto byte = static_cast<std::int8_t>(i * 8 - 128);
      blocks += test::bytes_of(byte);
      expected.push_back(static_cast<float>(value * byte));  // exact: 11 bits times 8
    }
  }
  std::vector<float> values(expected.size());
  convert(ElementType::q8_0, blocks.data(), static_cast<std::int64_t>(values.size()), values.data());
  CHECK(values == expected);
  std::vector<std::uint16_t> halves(expected.size());
  convert(ElementType::q8_0, blocks.data(), static_cast<std::int64_t>(halves.size()), halves.data());
  for (std::size_t i = 0; i < halves.size(); ++i) CHECK(halves[i] == f32_to_f16(expected[i]));
}
