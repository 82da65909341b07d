// SPDX-License-Identifier: Apache-2.0
// The programs of the ablation's baseline on the cluster: odd shapes, both types, every element once and nothing else.
// The microkernels' values are naive_kernel_test.cpp's business.
#include "kernels/naive/naive.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "bench_cluster.h"
#include "kernels/library.h"
#include "kernels/naive/attention_naive.h"
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
  expect_clean(cluster.launch(naive_gemm(cluster, plan, {in_x.data, {in_w.data}, out.data})));
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
  const NaiveGemmOperands operands{cluster.ddr_malloc(4 * shape.m * shape.k),
                                   {cluster.ddr_malloc(4 * shape.k * shape.n)},
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

TEST_CASE("the naive gemm works in place on columns of wider matrices, with W in parts", "[naive]") {
  const std::int64_t m = 27, n = 75, k = 70, x_pitch = 81, y_pitch = 90;
  const bool of_columns = GENERATE(true, false);
  const std::int64_t part = GENERATE(20, 64, 65, 75, 100);  // of the columns or the rows of W; 100: not full
  const DType w_dtype = GENERATE(DType::f32, DType::f16);
  const DType x_dtype = of_columns ? w_dtype : DType::f32, y_dtype = of_columns ? DType::f32 : w_dtype;
  const std::int64_t across = of_columns ? part : n + 3, along = of_columns ? k : part;
  const std::int64_t parts = ((of_columns ? n : k) + part - 1) / part;
  CAPTURE(of_columns, part, to_string(w_dtype));
  const std::vector<float> x = operand(m * x_pitch, 1, x_dtype);
  sim::Cluster& cluster = fresh(k_functional);
  const Area in_x(cluster, x, x_dtype);
  const std::vector<float> before(static_cast<std::size_t>(m * y_pitch), 7.0f);
  const Area out(cluster, before, y_dtype);
  std::vector<std::vector<float>> w;
  std::vector<Area> in_w;
  std::vector<sim::Pointer> w_data;
  for (std::int64_t i = 0; i < parts; ++i) {
    w.push_back(operand(along * across, static_cast<std::uint32_t>(10 + i), w_dtype));
    in_w.emplace_back(cluster, w.back(), w_dtype);
    w_data.push_back(in_w.back().data);
  }
  const NaiveGemmPlan plan = plan_naive_gemm({m, n, k},
                                             {.x = x_dtype,
                                              .w = w_dtype,
                                              .y = y_dtype,
                                              .x_pitch = x_pitch,
                                              .w_pitch = across,
                                              .y_pitch = y_pitch,
                                              .part_columns = of_columns ? part : 0,
                                              .part_rows = of_columns ? 0 : part},
                                             machine());
  REQUIRE(plan.parts() == parts);
  const std::int64_t x_at = 5, y_at = 11;  // columns
  expect_clean(cluster.launch(
      naive_gemm(cluster, plan, {in_x.data + x_at * bytes_of(x_dtype), w_data, out.data + y_at * bytes_of(y_dtype)})));
  std::vector<float> expected = before;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        const float element = of_columns ? w[j / part][l * across + j % part] : w[l / part][l % part * across + j];
        sum = fma_f32(x[i * x_pitch + x_at + l], element, sum);
      }
      expected[i * y_pitch + y_at + j] = sum;
    }
  }
  CHECK(out.read(cluster) == bytes_in(expected, y_dtype));
}

TEST_CASE("the naive gemm says what is wrong with a layout", "[naive]") {
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(plan_naive_gemm({2, 8, 9}, NaiveGemmLayout{.x_pitch = 8}, machine()),
                    Contains("X has a pitch of 8 elements and rows of 9"));
  CHECK_THROWS_WITH(plan_naive_gemm({2, 8, 9}, NaiveGemmLayout{.part_columns = 4, .part_rows = 4}, machine()),
                    Contains("not of both"));
  const NaiveGemmPlan plan = plan_naive_gemm({2, 8, 9}, NaiveGemmLayout{.part_rows = 4}, machine());
  CHECK_THROWS_WITH(naive_gemm(fresh(k_functional), plan, {{}, {{}}, {}}), Contains("W has 1 parts, the plan 3"));
}

TEST_CASE("the naive bias adds its row to each, in both types", "[naive]") {
  const DType dtype = GENERATE(DType::f32, DType::f16);
  const std::int64_t rows = 53, columns = 90;
  const std::vector<float> x = operand(rows * columns, 3, dtype), a = operand(columns, 4, dtype);
  sim::Cluster& cluster = fresh(k_functional);
  const Area in_x(cluster, x, dtype), in_a(cluster, a, dtype), out(cluster, rows * columns, dtype);
  const NaiveRowsPlan plan = plan_naive_rows(
      {.op = NaiveOp::bias, .rows = rows, .columns = columns, .dtype = dtype, .a_dtype = dtype}, machine());
  expect_clean(cluster.launch(naive_rows(cluster, plan, {in_x.data, in_a.data, out.data})));
  std::vector<float> expected(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) expected[i] = x[i] + a[i % columns];
  CHECK(out.read(cluster) == bytes_in(expected, dtype));
}

namespace {

/// Cycles of all launches, in order, when no values are computed.
std::vector<std::int64_t> naive_attention_cycles(const AttentionShape& shape, sim::Depth depth) {
  sim::Cluster& cluster = fresh({depth, true});
  const NaiveAttentionPlan plan = plan_naive_attention(shape, machine());
  const auto area = [&](std::int64_t elements, DType dtype) { return cluster.ddr_malloc(elements * bytes_of(dtype)); };
  const AttentionOperands operands{area(shape.q_elements(), shape.dtype),
                                   area(shape.kv_elements(), shape.dtype),
                                   area(shape.kv_elements(), shape.dtype),
                                   area(shape.q_elements(), shape.dtype),
                                   {}};
  std::vector<std::int64_t> cycles;
  for (const auto& program : naive_attention(cluster, plan, operands, area(shape.seq_q * shape.seq_k, DType::f32)))
    cycles.push_back(cluster.launch(program).cycles);
  return cycles;
}

}  // namespace

// With e the error of a score (d fused roundings of a sum of products) and of the exponent of a weight, scale * 2 e +
// 2 u |exponent|, a weight is off by no more than exp() of twice that and the bound of the softmax test; a weighted sum
// by one rounding a key more, and in FP16 by half a unit in its last place, 2^-11.
TEST_CASE("naive attention agrees with FP64: GQA, causal, blocks, both types", "[naive]") {
  const DType dtype = GENERATE(DType::f32, DType::f16);
  AttentionShape shape;
  shape.dtype = dtype;
  shape.head_dim = 18;
  shape.scale = 0.3f;
  SECTION("a prompt behind a context, in blocks") {
    shape.heads = 6;
    shape.kv_heads = 2;
    shape.seq_q = 29;
    shape.seq_k = 71;
    shape.causal = true;
    shape.kv_block = GENERATE(16, 32, 128);
  }
  SECTION("one token, one block") {
    shape.heads = 2;
    shape.kv_heads = 1;
    shape.seq_q = 1;
    shape.seq_k = 83;
    shape.causal = true;
  }
  SECTION("all keys seen by all") {
    shape.heads = shape.kv_heads = 2;
    shape.seq_q = 30;
    shape.seq_k = 17;
  }
  const std::int64_t d = shape.head_dim, width = shape.heads * d, block = shape.block();
  const std::vector<float> q = operand(shape.q_elements(), 1, dtype),
                           k = operand(shape.seq_k * shape.kv_heads * d, 2, dtype),
                           v = operand(shape.seq_k * shape.kv_heads * d, 3, dtype);
  const auto key = [&](const std::vector<float>& of, std::int64_t position, std::int64_t head, std::int64_t element) {
    return of[static_cast<std::size_t>((position * shape.kv_heads + head) * d + element)];
  };
  sim::Cluster& cluster = fresh(k_functional);
  const Area in_q(cluster, q, dtype), out(cluster, shape.q_elements(), dtype);
  std::vector<Area> areas;
  AttentionBlocks blocks;
  for (std::int64_t b = 0; b < shape.blocks(); ++b) {
    std::vector<float> kt(static_cast<std::size_t>(shape.kv_heads * d * block), NAN),
        values = kt;  // behind the context
    for (std::int64_t h = 0; h < shape.kv_heads; ++h) {
      for (std::int64_t i = 0; i < std::min(block, shape.seq_k - b * block); ++i) {
        for (std::int64_t e = 0; e < d; ++e) {
          kt[static_cast<std::size_t>((h * d + e) * block + i)] = key(k, b * block + i, h, e);
          values[static_cast<std::size_t>((h * block + i) * d + e)] = key(v, b * block + i, h, e);
        }
      }
    }
    blocks.v.push_back(areas.emplace_back(cluster, values, dtype).data);
    blocks.kt.push_back(areas.emplace_back(cluster, kt, dtype).data);
  }
  const Area mask(cluster, causal_mask(shape), DType::f32);
  const NaiveAttentionPlan plan = plan_naive_attention(shape, machine());
  const auto programs = naive_attention(cluster, plan, {in_q.data, {}, {}, out.data, blocks}, mask.data);
  CHECK(std::ssize(programs) == shape.heads * (shape.causal && shape.seq_q > 1 ? 4 : 3));
  std::vector<std::int64_t> cycles;
  for (const auto& program : programs) {
    const sim::LaunchResult result = cluster.launch(program);
    expect_clean(result);
    cycles.push_back(result.cycles);
  }
  const std::vector<std::byte> bytes = out.read(cluster);
  const double u = 0x1p-24;
  double worst = 0;
  for (std::int64_t i = 0; i < shape.seq_q; ++i) {
    const std::int64_t seen = shape.causal ? shape.seq_k - shape.seq_q + i + 1 : shape.seq_k;
    for (std::int64_t h = 0; h < shape.heads; ++h) {
      const std::int64_t kv = h / shape.group();
      std::vector<double> scores;
      double error = 0;
      for (std::int64_t j = 0; j < seen; ++j) {
        double sum = 0, size = 0;
        for (std::int64_t e = 0; e < d; ++e) {
          const double product = double{q[static_cast<std::size_t>(i * width + h * d + e)]} * key(k, j, kv, e);
          sum += product;
          size += std::fabs(product);
        }
        scores.push_back(sum);
        error = std::max(error, static_cast<double>(d) * u * size);
      }
      const auto [least, most] = std::minmax_element(scores.begin(), scores.end());
      const double range = (*most - *least) * shape.scale, exponent = 2 * error * shape.scale;
      double sum = 0;
      for (const double score : scores) sum += std::exp((score - *most) * shape.scale);
      const double columns = static_cast<double>(shape.seq_k);
      const double relative = std::expm1(2 * exponent) + (13 + 2 * range + 2 * columns) * u;
      for (std::int64_t e = 0; e < d; ++e) {
        double expected = 0, size = 0;
        for (std::int64_t j = 0; j < seen; ++j) {
          const double weighted =
              std::exp((scores[static_cast<std::size_t>(j)] - *most) * shape.scale) / sum * key(v, j, kv, e);
          expected += weighted;
          size += std::fabs(weighted);
        }
        const auto at = static_cast<std::size_t>(i * width + h * d + e);
        double got = 0;
        if (dtype == DType::f32) {
          float value;
          std::memcpy(&value, bytes.data() + 4 * at, 4);
          got = value;
        } else {
          std::uint16_t half;
          std::memcpy(&half, bytes.data() + 2 * at, 2);
          got = from_f16(half);
        }
        const double bound =
            relative * size + (dtype == DType::f32 ? 0 : 0x1p-11 * (std::fabs(expected) + relative * size) + 0x1p-25);
        worst = std::isnan(got) ? INFINITY : std::max(worst, std::fabs(got - expected) / bound);
      }
    }
  }
  CHECK(worst <= 1);
  CHECK(worst > 1e-3);  // the bound is one
  if (shape.kv_block == 0) CHECK(naive_attention_cycles(shape, sim::Depth::timing) == cycles);
}

TEST_CASE("naive attention says what it does not take", "[naive]") {
  using Catch::Matchers::Contains;
  AttentionShape shape;
  shape.heads = 6;
  shape.kv_heads = 4;
  shape.seq_q = 1;
  shape.seq_k = 20;
  shape.head_dim = 16;
  CHECK_THROWS_WITH(plan_naive_attention(shape, machine()), Contains("heads 6, kv_heads 4"));
  shape.kv_heads = 2;
  shape.kv_block = 8;
  const NaiveAttentionPlan plan = plan_naive_attention(shape, machine());
  CHECK_THROWS_WITH(naive_attention(fresh(k_functional), plan, {{}, {}, {}, {}, {{{}, {}}, {{}, {}}}}, {}),
                    Contains("2 blocks of the cache for 20 positions, 3 needed"));
}

TEST_CASE("a row that does not fit SM is refused with the bytes", "[naive]") {
  CHECK_THROWS_WITH(plan_naive_rows({.op = NaiveOp::softmax, .rows = 1, .columns = 20000}, machine()),
                    Catch::Matchers::Contains("softmax, naive needs 80128 bytes of SM, 65536 available"));
  CHECK_NOTHROW(plan_naive_rows({.op = NaiveOp::silu_mul, .rows = 1, .columns = 20000}, machine()));
  // The widest Llama, 70B.
  CHECK_NOTHROW(plan_naive_rows({.op = NaiveOp::rmsnorm, .rows = 1, .columns = 8192, .dtype = DType::f16}, machine()));
}
}  // namespace mtsim::kernels
