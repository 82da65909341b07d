// SPDX-License-Identifier: Apache-2.0
// The functions of kernels/math, executed by the microcode on dense sweeps, against libm in long double.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "isa/assembler.h"
#include "kernels/library.h"
#include "sim/core/executor.h"

namespace mtsim::kernels {
namespace {

/// y = f(x) on n vectors, `setup` in front of the loop and `apply` from VR a to VR b.
std::string program_text(const std::string& file, const std::string& setup, const std::string& apply) {
  return fmt::format(R"(
.include "{}"
.param x, R10, pointer am
.param y, R12, pointer am
.param n, R14, count
.linear
.independent
.reg AR, px, py
.reg R, count
.reg VR, a, b
  SMVAGA x, px
  SMVAGA y, py
  SMOV n, count
  {}
loop:
  VLDW *px, a
  {}
  VSTW b, *py
  SADDA 128, px, px
  SADDA 128, py, py
  SSUB 1, count, count
  [count] SBR loop
  SBR R63
.endlinear
)",
                     file, setup, apply);
}

class Function {
 public:
  Function(const std::string& file, const std::string& setup, const std::string& apply)
      : m_program(isa::assemble(program_text(file, setup, apply), "math_test.s", {.include = included_source}), {}) {}

  std::vector<float> operator()(const std::vector<float>& x) {
    const std::size_t bytes = 4 * x.size();
    std::memcpy(m_am.data(), x.data(), bytes);
    sim::Executor executor(m_sm, m_am);
    executor.registers().r[10] = 0;
    executor.registers().r[12] = bytes;
    executor.registers().r[14] = x.size() / 32;
    executor.registers().r[63] = sim::k_return_address;
    REQUIRE(executor.run(m_program).status == sim::RunStatus::done);
    std::vector<float> y(x.size());
    std::memcpy(y.data(), m_am.data() + bytes, bytes);
    return y;
  }

 private:
  std::vector<std::byte> m_sm = std::vector<std::byte>(65536), m_am = std::vector<std::byte>(786432);
  sim::DecodedProgram m_program;
};

struct Worst {
  double ulp = 0;  // units in the last place of the exact value
  float at = 0;
};

/// Every `step`-th FP32 number by its bits.
Worst sweep(Function& function, std::uint32_t first, std::uint32_t last, std::uint32_t step,
            const std::function<long double(long double)>& exact, long double factor = 1) {
  constexpr std::size_t k_at_once = 64 * 1024;
  Worst worst;
  std::vector<float> x(k_at_once);
  for (std::uint64_t bits = first; bits <= last;) {
    for (float& value : x) {
      value = std::bit_cast<float>(static_cast<std::uint32_t>(std::min<std::uint64_t>(bits, last)));
      bits += step;
    }
    const std::vector<float> y = function(x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const long double wanted = exact(x[i]);
      const long double unit = std::ldexp(1.0L, std::ilogb(wanted) - 23);
      const auto error = static_cast<double>(std::abs(y[i] * factor - wanted) / unit);
      if (!(error <= worst.ulp)) worst = {error, x[i]};
    }
  }
  return worst;
}

void expect_within(const Worst& worst, double ulp) {
  WARN(fmt::format("largest error {:.4f} ULP at {:a}, at most {} allowed", worst.ulp, worst.at, ulp));
  CHECK(worst.ulp <= ulp);
}

float apply_to(Function& function, float x) { return function(std::vector<float>(32, x)).front(); }

constexpr float k_infinity = std::numeric_limits<float>::infinity();
constexpr float k_nan = std::numeric_limits<float>::quiet_NaN();

}  // namespace

// The largest errors of these sweeps are 0.8556, 0.5016 and 1.0000 ULP.

TEST_CASE("exp of 0 down to -104 is off by 0.9 ULP at most, down to subnormal results", "[math]") {
  Function exp("kernels/math/exp.inc.s", "exp_constants", "exp_scaled a, b");
  expect_within(sweep(
                    exp, 0x80000000, 0xC2D00000, 331, [](long double x) { return std::exp(x); }, 0x1p-64L),
                0.9);
  CHECK(apply_to(exp, 0) == 0x1p64F);
}

TEST_CASE("exp with the plain constants is off by 0.9 ULP at most from 0 down to -87, and never subnormal", "[math]") {
  Function exp("kernels/math/exp.inc.s", "exp_constants_plain", "exp_scaled a, b");
  expect_within(sweep(exp, 0x80000000, 0xC2AE0000, 331, [](long double x) { return std::exp(x); }), 0.9);
  CHECK(apply_to(exp, 0) == 1);
  CHECK(apply_to(exp, -87) >= std::numeric_limits<float>::min());
}

TEST_CASE("1 / d is off by 0.51 ULP at most wherever it is a normal number", "[math]") {
  Function reciprocal("kernels/math/reciprocal.inc.s", "", "reciprocal a, b");
  const auto exact = [](long double d) { return 1 / d; };
  expect_within(sweep(reciprocal, 0x3F800000, 0x40000000, 5, exact), 0.51);    // 1 to 2
  expect_within(sweep(reciprocal, 0x00800000, 0x7E800000, 997, exact), 0.51);  // 2^-126 to 2^126
  expect_within(sweep(reciprocal, 0x80800000, 0xFE800000, 4999, exact), 0.51);
  CHECK(std::isnan(apply_to(reciprocal, k_nan)));
}

TEST_CASE("1 / sqrt(d) is off by 1.01 ULP at most for every positive number, and exact at 0 and infinity", "[math]") {
  Function rsqrt("kernels/math/reciprocal.inc.s", "", "rsqrt a, b");
  const auto exact = [](long double d) { return 1 / std::sqrt(d); };
  expect_within(sweep(rsqrt, 0x3F800000, 0x40800000, 7, exact), 1.01);    // 1 to 4
  expect_within(sweep(rsqrt, 0x00000001, 0x7F7FFFFF, 997, exact), 1.01);  // subnormal numbers included
  CHECK(apply_to(rsqrt, 0) == k_infinity);
  CHECK(apply_to(rsqrt, k_infinity) == 0);
  CHECK(std::isnan(apply_to(rsqrt, k_nan)));
  CHECK(std::isnan(apply_to(rsqrt, -1)));
}

}  // namespace mtsim::kernels
