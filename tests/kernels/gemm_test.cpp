// SPDX-License-Identifier: Apache-2.0
// Whole GEMMs on the cluster, every byte moved and every packet executed.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "bench_cluster.h"
#include "gemm_cases.h"
#include "reference.h"

namespace mtsim::kernels {

TEST_CASE("a gemm of any shape agrees with OpenBLAS in FP64 and takes the same cycles in both depths", "[gemm]") {
  using enum GemmDataflow;
  using enum DType;
  using enum GemmWeights;
  const auto c = GENERATE(values<GemmCase>({
      {{1, 1, 1}},
      {{1, 1, 3}},
      {{1, 127, 250}},
      {{1, 129, 2050}},
      {{7, 1, 250}},
      {{7, 127, 3}},
      {{7, 129, 2050}},
      {{7, 127, 1}},
      {{719, 1, 3}},
      {{719, 127, 250}},
      {{719, 129, 1}},
      {{721, 1, 2050}},
      {{721, 127, 3}},
      {{721, 129, 250}},
      {{721, 1, 1}},
      {{719, 129, 2050}},
      // The other dataflow than the automatic choice, and the edges of its loops: several x-blocks, several column
      // blocks.
      {{7, 129, 250}, large_m},
      {{1, 127, 3}, large_m},
      {{1, 1, 1}, large_m},
      {{25, 1300, 515}, small_m},
      {{30, 3200, 70}, small_m, "k2=64"},
      {{6, 700, 2731}, small_m, "k2=32,n2=128"},
      {{200, 26000, 70}, small_m, "k2=4,n2=128"},
      // Several blocks of everything with short last ones; more k-steps a block than chunk channels; more rounds than
      // buffers.
      {{100, 600, 200}, large_m, "mg=48,kg=64,k2=16,n2=128"},
      {{150, 390, 301}, large_m, "mg=72,kg=96,k2=8,n2=128"},
      {{50, 200, 67}, large_m, "mg=24,kg=32,k2=32,n2=128"},
      {{720, 6700, 7}, large_m, "kg=4,k2=4,n2=128"},
      // FP16: k around the unit of 4 and the least of 8, rows of products cut to leave at least 8, one round, two
      // rounds that stay, three and more that leave as FP16 or FP32.
      {{1, 1, 1}, automatic, "", f16},
      {{7, 255, 5}, large_m, "", f16},
      {{1, 257, 2050}, automatic, "", f16},
      {{25, 700, 1030}, small_m, "k2=64,n2=256,k_promote=20", f16},
      {{40, 600, 515}, small_m, "", f16, GemmSums::f16},
      {{200, 26000, 5}, small_m, "k2=8,n2=256", f16},
      {{721, 257, 132}, large_m, "", f16},
      {{30, 1000, 141}, large_m, "mg=24,kg=64,k2=32,n2=512,k_promote=16", f16},
      {{30, 800, 141}, large_m, "mg=24,kg=48,k2=24,n2=256,k_promote=20", f16},
      {{30, 800, 141}, large_m, "mg=24,kg=48,k2=48,n2=256,k_promote=48", f16},
      {{30, 2000, 70}, large_m, "mg=24,kg=32,k2=8,n2=512", f16},
      {{30, 800, 141}, large_m, "mg=24,kg=64,k2=32,n2=256", f16, GemmSums::f32},
      {{30, 520, 141}, large_m, "mg=24,kg=96,k2=32,n2=256", f16, GemmSums::f32},
      {{30, 800, 141}, large_m, "mg=24,kg=64,k2=32,n2=256", f16, GemmSums::f16},
      // W as [n, k]: k around whole vectors, columns around 32 and 64, all of X or two blocks of it, several k-steps,
      // rounds and column blocks.
      {{1, 1, 1}, automatic, "", f32, {}, out_in},
      {{3, 33, 31}, automatic, "", f32, {}, out_in},
      {{5, 300, 1000}, automatic, "k2=64", f32, {}, out_in},
      {{40, 3200, 2050}, automatic, "n2=128", f32, {}, out_in},
      {{1, 1, 1}, automatic, "", f16, {}, out_in},
      {{3, 65, 65}, automatic, "", f16, {}, out_in},
      {{16, 1600, 1030}, automatic, "k2=256", f16, {}, out_in},
      {{97, 130, 2100}, automatic, "k2=1024", f16, {}, out_in},
      {{300, 13000, 40}, automatic, "k2=64", f16, {}, out_in},
  }));
  const auto variant = GENERATE(GemmVariant::best, GemmVariant::paper);
  INFO(text(c) << (variant == GemmVariant::paper ? ", paper" : ", best"));
  expect_right(plan(c, variant));
}

TEST_CASE("every element of a gemm is the chain of fused multiply-adds in order of k, whatever the dataflow and tiles",
          "[gemm]") {
  const GemmShape shape{29, 300, 131};
  const std::vector<float> x = random_matrix(shape.m, shape.k, 3), w = random_matrix(shape.k, shape.n, 4);
  std::vector<float> expected(static_cast<std::size_t>(shape.m * shape.n));
  for (std::int64_t i = 0; i < shape.m; ++i) {
    for (std::int64_t j = 0; j < shape.n; ++j) {
      float sum = 0;
      for (std::int64_t k = 0; k < shape.k; ++k) sum = fma_f32(x[i * shape.k + k], w[k * shape.n + j], sum);
      expected[i * shape.n + j] = sum;
    }
  }
  const auto c = GENERATE_REF(values<GemmCase>({{shape, GemmDataflow::large_m},
                                                {shape, GemmDataflow::large_m, "mg=24,kg=32,k2=8,n2=128"},
                                                {shape, GemmDataflow::small_m},
                                                {shape, GemmDataflow::small_m, "k2=12"}}));
  INFO(text(c));
  const GemmRun run = run_gemm(fresh(k_functional), plan(c, GemmVariant::best), x, w);
  CHECK(std::equal(run.y.begin(), run.y.end(), expected.begin(), same_bits));
}

TEST_CASE("every element of an FP16 gemm is its rows of products, promoted and rounded where the plan says", "[gemm]") {
  const GemmShape shape{29, 600, 131};
  const std::vector<float> x = rounded(random_matrix(shape.m, shape.k, 3), DType::f16),
                           w = rounded(random_matrix(shape.k, shape.n, 4), DType::f16);
  using enum GemmDataflow;
  using enum DType;
  const auto c = GENERATE_REF(values<GemmCase>({{shape, large_m, "", f16, GemmSums::f16},
                                                {shape, large_m, "mg=24,kg=32,k2=16,n2=256,k_promote=16", f16},
                                                {shape, large_m, "mg=24,kg=32,k2=16,n2=512,k_promote=16", f16},
                                                {shape, large_m, "kg=32,k2=32,n2=256,k_promote=20", f16, GemmSums::f32},
                                                {shape, small_m, "k_promote=40", f16}}));
  const GemmPlan the_plan = plan(c, GemmVariant::best);
  const GemmTiles& tiles = the_plan.tiles;
  INFO(text(c));
  const auto element = [&](std::int64_t i, std::int64_t j) {
    const auto products = [&](std::int64_t first, std::int64_t last, float sum) {
      for (std::int64_t k = first; k < last; ++k) sum = fma_f16(x[i * shape.k + k], w[k * shape.n + j], sum);
      return sum;
    };
    if (c.sums == GemmSums::f16) return products(0, shape.k, 0);
    float sum = 0, y = 0;  // FP32 in AM; FP16 in DDR
    for (std::int64_t step = 0; step < shape.k; step += tiles.k2) {
      const std::int64_t end = std::min(step + tiles.k2, shape.k), padded = (end + 3) / 4 * 4;
      for (std::int64_t k = step, part = 0; k < end; k += part) {
        part = std::min(tiles.k_promote, padded - k);
        if (padded - k - part == 4) part -= 4;  // the microkernel takes at least 8
        sum += products(k, std::min(k + part, end), 0);
      }
      const bool block_ends = end == shape.k || end % tiles.kg == 0;
      if (block_ends && the_plan.y_transfers > 0) {
        y = static_cast<float>(from_f16(to_f16(y + sum)));
        sum = 0;
      }
    }
    return the_plan.y_transfers > 0 ? y : static_cast<float>(from_f16(to_f16(sum)));
  };
  const GemmRun run = run_gemm(fresh(k_functional), the_plan, x, w);
  int wrong = 0;
  for (std::int64_t i = 0; i < shape.m; ++i) {
    for (std::int64_t j = 0; j < shape.n; ++j) wrong += run.y[i * shape.n + j] != element(i, j);
  }
  CHECK(wrong == 0);
}

TEST_CASE("the values of a gemm do not depend on how fast memory and cores meet", "[gemm]") {
  const auto c = GENERATE(
      values<GemmCase>({{{150, 390, 301}, GemmDataflow::large_m, "mg=72,kg=96,k2=8,n2=128"},
                        {{1500, 520, 90}, GemmDataflow::large_m, "kg=32,k2=16,n2=128"},
                        {{25, 1300, 515}, GemmDataflow::small_m},
                        {{30, 800, 141}, GemmDataflow::large_m, "mg=24,kg=48,k2=24,n2=256,k_promote=20", DType::f16}}));
  const auto sets = GENERATE(
      values<std::vector<std::string>>({{"ddr.bandwidth_gb_s=1"},
                                        {"ddr.bandwidth_gb_s=2000", "dma.broadcast_rendezvous_us=0", "dma.start_us=0"},
                                        {"cluster.gsm_bandwidth_gb_s=5"},
                                        {"dma.broadcast_rendezvous_us=60"},
                                        {"cluster.port_bandwidth_gb_s=0.5"}}));
  const auto variant = GENERATE(GemmVariant::best, GemmVariant::paper);
  const auto [m, n, k] = c.shape;
  INFO(text(c) << (variant == GemmVariant::paper ? ", paper, " : ", best, ") << sets[0]);
  const std::vector<float> x = random_matrix(m, k, 5), w = random_matrix(k, n, 6);
  const std::vector<float> expected = run_gemm(fresh(k_functional), plan(c, variant), x, w).y;

  const sim::MachineConfig other = machine(sets);
  const GemmRun run = run_gemm(fresh(k_functional, other), plan(c, variant, other), x, w);
  expect_clean(run.result);
  CHECK(std::equal(run.y.begin(), run.y.end(), expected.begin(), same_bits));
}

TEST_CASE("an infinity in X or W gives infinities and no NaN where k is padded", "[gemm]") {
  const auto dataflow = GENERATE(GemmDataflow::large_m, GemmDataflow::small_m);
  const DType dtype = GENERATE(DType::f32, DType::f16);
  const GemmShape shape{8, 130, GENERATE(1, 3, 5)};
  constexpr float k_infinity = std::numeric_limits<float>::infinity();
  std::vector<float> x(static_cast<std::size_t>(shape.m * shape.k), 1.0f),
      w(static_cast<std::size_t>(shape.k * shape.n), 2.0f);
  x[2 * shape.k + shape.k - 1] = k_infinity;  // row 2
  w[129] = -k_infinity;                       // column 129
  w[128] = 0.0f;                              // meets the infinity if k = 1
  const GemmRun run = run_gemm(fresh(k_functional), plan({shape, dataflow, "", dtype}, GemmVariant::best), x, w);
  CHECK(run.y[0] == 2.0f * static_cast<float>(shape.k));
  CHECK(run.y[2 * shape.n + 5] == k_infinity);
  CHECK(run.y[3 * shape.n + 129] == -k_infinity);
  if (shape.k == 1) {
    CHECK(run.y[2 * shape.n + 129] == -k_infinity);  // inf * -inf
    CHECK(std::isnan(run.y[2 * shape.n + 128]));     // inf * 0
  } else {
    CHECK(std::isnan(run.y[2 * shape.n + 129]));  // inf - inf
  }
}

TEST_CASE("subnormal results of an FP16 gemm are kept and too large ones are infinite", "[gemm]") {
  const auto sums = GENERATE(GemmSums::promoted, GemmSums::f16);
  const GemmShape shape{6, 256, 8};
  std::vector<float> x(48, 0x1p-12f), w(8 * 256, 0x1p-10f);
  for (int k = 0; k < 8; ++k) w[k * 256 + 1] = 0x1p+14f;  // 8 * 2^-12 * 2^14 = 32
  for (int k = 0; k < 8; ++k) x[5 * 8 + k] = 1.0f;        // row 5: 8 * 2^14 is beyond 65504
  const GemmRun run = run_gemm(fresh(k_functional),
                               plan({shape, GemmDataflow::automatic, "", DType::f16, sums}, GemmVariant::best), x, w);
  CHECK(run.y[0] == 0x1p-19f);  // 8 products of 2^-22, all below the normal range
  CHECK(run.y[1] == 32.0f);
  CHECK(run.y[5 * 256 + 1] == std::numeric_limits<float>::infinity());
  CHECK(run.y[5 * 256] == 0x1p-7f);
}

TEST_CASE("a gemm reads W once per block of rows and X and Y no more than its dataflow needs", "[gemm]") {
  using sim::Space;
  const auto bytes = [](const sim::LaunchResult& result, Space from, Space to) {
    return result.bytes.read[static_cast<int>(from)][static_cast<int>(to)];
  };
  SECTION("large M: X once to GSM, N2 columns at a time from there to SM; all of Y stays until it is complete") {
    const GemmShape shape{1440, 1024, 4096};
    const auto run = run_gemm(fresh(k_timing), plan({shape, GemmDataflow::large_m}, GemmVariant::best));
    CHECK(bytes(run.result, Space::ddr, Space::gsm) == 4 * shape.m * shape.k);
    CHECK(bytes(run.result, Space::gsm, Space::sm) == 4 * shape.m * shape.k * (shape.n / 256));
    CHECK(bytes(run.result, Space::ddr, Space::am) == 4 * shape.k * shape.n * 2);
    CHECK(bytes(run.result, Space::am, Space::ddr) == 4 * shape.m * shape.n);
  }
  SECTION("large M as the paper has it: Y goes out after each k-block and comes back for the next") {
    const GemmShape shape{1440, 1024, 4096};
    const auto run = run_gemm(fresh(k_timing), plan({shape, GemmDataflow::large_m}, GemmVariant::paper));
    CHECK(bytes(run.result, Space::ddr, Space::am) == 4 * shape.k * shape.n * 2 + 4 * shape.m * shape.n);
    CHECK(bytes(run.result, Space::am, Space::ddr) == 2 * 4 * shape.m * shape.n);
  }
  SECTION("small M: everything once") {
    const GemmShape shape{6, 4096, 2048};
    const auto run = run_gemm(fresh(k_timing), plan({shape, GemmDataflow::small_m}, GemmVariant::best));
    CHECK(bytes(run.result, Space::ddr, Space::sm) == 4 * shape.m * shape.k);
    CHECK(bytes(run.result, Space::ddr, Space::am) == 4 * shape.k * shape.n);
    CHECK(bytes(run.result, Space::am, Space::ddr) == 4 * shape.m * shape.n);
  }
}

TEST_CASE("the best sequence is never slower than the paper's", "[gemm]") {
  const auto shape = GENERATE(values<GemmShape>(
      {{720, 256, 2048}, {1024, 256, 4096}, {1024, 768, 4096}, {2048, 1024, 4096}, {1024, 4096, 4096}}));
  const DType dtype = GENERATE(DType::f32, DType::f16);
  const GemmCase c{shape, GemmDataflow::automatic, "", dtype};
  INFO(text(c));
  const auto best = run_gemm(fresh(k_timing), plan(c, GemmVariant::best));
  const auto paper = run_gemm(fresh(k_timing), plan(c, GemmVariant::paper));
  CHECK(best.result.cycles <= paper.result.cycles);
}

TEST_CASE("a decode step streams W at 90 percent of the DDR bandwidth and more, launch included", "[gemm]") {
  const DType dtype = GENERATE(DType::f16, DType::f32);
  const auto weights = GENERATE(GemmWeights::in_out, GemmWeights::out_in);
  const std::int64_t m = GENERATE(1, 16);
  const GemmCase c{{m, 4096, 4096}, GemmDataflow::automatic, "", dtype, {}, weights};
  INFO(text(c));
  const GemmRun run = run_gemm(fresh(k_timing), plan(c, GemmVariant::best));
  const double seconds = machine().milliseconds(run.result.cycles) * 1e-3;
  CHECK(static_cast<double>(bytes_of(dtype) * c.shape.n * c.shape.k) / seconds >= 0.9e9 * machine().ddr.bandwidth_gb_s);
}

TEST_CASE("the dataflow that is chosen is the faster one, or close to it", "[gemm]") {
  const DType dtype = GENERATE(DType::f16, DType::f32);
  const auto shape = GENERATE(values<GemmShape>({{24, 4096, 4096}, {192, 4096, 4096}, {600, 1024, 2048}}));
  const auto cycles = [&](GemmDataflow dataflow, const std::string& tiles) {
    const GemmCase c{shape, dataflow, tiles, dtype};
    return static_cast<double>(run_gemm(fresh(k_timing), plan(c, GemmVariant::best)).result.cycles);
  };
  INFO(to_string(dtype) << " m=" << shape.m);
  const double chosen = cycles(GemmDataflow::automatic, "");
  CHECK(chosen <= 1.1 * cycles(GemmDataflow::large_m, ""));
  if (shape.m <= 192) CHECK(chosen <= 1.1 * cycles(GemmDataflow::small_m, "k2=40"));
}

TEST_CASE("a gemm launched on some of the cores only says that it needs all", "[gemm]") {
  sim::Cluster& cluster = fresh(k_timing);
  const GemmPlan the_plan = plan({{64, 128, 128}}, GemmVariant::best);
  const GemmOperands operands{cluster.ddr_malloc(64 * 128 * 4), cluster.ddr_malloc(128 * 128 * 4),
                              cluster.ddr_malloc(64 * 128 * 4)};
  const sim::DspProgram program = gemm_program(cluster, the_plan, operands);
  CHECK_THROWS_WITH(cluster.launch(program, 3), Catch::Contains("planned for 24 cores and launched on 3"));
}

}  // namespace mtsim::kernels
