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
#include "reference.h"

namespace mtsim::kernels {
namespace {

struct Case {
  GemmShape shape;
  GemmDataflow dataflow = GemmDataflow::automatic;
  std::string tiles = "";
};

std::string text(const Case& c) {
  const char* dataflow[] = {"automatic", "large M", "small M"};
  return fmt::format("m={} n={} k={} {} {}", c.shape.m, c.shape.n, c.shape.k, dataflow[static_cast<int>(c.dataflow)],
                     c.tiles);
}

GemmPlan plan(const Case& c, GemmVariant variant, const sim::MachineConfig& config = machine()) {
  return plan_gemm_f32(c.shape, parse_gemm_tiles(c.tiles), c.dataflow, config, variant);
}

const sim::ClusterOptions k_functional{sim::Depth::functional, false};
const sim::ClusterOptions k_timing{sim::Depth::timing};

/// Largest error in units of its bound. Pad columns of X meet pad rows of W as 0 * 0 + y = y, so the bound is that of
/// the unpadded k.
double error_in_bounds(const std::vector<float>& y, const Product& product) {
  double worst = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double error = std::abs(static_cast<double>(y[i]) - product.value[i]);
    if (!(error <= product.bound[i])) worst = std::max(worst, std::isnan(error) ? 1e9 : error / product.bound[i]);
  }
  return worst;
}

void expect_clean(const sim::LaunchResult& result) {
  for (const sim::Finding& finding : result.findings) FAIL_CHECK(finding.message);
  if (result.fault) FAIL_CHECK(result.fault->str());
}

}  // namespace

TEST_CASE("a gemm of any shape agrees with OpenBLAS in FP64 and takes the same cycles in both depths", "[gemm]") {
  using enum GemmDataflow;
  const auto c = GENERATE(values<Case>({
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
  }));
  const auto variant = GENERATE(GemmVariant::best, GemmVariant::paper);
  const GemmPlan the_plan = plan(c, variant);
  INFO(text(c) << (variant == GemmVariant::paper ? ", paper" : ", best"));
  const auto [m, n, k] = c.shape;
  const std::vector<float> x = random_matrix(m, k, 1), w = random_matrix(k, n, 2);

  const GemmRun functional = run_gemm(fresh(k_functional), the_plan, x, w);
  expect_clean(functional.result);
  CHECK(functional.guards_intact);
  CHECK(error_in_bounds(functional.y, multiply_f64(x, w, m, n, k)) == 0);

  const GemmRun timing = run_gemm(fresh(k_timing), the_plan);
  expect_clean(timing.result);
  CHECK(timing.result.cycles == functional.result.cycles);
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
  const auto c = GENERATE_REF(values<Case>({{shape, GemmDataflow::large_m},
                                            {shape, GemmDataflow::large_m, "mg=24,kg=32,k2=8,n2=128"},
                                            {shape, GemmDataflow::small_m},
                                            {shape, GemmDataflow::small_m, "k2=12"}}));
  INFO(text(c));
  const GemmRun run = run_gemm(fresh(k_functional), plan(c, GemmVariant::best), x, w);
  CHECK(std::equal(run.y.begin(), run.y.end(), expected.begin(), same_bits));
}

TEST_CASE("the values of a gemm do not depend on how fast memory and cores meet", "[gemm]") {
  const auto c = GENERATE(values<Case>({{{150, 390, 301}, GemmDataflow::large_m, "mg=72,kg=96,k2=8,n2=128"},
                                        {{1500, 520, 90}, GemmDataflow::large_m, "kg=32,k2=16,n2=128"},
                                        {{25, 1300, 515}, GemmDataflow::small_m}}));
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
  const GemmShape shape{8, 130, 3};
  std::vector<float> x(static_cast<std::size_t>(shape.m * shape.k), 1.0f),
      w(static_cast<std::size_t>(shape.k * shape.n), 2.0f);
  x[2 * shape.k + 2] = std::numeric_limits<float>::infinity();     // row 2
  w[1 * shape.n + 129] = -std::numeric_limits<float>::infinity();  // column 129
  const GemmRun run = run_gemm(fresh(k_functional), plan({shape, dataflow}, GemmVariant::best), x, w);
  CHECK(run.y[0] == 6.0f);
  CHECK(run.y[2 * shape.n + 5] == std::numeric_limits<float>::infinity());
  CHECK(run.y[3 * shape.n + 129] == -std::numeric_limits<float>::infinity());
  CHECK(
      same_bits(run.y[2 * shape.n + 129], fma_f32(1.0f, 2.0f, std::numeric_limits<float>::quiet_NaN())));  // inf - inf
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
  INFO("m=" << shape.m << " n=" << shape.n << " k=" << shape.k);
  const auto best = run_gemm(fresh(k_timing), plan({shape}, GemmVariant::best));
  const auto paper = run_gemm(fresh(k_timing), plan({shape}, GemmVariant::paper));
  CHECK(best.result.cycles <= paper.result.cycles);
}

TEST_CASE("a gemm launched on some of the cores only says that it needs all", "[gemm]") {
  sim::Cluster& cluster = fresh(k_timing);
  const GemmPlan the_plan = plan({{64, 128, 128}}, GemmVariant::best);
  const GemmOperands operands{cluster.ddr_malloc(64 * 128 * 4), cluster.ddr_malloc(128 * 128 * 4),
                              cluster.ddr_malloc(64 * 128 * 4)};
  const sim::DspProgram program = gemm_f32(cluster, the_plan, operands);
  CHECK_THROWS_WITH(cluster.launch(program, 3), Catch::Contains("planned for 24 cores and launched on 3"));
}

}  // namespace mtsim::kernels
