// SPDX-License-Identifier: Apache-2.0
// The scalar microkernels of the ablation's baseline on the bare executor, against double arithmetic and libm. u is
// half a unit in the last place of FP32; the bounds count the roundings of each formula.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/library.h"
#include "reference.h"
#include "sim/core/executor.h"

namespace mtsim::kernels {
namespace {

constexpr double k_u = 0x1p-24;
constexpr double k_subnormal = 0x1p-149;
constexpr float k_infinity = std::numeric_limits<float>::infinity();
constexpr float k_nan = std::numeric_limits<float>::quiet_NaN();

/// One core with three arrays in SM.
struct ScalarCore {
  static constexpr std::uint64_t k_x = 256, k_a = 16640, k_y = 33024;
  std::vector<std::byte> sm = std::vector<std::byte>(65536, std::byte{0xEE});

  template <class T>
  void put(std::uint64_t at, const std::vector<T>& values) {
    std::memcpy(sm.data() + at, values.data(), values.size() * sizeof(T));
  }
  template <class T>
  std::vector<T> get(std::uint64_t at, std::size_t count) const {
    std::vector<T> values(count);
    std::memcpy(values.data(), sm.data() + at, count * sizeof(T));
    return values;
  }
  sim::RunResult run(const char* name, const std::string& entry, const std::vector<std::uint64_t>& arguments) {
    const isa::Program& kernel = program(name);
    const sim::DecodedProgram decoded(kernel, {});
    sim::Executor executor(sm, {});
    for (std::size_t i = 0; i < arguments.size(); ++i)
      executor.registers().r[kernel.parameters[i].reg.index] = arguments[i];
    const sim::RunResult result = executor.run(decoded, {.entry = entry});
    CHECK(result.status == sim::RunStatus::done);
    return result;
  }
};

std::uint64_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

struct Rows {
  std::uint64_t rows = 1, columns = 1, heads = 0;
  float value = 0, per_column = 0;
};

/// y of one entry of rows_naive.
std::vector<float> run_rows(const std::string& entry, const Rows& rows, const std::vector<float>& x,
                            const std::vector<float>& a) {
  ScalarCore core;
  core.put(ScalarCore::k_x, x);
  core.put(ScalarCore::k_a, a);
  core.run("rows_naive", entry,
           {ScalarCore::k_x, ScalarCore::k_a, ScalarCore::k_y, rows.rows, rows.columns, rows.heads, bits(rows.value),
            bits(rows.per_column), x.size() / rows.rows * 4});
  return core.get<float>(ScalarCore::k_y, x.size());
}

std::vector<float> spread(std::size_t count, float least, float most, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> value(least, most);
  std::vector<float> values(count);
  for (float& v : values) v = value(random);
  return values;
}

void check_near(float got, double expected, double bound) {
  CAPTURE(got, expected, bound);
  if (std::isnan(expected)) {
    CHECK(std::isnan(got));
  } else if (std::isinf(expected)) {
    CHECK(got == expected);
  } else {
    CHECK(std::fabs(got - expected) <= bound);
  }
}

}  // namespace

TEST_CASE("the naive gemm is a chain of fused multiply-adds and takes 19 cycles for each", "[naive]") {
  const std::int64_t rows = 3, columns = 5, depth = 17;
  const std::vector<float> x = random_matrix(rows, depth + 2, 1), w = random_matrix(depth, columns + 1, 2),
                           y = random_matrix(rows, columns + 3, 3);
  ScalarCore core;
  core.put(ScalarCore::k_x, x);
  core.put(ScalarCore::k_a, w);
  core.put(ScalarCore::k_y, y);
  const sim::RunResult result = core.run("gemm_naive", "",
                                         {ScalarCore::k_x, ScalarCore::k_a, ScalarCore::k_y, rows, columns, depth,
                                          4 * (depth + 2), 4 * (columns + 1), 4 * (columns + 3)});
  CHECK(result.cycles == ((19 * depth + 23) * columns + 13) * rows + 8);
  std::vector<float> expected = y;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      float& sum = expected[i * (columns + 3) + j];
      for (std::int64_t k = 0; k < depth; ++k) sum = std::fma(x[i * (depth + 2) + k], w[k * (columns + 1) + j], sum);
    }
  }
  CHECK(core.get<float>(ScalarCore::k_y, y.size()) == expected);
}

TEST_CASE("the naive add rounds once", "[naive]") {
  const std::vector<float> x = spread(60, -3, 3, 1), a = spread(60, -3, 3, 2);
  const std::vector<float> y = run_rows("add", {.rows = 4, .columns = 15}, x, a);
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(y[i] == x[i] + a[i]);
}

// exp(-|x|) to 4 u, 1 + e and its inverse to 4 u, three products.
TEST_CASE("the naive silu_mul holds for all magnitudes", "[naive]") {
  std::vector<float> x = spread(400, -20, 20, 3);
  for (const float edge :
       {0.0f, -0.0f, 1e-45f, -1e-38f, 87.0f, -87.0f, 88.8f, -88.8f, -103.9f, -105.0f, 3e38f, -3e38f, k_infinity, k_nan})
    x.push_back(edge);
  std::vector<float> a = spread(x.size(), -2, 2, 4);
  const std::vector<float> y = run_rows("silu_mul", {.rows = 1, .columns = x.size()}, x, a);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double e = std::exp(-std::fabs(double{x[i]}));
    const double expected = x[i] * ((x[i] < 0 ? e : 1) / (1 + e)) * a[i];
    // Where e is subnormal its rounding is absolute.
    const double absolute = (1 + std::fabs(std::isfinite(x[i]) ? x[i] : 0)) * 2 * k_subnormal;
    check_near(y[i], expected, 14 * k_u * std::fabs(expected) + absolute);
  }
}

// d = (x - max) scale is off by 2 u |d|, exp to 4 u, the sum by u a term, 1 / sum and the last product by 3 u.
TEST_CASE("the naive softmax agrees with libm, masks and NaN included", "[naive]") {
  const std::size_t columns = 37;
  std::vector<std::vector<float>> rows;
  for (unsigned seed = 0; seed < 6; ++seed) rows.push_back(spread(columns, -8, 8, seed));
  rows.push_back(spread(columns, -300, 300, 7));
  rows.push_back(spread(columns, -1.6e38f, 1.6e38f, 8));
  for (std::size_t j = 0; j < columns; j += 3) rows[0][j] = -k_infinity;
  rows[1].assign(columns, -k_infinity);
  rows[2][5] = k_nan;
  rows[3][36] = k_infinity;
  rows[4].assign(columns, 2.5f);
  const float scale = 0.125f;
  std::vector<float> x;
  for (const auto& row : rows) x.insert(x.end(), row.begin(), row.end());
  const std::vector<float> y = run_rows("softmax", {.rows = rows.size(), .columns = columns, .value = scale}, x, {});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    double most = -k_infinity, sum = 0;
    for (const float v : rows[i]) most = std::isnan(v) ? double{k_nan} : std::fmax(most, v);
    for (const float v : rows[i]) sum += std::exp((v - most) * scale);
    for (std::size_t j = 0; j < columns; ++j) {
      CAPTURE(i, j);
      const double d = (rows[i][j] - most) * scale;
      const bool empty = i == 1, bad = i == 2 || i == 3;
      const double expected = bad ? double{k_nan} : empty ? 0 : std::exp(d) / sum;
      const double slope = std::isfinite(d) ? std::fmin(std::fabs(d), 104) : 0;
      check_near(y[i * columns + j], expected, (13 + 2 * slope + columns) * k_u * expected + 2 * k_subnormal);
    }
  }
}

// The sum of squares by u a term, mean and eps by 2 u, of which the root halves all; 1 / root to 2 u, two products.
TEST_CASE("the naive rmsnorm agrees with libm from subnormal rows to rows that overflow", "[naive]") {
  const std::size_t columns = 61;
  std::vector<float> x, g = spread(columns, -2, 2, 9);
  const std::vector<float> magnitudes = {1, 1e-3f, 1e4f, 1e-20f, 1e18f, 1.6e38f};
  for (std::size_t i = 0; i < magnitudes.size(); ++i) {
    const auto row = spread(columns, -magnitudes[i], magnitudes[i], static_cast<unsigned>(i));
    x.insert(x.end(), row.begin(), row.end());
  }
  x[2 * columns + 7] = k_nan;
  const float eps = 1e-5f;
  const std::vector<float> y = run_rows(
      "rmsnorm",
      {.rows = magnitudes.size(), .columns = columns, .value = eps, .per_column = 1.0f / static_cast<float>(columns)},
      x, g);
  for (std::size_t i = 0; i < magnitudes.size(); ++i) {
    double squares = 0;
    for (std::size_t j = 0; j < columns; ++j) squares += double{x[i * columns + j]} * x[i * columns + j];
    const bool overflows = squares > double{std::numeric_limits<float>::max()};
    for (std::size_t j = 0; j < columns; ++j) {
      CAPTURE(i, j);
      const double expected = overflows ? 0 : x[i * columns + j] / std::sqrt(squares / columns + eps) * g[j];
      check_near(y[i * columns + j], expected, (columns / 2.0 + 7) * k_u * std::fabs(expected) + k_subnormal);
    }
  }
}

// Sine and cosine to 3 u, a product and a fused sum: 5 u of what is added.
TEST_CASE("the naive rope rotates pairs of either layout, at the first and at far positions", "[naive]") {
  const bool interleaved = GENERATE(true, false);
  const float position = GENERATE(0.0f, 1023.0f, 131000.0f);
  const std::size_t rows = 3, heads = 2, pairs = 32, d = 2 * pairs;
  std::vector<float> x = spread(rows * heads * d, -4, 4, 10), frequencies(pairs);
  for (std::size_t i = 0; i < pairs; ++i) {
    frequencies[i] = static_cast<float>(std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(d)));
  }
  const std::vector<float> y =
      run_rows(interleaved ? "rope_interleaved" : "rope_half",
               {.rows = rows, .columns = pairs, .heads = heads, .value = position}, x, frequencies);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t head = 0; head < heads; ++head) {
      for (std::size_t i = 0; i < pairs; ++i) {
        const std::size_t first = (row * heads + head) * d + (interleaved ? 2 * i : i);
        const std::size_t second = first + (interleaved ? 1 : pairs);
        const double angle = (position + static_cast<float>(row)) * frequencies[i];  // rounded to FP32 by definition
        const double s = std::sin(angle), c = std::cos(angle),
                     bound = 5 * k_u * (std::fabs(x[first]) + std::fabs(x[second]));
        CAPTURE(interleaved, position, row, head, i);
        check_near(y[first], x[first] * c - x[second] * s, bound);
        check_near(y[second], x[first] * s + x[second] * c, bound);
      }
    }
  }
}

TEST_CASE("FP16 storage is widened exactly and narrowed to nearest even, four elements at a time", "[naive]") {
  const std::vector<std::uint16_t> halves = {0x3C00, 0x8000, 0x0001, 0x7BFF, 0xFC00, 0x03FF, 0x3555, 0xC248};
  const std::vector<float> wide = {1.0f, -0.0f, 0x1p-24f, 65504.0f, -k_infinity, 0x3FFp-24f, 0x555p-12f, -3.140625f};
  ScalarCore core;
  core.put(ScalarCore::k_x, halves);
  core.run("rows_naive", "widen_f16", {ScalarCore::k_x, ScalarCore::k_a, ScalarCore::k_y, 2, 1, 0, 0, 0, 0});
  const std::vector<float> got = core.get<float>(ScalarCore::k_y, 8);
  CHECK(std::memcmp(got.data(), wide.data(), 32) == 0);

  std::vector<float> between = wide;
  between[0] = 1.0f + 0x1p-11f;        // a tie: to the even one below
  between[3] = 65520.0f;               // a tie with what would come next: infinity
  between[6] = 0x555p-12f + 0x1p-13f;  // a tie: to the even one above
  core.put(ScalarCore::k_x, between);
  core.run("rows_naive", "narrow_f16", {ScalarCore::k_x, ScalarCore::k_a, ScalarCore::k_y, 1, 2, 0, 0, 0, 0});
  const std::vector<std::uint16_t> expected = {0x3C00, 0x8000, 0x0001, 0x7C00, 0xFC00, 0x03FF, 0x3556, 0xC248};
  CHECK(core.get<std::uint16_t>(ScalarCore::k_y, 8) == expected);
}
}  // namespace mtsim::kernels
