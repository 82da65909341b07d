// SPDX-License-Identifier: Apache-2.0
// The programs of the ablation's baseline on the cluster: odd shapes, both types, every element once and nothing else.
// The microkernels' values are naive_kernel_test.cpp's business.
#include "kernels/naive/naive.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "bench_cluster.h"
#include "kernels/library.h"
#include "reference.h"

namespace mtsim::kernels {
namespace {

const sim::ClusterOptions k_functional{sim::Depth::functional, false};

std::vector<float> operand(std::int64_t count, std::uint32_t seed, DType dtype) {
  return rounded(random_matrix(1, count, seed), dtype);
}

std::vector<std::byte> bytes_in(const std::vector<float>& values, DType dtype) {
  std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(bytes_of(dtype)));
  if (dtype == DType::f32)
    std::memcpy(bytes.data(), values.data(), bytes.size());
  else
    std::memcpy(bytes.data(), bits_f16(values).data(), bytes.size());
  return bytes;
}

/// An operand in DDR between guards.
struct Area {
  static constexpr std::int64_t k_guard = 512;
  sim::Pointer data;
  std::int64_t count;
  DType dtype;

  Area(sim::Cluster& cluster, std::int64_t values, DType type) : count(values), dtype(type) {
    const std::int64_t bytes = values * bytes_of(dtype) + 2 * k_guard;
    const sim::Pointer whole = cluster.ddr_malloc(bytes);
    cluster.write(whole, std::vector<std::byte>(static_cast<std::size_t>(bytes), std::byte{0x5A}));
    data = whole + k_guard;
  }
  Area(sim::Cluster& cluster, const std::vector<float>& values, DType type)
      : Area(cluster, static_cast<std::int64_t>(values.size()), type) {
    cluster.write(data, bytes_in(values, type));
  }
  std::vector<std::byte> read(const sim::Cluster& cluster) const {
    const auto size = static_cast<std::size_t>(count * bytes_of(dtype));
    std::vector<std::byte> all(size + 2 * k_guard);
    cluster.read(data + -k_guard, all);
    for (std::size_t i = 0; i < k_guard; ++i) {
      CHECK(all[i] == std::byte{0x5A});
      CHECK(all[k_guard + size + i] == std::byte{0x5A});
    }
    return {all.begin() + k_guard, all.end() - k_guard};
  }
};

void expect_clean(const sim::LaunchResult& result) {
  for (const sim::Finding& finding : result.findings) FAIL_CHECK(finding.message);
  if (result.fault) FAIL_CHECK(result.fault->str());
}

}  // namespace

TEST_CASE("the naive gemm sums in FP32 from the first k to the last and rounds once", "[naive]") {
  const DType dtype = GENERATE(DType::f32, DType::f16);
  const GemmShape shape = GENERATE(GemmShape{1, 1, 1}, GemmShape{37, 67, 131}, GemmShape{5, 130, 63});
  const auto [m, n, k] = shape;
  const std::vector<float> x = operand(m * k, 1, dtype), w = operand(k * n, 2, dtype);
  sim::Cluster& cluster = fresh(k_functional);
  const Area in_x(cluster, x, dtype), in_w(cluster, w, dtype), out(cluster, m * n, dtype);
  const NaiveGemmPlan plan = plan_naive_gemm(shape, dtype, machine());
  expect_clean(cluster.launch(naive_gemm(cluster, plan, {in_x.data, in_w.data, out.data})));
  std::vector<float> expected(static_cast<std::size_t>(m * n), 0.0f);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t l = 0; l < k; ++l)
        expected[i * n + j] = fma_f32(x[i * k + l], w[l * n + j], expected[i * n + j]);
    }
  }
  CHECK(out.read(cluster) == bytes_in(expected, dtype));
}

TEST_CASE("the naive gemm takes 19 cycles a multiply-accumulate and little else", "[naive]") {
  sim::Cluster& cluster = fresh({sim::Depth::timing, true});
  const GemmShape shape{24 * 32, 64, 1024};  // a block for each core
  const GemmOperands operands{cluster.ddr_malloc(4 * shape.m * shape.k), cluster.ddr_malloc(4 * shape.k * shape.n),
                              cluster.ddr_malloc(4 * shape.m * shape.n)};
  const auto plan = plan_naive_gemm(shape, DType::f32, machine());
  const sim::LaunchResult result = cluster.launch(naive_gemm(cluster, plan, operands));
  const double per_mac = static_cast<double>(result.cycles) / (shape.macs() / 24);
  CHECK(per_mac > 19);
  CHECK(per_mac < 20.5);  // loops around the innermost one, transfers, launch
}

TEST_CASE("naive elementwise operators take every element once, in both types", "[naive]") {
  const DType dtype = GENERATE(DType::f32, DType::f16);
  const std::int64_t rows = GENERATE(1, 61), columns = GENERATE(1, 1031);
  const std::vector<float> x = operand(rows * columns, 3, dtype), a = operand(rows * columns, 4, dtype);
  sim::Cluster& cluster = fresh(k_functional);
  const Area in_x(cluster, x, dtype), in_a(cluster, a, dtype), out(cluster, rows * columns, dtype);
  const NaiveRowsPlan plan =
      plan_naive_rows({.op = NaiveOp::add, .rows = rows, .columns = columns, .dtype = dtype}, machine());
  expect_clean(cluster.launch(naive_rows(cluster, plan, {in_x.data, in_a.data, out.data})));
  std::vector<float> expected(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) expected[i] = x[i] + a[i];
  CHECK(out.read(cluster) == bytes_in(expected, dtype));
}

// The bounds of naive_kernel_test.cpp, and in FP16 half a unit in its last place, 2^-11, beside which they vanish.
TEST_CASE("naive row operators agree with libm in both types, Y over X", "[naive]") {
  const DType dtype = GENERATE(DType::f32, DType::f16);
  const NaiveOp op = GENERATE(NaiveOp::softmax, NaiveOp::rmsnorm, NaiveOp::rope_half);
  const std::int64_t rows = 29, columns = 90, heads = 3, pairs = columns / heads / 2;
  std::vector<float> x = operand(rows * columns, 5, dtype), a;
  if (op == NaiveOp::rmsnorm) a = operand(columns, 6, dtype);
  if (op == NaiveOp::rope_half) {
    for (std::int64_t i = 0; i < pairs; ++i)
      a.push_back(static_cast<float>(std::pow(10000.0, -static_cast<double>(i) / pairs)));
  }
  const DType a_dtype = op == NaiveOp::rmsnorm ? dtype : DType::f32;
  const float eps = 1e-5f, scale = 2.5f;
  const std::vector<std::int64_t> listed(rows, 77);
  const bool list = GENERATE(false, true);
  if (list && op != NaiveOp::rope_half) return;
  sim::Cluster& cluster = fresh(k_functional);
  const Area in_out(cluster, x, dtype), in_a(cluster, a, a_dtype);
  const NaiveRowsPlan plan = plan_naive_rows({.op = op,
                                              .rows = rows,
                                              .columns = columns,
                                              .dtype = dtype,
                                              .a_dtype = a_dtype,
                                              .value = op == NaiveOp::softmax ? scale : eps,
                                              .heads = op == NaiveOp::rope_half ? heads : 1,
                                              .position = 1000,
                                              .positions = list ? listed : std::vector<std::int64_t>{}},
                                             machine());
  expect_clean(cluster.launch(naive_rows(cluster, plan, {in_out.data, in_a.data, in_out.data})));
  const std::vector<std::byte> bytes = in_out.read(cluster);
  const double rounding = dtype == DType::f32 ? 0 : 0x1p-11;
  for (std::int64_t i = 0; i < rows; ++i) {
    const float* row = &x[static_cast<std::size_t>(i * columns)];
    double most = row[0], sum = 0, squares = 0;
    for (std::int64_t j = 0; j < columns; ++j) most = std::fmax(most, row[j]);
    for (std::int64_t j = 0; j < columns; ++j) {
      sum += std::exp((row[j] - most) * scale);
      squares += double{row[j]} * row[j];
    }
    for (std::int64_t j = 0; j < columns; ++j) {
      double expected = 0, bound = 0;
      if (op == NaiveOp::softmax) {
        expected = std::exp((row[j] - most) * scale) / sum;
        bound = (13 + 2 * std::fabs(row[j] - most) * scale + columns) * 0x1p-24 * expected;
      } else if (op == NaiveOp::rmsnorm) {
        expected = row[j] / std::sqrt(squares / columns + eps) * a[static_cast<std::size_t>(j)];
        bound = (columns / 2.0 + 7) * 0x1p-24 * std::fabs(expected);
      } else {
        const std::int64_t in_head = j % (2 * pairs), pair = in_head % pairs;
        const float other = row[in_head < pairs ? j + pairs : j - pairs];
        const float position = list ? 77.0f : 1000.0f + static_cast<float>(i);
        const double angle = position * a[static_cast<std::size_t>(pair)];  // rounded to FP32 by definition
        expected = row[j] * std::cos(angle) + (in_head < pairs ? -1 : 1) * other * std::sin(angle);
        bound = 5 * 0x1p-24 * (std::fabs(row[j]) + std::fabs(other));
      }
      double got;
      if (dtype == DType::f32) {
        float value;
        std::memcpy(&value, bytes.data() + 4 * (i * columns + j), 4);
        got = value;
      } else {
        std::uint16_t half;
        std::memcpy(&half, bytes.data() + 2 * (i * columns + j), 2);
        got = from_f16(half);
      }
      CAPTURE(i, j, got, expected);
      CHECK(std::fabs(got - expected) <= bound + rounding * std::fabs(expected) + (rounding > 0 ? 0x1p-25 : 0));
    }
  }
}

TEST_CASE("a row that does not fit SM is refused with the bytes", "[naive]") {
  CHECK_THROWS_WITH(plan_naive_rows({.op = NaiveOp::softmax, .rows = 1, .columns = 20000}, machine()),
                    Catch::Matchers::Contains("softmax, naive needs 80128 bytes of SM, 65536 available"));
  CHECK_NOTHROW(plan_naive_rows({.op = NaiveOp::silu_mul, .rows = 1, .columns = 20000}, machine()));
}
}  // namespace mtsim::kernels
