// SPDX-License-Identifier: Apache-2.0
// The microkernels of add, convert and silu_mul on their extremes: infinities, NaN, subnormals, ties, signs of zero.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "bare_core.h"
#include "reference.h"

namespace mtsim::kernels {
namespace {

constexpr float k_inf = std::numeric_limits<float>::infinity();
constexpr float k_nan = std::numeric_limits<float>::quiet_NaN();

const std::vector<float> k_extremes = {0.0f,     -0.0f,     1.0f,       -1.0f,     k_inf,           -k_inf,
                                       k_nan,    0x1p-149f, -0x1p-126f, 0x1p-127f, 0x1.FFFFFEp127f, -0x1.FFFFFEp127f,
                                       65504.0f, -65504.0f, 0x1p-24f,   0x1p-14f,  -0x1.8p-24f,     1.0f + 0x1p-10f,
                                       0x1p-11f};

/// Every pair of `values`, padded with zeros to whole blocks of 256 values.
void pairs(std::vector<float> values, std::vector<float>& left, std::vector<float>& right) {
  for (const float a : values) {
    for (const float b : values) {
      left.push_back(a);
      right.push_back(b);
    }
  }
  left.resize((left.size() + 255) / 256 * 256);
  right.resize(left.size());
}

constexpr std::int64_t k_second = 0x40000, k_third = 0x80000;  // places in AM

}  // namespace

TEST_CASE("add is IEEE addition with one rounding on every pair of extremes", "[add]") {
  std::vector<float> x, a;
  pairs(k_extremes, x, a);
  BareCore core;
  put(core.am, 0, x);
  put(core.am, k_second, a);
  REQUIRE(core.run("add", "add_f32", {0, k_second, 4 * x.size()}).status == sim::RunStatus::done);
  const auto y = get<float>(core.am, 0, x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    INFO(x[i] << " + " << a[i] << " gave " << y[i]);
    CHECK(same_bits(y[i], fma_f32(x[i], 1, a[i])));
  }
}

TEST_CASE("add in FP16 rounds the FP32 sum on every pair of extremes", "[add]") {
  std::vector<float> x, a;
  pairs(rounded(k_extremes, DType::f16), x, a);
  BareCore core;
  put(core.am, 0, bits_f16(x));
  put(core.am, k_second, bits_f16(a));
  REQUIRE(core.run("add", "add_f16", {0, k_second, 2 * x.size()}).status == sim::RunStatus::done);
  const auto y = values_f16(get<std::uint16_t>(core.am, 0, x.size()));
  for (std::size_t i = 0; i < x.size(); ++i) {
    INFO(x[i] << " + " << a[i] << " gave " << y[i]);
    CHECK(same_bits(y[i], fma_f16(x[i], 1, a[i])));
  }
}

TEST_CASE("convert gives every FP16 number its FP32 value", "[convert]") {
  std::vector<std::uint16_t> x(0x10000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint16_t>(i);
  BareCore core;
  put(core.am, 0, x);
  REQUIRE(core.run("convert", "f16_to_f32", {0, k_second, 4 * x.size()}).status == sim::RunStatus::done);
  const auto y = get<float>(core.am, k_second, x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto expected = static_cast<float>(from_f16(x[i]));
    if (!(same_bits(y[i], expected) || (std::isnan(expected) && std::isnan(y[i]))))
      FAIL_CHECK(fmt::format("code {:#06x} gave {}, not {}", x[i], y[i], expected));
  }
}

TEST_CASE("convert rounds to the nearest FP16 number, ties to even, at and around every tie", "[convert]") {
  std::vector<float> x;
  for (std::uint32_t code = 0; code < 0x7C00; ++code) {  // finite; the last tie is with infinity
    const double low = from_f16(static_cast<std::uint16_t>(code));
    const double high = code == 0x7BFF ? 65536 : from_f16(static_cast<std::uint16_t>(code + 1));
    const auto tie = static_cast<float>((low + high) / 2);
    for (const float value : {tie, std::nextafter(tie, k_inf), std::nextafter(tie, 0.0f)}) x.push_back(value);
  }
  for (std::size_t i = 0; i < x.size(); i += 2) x[i] = -x[i];
  x.insert(x.end(), k_extremes.begin(), k_extremes.end());
  x.resize((x.size() + 255) / 256 * 256);
  BareCore core;
  put(core.am, 0, x);
  REQUIRE(core.run("convert", "f32_to_f16", {0, k_third, 4 * x.size()}).status == sim::RunStatus::done);
  const auto y = get<std::uint16_t>(core.am, k_third, x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (y[i] != to_f16(x[i])) FAIL_CHECK(fmt::format("{} gave {:#06x}, not {:#06x}", x[i], y[i], to_f16(x[i])));
  }
}

// In units of 2^-24, relative: e^-|g| is within 0.9 ULP (2), adding 1 keeps at most half of that and rounds (2), the
// reciprocal is within 0.51 ULP (1.02), three products round (3): 8.02, and less than 1 of second order. Below 2^-126
// e^-|g| is off by up to 2^-149 and a product by 2^-150, magnified by the factors behind it.
TEST_CASE("silu_mul is within 9 roundings of g / (1 + e^-g) * u over all of FP32", "[silu_mul]") {
  const float u = GENERATE(1.0f, -2.75f, 0x1p100f, 0x1p-120f);
  std::vector<float> gate;
  for (std::uint64_t bits = 0; bits < 0x1'0000'0000; bits += 0x1'3457)
    gate.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  for (int i = -1500; i <= 1500; ++i) gate.push_back(static_cast<float>(i) * 0.0731f);  // where e^-|g| is no 0 and no 1
  gate.insert(gate.end(), k_extremes.begin(), k_extremes.end());
  gate.resize((gate.size() + 127) / 128 * 128);
  BareCore core;
  put(core.am, 0, gate);
  put(core.am, k_second, std::vector<float>(gate.size(), u));
  REQUIRE(core.run("silu_mul", "", {0, k_second, 4 * gate.size()}).status == sim::RunStatus::done);
  const auto y = get<float>(core.am, 0, gate.size());
  long double worst = 0, at = 0;
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const long double g = gate[i];
    const long double exact = g / (1 + std::exp(-g)) * u;
    if (std::isnan(exact)) {
      if (!std::isnan(y[i])) FAIL_CHECK(fmt::format("g {} gave {}, not NaN", gate[i], y[i]));
      continue;
    }
    if (std::abs(exact) >= 0x1.FFFFFFp127L) {
      if (y[i] != std::copysign(k_inf, static_cast<float>(exact)))
        FAIL_CHECK(fmt::format("g {} gave {}", gate[i], y[i]));
      continue;
    }
    const long double error = std::abs(y[i] - exact);
    const long double bound =
        9 * 0x1p-24L * std::abs(exact) + 0x1p-149L * (std::abs(g * u) + std::abs(static_cast<long double>(u)) + 1);
    if (!(error <= bound))
      FAIL_CHECK(fmt::format("g {}: {} is {} from {}, at most {}", gate[i], y[i], error, exact, bound));
    const bool subnormal =
        std::abs(exact) < 0x1p-126L || std::abs(g) < 0x1p-124L || std::abs(g) > 87;  // on the way, too
    if (subnormal) continue;
    const long double ulp = error / std::ldexp(1.0L, std::ilogb(exact) - 23);
    if (ulp > worst) {
      worst = ulp;
      at = g;
    }
  }
  WARN(fmt::format("silu_mul, u = {}: at most {:.2f} ULP where nothing is subnormal, at g = {}", u,
                   static_cast<double>(worst), static_cast<double>(at)));
  CHECK(worst <= 9);
}

TEST_CASE("silu_mul in FP16 is the FP32 result rounded once, for every FP16 number", "[silu_mul]") {
  std::vector<std::uint16_t> gate(0x10000), up(0x10000);
  std::vector<float> wide_gate, wide_up;
  for (std::size_t i = 0; i < gate.size(); ++i) {
    gate[i] = static_cast<std::uint16_t>(i);
    up[i] = static_cast<std::uint16_t>(0x3C00 + i * 37 % 0x0800);  // 1 to 4
    wide_gate.push_back(static_cast<float>(from_f16(gate[i])));
    wide_up.push_back(static_cast<float>(from_f16(up[i])));
  }
  BareCore core;
  put(core.am, 0, gate);
  put(core.am, k_second, up);
  REQUIRE(core.run("silu_mul", "", {0, k_second, 2 * gate.size()}, {{"F16", 1}}).status == sim::RunStatus::done);
  const auto y = get<std::uint16_t>(core.am, 0, gate.size());
  BareCore wide;
  put(wide.am, 0, wide_gate);
  put(wide.am, k_second, wide_up);
  REQUIRE(wide.run("silu_mul", "", {0, k_second, 4 * gate.size()}).status == sim::RunStatus::done);
  const auto expected = get<float>(wide.am, 0, gate.size());
  for (std::size_t i = 0; i < gate.size(); ++i) {
    if (y[i] != to_f16(expected[i]))
      FAIL_CHECK(fmt::format("code {:#06x}: {:#06x}, not {:#06x}", gate[i], y[i], to_f16(expected[i])));
  }
}

}  // namespace mtsim::kernels
