// SPDX-License-Identifier: Apache-2.0
// The W-stationary dataflow: its values, its traffic and its plan.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gemm_cases.h"

namespace mtsim::kernels {
namespace {

using enum GemmDataflow;
using enum DType;

GemmPlan plan_of(const GemmShape& shape, const std::string& tiles = "", DType dtype = f32,
                 GemmSums sums = GemmSums::promoted) {
  return plan({shape, w_stationary, tiles, dtype, sums}, GemmVariant::best);
}

std::string complaint(const GemmShape& shape, const std::string& tiles, const GemmChoice& choice = {w_stationary}) {
  try {
    plan_gemm(shape, f32, parse_gemm_tiles(tiles, f32, choice), choice, machine());
  } catch (const KernelError& error) {
    return error.what();
  }
  return "no complaint";
}

constexpr GemmShape k_large{8192, 4096, 4096};

std::int64_t bytes(const sim::LaunchResult& result, sim::Space from, sim::Space to) {
  return result.bytes.read[static_cast<int>(from)][static_cast<int>(to)];
}

}  // namespace

TEST_CASE("a W-stationary gemm of any shape agrees with OpenBLAS in FP64 and takes the same cycles in both depths",
          "[gemm][w_stationary]") {
  const auto c = GENERATE(values<GemmCase>({
      {{1, 1, 1}, w_stationary},
      {{1, 127, 251}, w_stationary},
      {{7, 1, 3}, w_stationary},
      {{7, 769, 2053}, w_stationary},
      {{719, 1, 5}, w_stationary},
      {{131, 1579, 67}, w_stationary},
      {{721, 33, 1}, w_stationary},
      // Fewer columns than cores; one core more than one pass; several passes, the last one of some cores empty.
      {{40, 23 * 32, 100}, w_stationary},
      {{40, 1700, 70}, w_stationary, "n2=32,m1=6,n1=32"},
      {{40, 3400, 70}, w_stationary, "mg=16,m2=8,kg=32,k2=16,n2=64,m1=4,n1=64"},
      // Tails of every tile: m-blocks, rounds, k-blocks, k-steps, columns; several of each.
      {{101, 1579, 203}, w_stationary, "mg=40,m2=12,kg=64,k2=16,n2=128,m1=6,n1=128"},
      {{101, 1579, 203}, w_stationary, "mg=40,m2=12,kg=64,k2=16,n2=64,m1=5,n1=32"},
      {{101, 800, 203}, w_stationary, "mg=24,m2=7,kg=48,k2=24,n2=96,m1=7,n1=96"},
      // More k-steps of a block than parts of W can be on their way; a single one.
      {{61, 800, 203}, w_stationary, "mg=30,m2=6,kg=80,k2=4,n2=64,m1=6,n1=64"},
      {{61, 800, 203}, w_stationary, "mg=30,m2=6,kg=32,k2=32,n2=64,m1=6,n1=64"},
      // A round a k-block, two, three: Y2 stay; X stays in GSM between passes.
      {{6, 1600, 203}, w_stationary, "mg=6,m2=6,kg=64,k2=16,n2=32,m1=6,n1=32"},
      {{12, 1600, 203}, w_stationary, "mg=6,m2=6,kg=208,k2=16,n2=32,m1=6,n1=32"},
      {{18, 1600, 203}, w_stationary, "mg=18,m2=6,kg=64,k2=16,n2=32,m1=6,n1=32,y_buffers=3"},
      {{20, 1600, 203}, w_stationary, "mg=18,m2=6,kg=64,k2=16,n2=32,m1=6,n1=32,y_buffers=2"},
      {{1, 1, 1}, w_stationary, "", f16},
      {{7, 255, 5}, w_stationary, "", f16},
      {{131, 1579, 1031}, w_stationary, "", f16},
      {{101, 1579, 203}, w_stationary, "mg=40,m2=12,kg=64,k2=32,n2=256,m1=6,n1=256,k_promote=16", f16},
      {{101, 1700, 203}, w_stationary, "mg=40,m2=12,kg=64,k2=32,n2=64,m1=9,n1=64,k_promote=20", f16},
      {{14, 1700, 203}, w_stationary, "mg=14,m2=7,kg=64,k2=32,n2=64,m1=7,n1=64", f16},
      {{101, 1700, 203}, w_stationary, "mg=40,m2=12,kg=64,k2=32,n2=64,m1=9,n1=64", f16, GemmSums::f16},
      {{101, 1700, 203}, w_stationary, "mg=40,m2=12,kg=64,k2=32,n2=128,m1=6,n1=128", f16, GemmSums::f32},
      {{101, 1579, 203}, w_stationary, "mg=40,m2=12,kg=64,k2=32,n2=256,m1=6,n1=256", f16, GemmSums::f32},
      {{101, 1579, 203}, w_stationary, "", f16, GemmSums::f32},
  }));
  INFO(text(c));
  expect_right(plan(c, GemmVariant::best));
}

TEST_CASE("any number of buffers and parts of Y2 gives the same bits and clean transfers", "[gemm][w_stationary]") {
  const DType dtype = GENERATE(f32, f16);
  const GemmShape shape{53, 1700, 203};
  const std::string n1 = dtype == f32 ? "m1=6,n1=32,n2=64" : "m1=6,n1=64,n2=64";
  const auto buffered = [&](int x, int w, int y, int parts) {
    return plan_of(
        shape,
        fmt::format("mg=24,m2=6,kg=64,k2=16,{},x_buffers={},w_buffers={},y_buffers={},y_tiles={}", n1, x, w, y, parts),
        dtype);
  };
  const std::vector<float> x = rounded(random_matrix(shape.m, shape.k, 1), dtype),
                           w = rounded(random_matrix(shape.k, shape.n, 2), dtype);
  const std::vector<float> expected = run_gemm(fresh(k_functional), buffered(2, 2, 3, 4), x, w).y;
  for (const int x_buffers : {1, 2}) {
    for (const int w_buffers : {1, 2}) {
      for (const int y_buffers : {2, 3}) {
        for (const int parts : {1, 2, 4}) {
          CAPTURE(to_string(dtype), x_buffers, w_buffers, y_buffers, parts);
          const GemmRun run = run_gemm(fresh(k_functional), buffered(x_buffers, w_buffers, y_buffers, parts), x, w);
          expect_clean(run.result);
          CHECK(run.guards_intact);
          CHECK(std::equal(run.y.begin(), run.y.end(), expected.begin(), same_bits));
        }
      }
    }
  }
}

TEST_CASE("the values of a W-stationary gemm do not depend on how fast memory and cores meet", "[gemm][w_stationary]") {
  const auto c = GENERATE(values<GemmCase>(
      {{{101, 1579, 203}, w_stationary, "mg=40,m2=12,kg=64,k2=16,n2=64,m1=5,n1=32,w_buffers=1"},
       {{101, 1579, 203}, w_stationary, "mg=40,m2=12,kg=64,k2=32,n2=256,m1=6,n1=256,w_buffers=2", f16}}));
  const auto sets = GENERATE(values<std::vector<std::string>>({{"ddr.bandwidth_gb_s=1"},
                                                               {"ddr.bandwidth_gb_s=2000", "dma.start_us=0"},
                                                               {"cluster.gsm_bandwidth_gb_s=5"},
                                                               {"cluster.barrier_us=50"},
                                                               {"cluster.port_bandwidth_gb_s=0.5"}}));
  const auto [m, n, k] = c.shape;
  INFO(text(c) << ", " << sets[0]);
  const std::vector<float> x = rounded(random_matrix(m, k, 5), c.dtype), w = rounded(random_matrix(k, n, 6), c.dtype);
  const std::vector<float> expected = run_gemm(fresh(k_functional), plan(c, GemmVariant::best), x, w).y;
  const sim::MachineConfig other = machine(sets);
  const GemmRun run = run_gemm(fresh(k_functional, other), plan(c, GemmVariant::best, other), x, w);
  expect_clean(run.result);
  CHECK(std::equal(run.y.begin(), run.y.end(), expected.begin(), same_bits));
}

TEST_CASE("FP32 has the bits of the large-M dataflow, and FP16 too where both promote and round alike",
          "[gemm][w_stationary]") {
  const GemmShape shape{101, 1579, 203};
  const auto y = [&](GemmDataflow dataflow, const std::string& tiles, DType dtype, GemmSums sums) {
    const GemmCase c{shape, dataflow, tiles, dtype, sums};
    const std::vector<float> x = rounded(random_matrix(shape.m, shape.k, 3), dtype),
                             w = rounded(random_matrix(shape.k, shape.n, 4), dtype);
    return run_gemm(fresh(k_functional), plan(c, GemmVariant::best), x, w).y;
  };
  const auto same = [&](const std::string& ws, const std::string& large, DType dtype, GemmSums sums) {
    const std::vector<float> a = y(w_stationary, ws, dtype, sums), b = y(large_m, large, dtype, sums);
    return std::equal(a.begin(), a.end(), b.begin(), same_bits);
  };
  CHECK(same("mg=40,m2=12,kg=64,k2=16,n2=64,m1=5,n1=32", "", f32, GemmSums::promoted));
  CHECK(same("", "mg=48,kg=64,k2=16", f32, GemmSums::promoted));
  const std::string ws = "mg=40,m2=12,kg=64,k2=32,n2=64,m1=9,n1=64", large = "mg=96,kg=64,k2=32,n2=256";
  CHECK(same(ws, large, f16, GemmSums::f16));
  CHECK(same(ws + ",k_promote=32", large + ",k_promote=32", f16, GemmSums::promoted));
  CHECK(same(ws + ",k_promote=32", large + ",k_promote=32", f16, GemmSums::f32));
}

TEST_CASE("an infinity in X or W gives no NaN where k is padded, whatever the width of W in AM",
          "[gemm][w_stationary]") {
  const DType dtype = GENERATE(f32, f16);
  const std::int64_t k = GENERATE(1, 3, 5, 7), vector = dtype == f32 ? 32 : 64;
  const auto dataflow = GENERATE(w_stationary, large_m);
  const std::int64_t n1 = vector * GENERATE(1, 3);
  const GemmShape shape{8, 5 * n1, k};
  constexpr float k_infinity = std::numeric_limits<float>::infinity();
  std::vector<float> x(static_cast<std::size_t>(shape.m * k), 1.0f), w(static_cast<std::size_t>(k * shape.n), 2.0f);
  x[2 * k + k - 1] = k_infinity;
  w[(k - 1) * shape.n + 17] = -k_infinity;
  CAPTURE(to_string(dtype), k, n1);
  const GemmCase c{shape, dataflow, fmt::format("m1=2,n1={},n2={}", n1, n1), dtype};
  const GemmRun run = run_gemm(fresh(k_functional), plan(c, GemmVariant::best), x, w);
  CHECK(run.y[0] == 2.0f * static_cast<float>(k));
  CHECK(run.y[2 * shape.n + 5] == k_infinity);
  CHECK(run.y[3 * shape.n + 17] == -k_infinity);
}

TEST_CASE("a W-stationary gemm reads W once, X once a column pass, and Y between k-blocks", "[gemm][w_stationary]") {
  using sim::Space;
  SECTION("one pass and one k-block: everything once") {
    const GemmShape shape{600, 3072, 512};
    const auto run = run_gemm(fresh(k_timing), plan_of(shape, "kg=512,n2=128,m1=6,n1=128"));
    CHECK(bytes(run.result, Space::ddr, Space::am) == 4 * shape.k * shape.n);
    CHECK(bytes(run.result, Space::ddr, Space::gsm) == 4 * shape.m * shape.k);
    CHECK(bytes(run.result, Space::gsm, Space::sm) == 24 * 4 * shape.m * shape.k);  // all cores read all of X
    CHECK(bytes(run.result, Space::am, Space::ddr) == 4 * shape.m * shape.n);
  }
  SECTION("three k-blocks: Y comes back twice") {
    const GemmShape shape{600, 3072, 1536};
    const auto run = run_gemm(fresh(k_timing), plan_of(shape, "kg=512,n2=128,m1=6,n1=128,w_buffers=1,y_buffers=3"));
    CHECK(bytes(run.result, Space::ddr, Space::am) == 4 * shape.k * shape.n + 2 * 4 * shape.m * shape.n);
    CHECK(bytes(run.result, Space::ddr, Space::gsm) == 4 * shape.m * shape.k);
    CHECK(bytes(run.result, Space::am, Space::ddr) == 3 * 4 * shape.m * shape.n);
  }
  SECTION("three column passes: W still once, X once in each") {
    const GemmShape shape{600, 3 * 768, 512};
    const auto run = run_gemm(fresh(k_timing), plan_of(shape, "mg=96,kg=512,n2=32,m1=6,n1=32,w_buffers=2"));
    CHECK(bytes(run.result, Space::ddr, Space::am) == 4 * shape.k * shape.n);
    CHECK(bytes(run.result, Space::ddr, Space::gsm) == 3 * 4 * shape.m * shape.k);
  }
  SECTION("three column passes over X that stays in GSM") {
    const GemmShape shape{600, 3 * 768, 512};
    const auto run = run_gemm(fresh(k_timing), plan_of(shape, "mg=300,kg=512,n2=32,m1=6,n1=32,w_buffers=2"));
    CHECK(bytes(run.result, Space::ddr, Space::gsm) == 4 * shape.m * shape.k);
  }
}

TEST_CASE("the next block of W comes in behind the computing where there are two buffers", "[gemm][w_stationary]") {
  const GemmShape shape{2000, 768, 1024};
  const auto cycles = [&](int w_buffers) {
    const std::string tiles = fmt::format("kg=256,n2=32,m1=12,n1=32,w_buffers={}", w_buffers);
    return run_gemm(fresh(k_timing), plan_of(shape, tiles)).result.cycles;
  };
  CHECK(cycles(2) < cycles(1));
}

TEST_CASE("W stationary beats large M where K is short and M long", "[gemm][w_stationary]") {
  const DType dtype = GENERATE(f16, f32);
  const GemmShape shape{4096, 24 * gemm_n1(dtype), 1024};
  const auto cycles = [&](GemmDataflow dataflow) {
    return run_gemm(fresh(k_timing), plan({shape, dataflow, "", dtype}, GemmVariant::best)).result.cycles;
  };
  CHECK(cycles(w_stationary) < cycles(large_m));
}

TEST_CASE("W-stationary tiles that nobody asked for are chosen for the shape and fit", "[plan][w_stationary]") {
  const auto shape = GENERATE(values<GemmShape>({k_large,
                                                 {1, 1, 1},
                                                 {1, 4096, 4096},
                                                 {8192, 64, 16384},
                                                 {8192, 32000, 4096},
                                                 {100, 24 * 2000, 100},
                                                 {50000, 1024, 1024}}));
  const DType dtype = GENERATE(f32, f16);
  const auto sums = GENERATE(GemmSums::promoted, GemmSums::f32, GemmSums::f16);
  if (dtype == f32 && sums == GemmSums::f16) return;
  CAPTURE(to_string(dtype), shape.m, shape.n, shape.k);
  const GemmPlan p = plan_of(shape, "", dtype, sums);
  CHECK(p.dataflow == w_stationary);
  CHECK(p.sm_bytes <= machine().core.sm_bytes);
  CHECK(p.am_bytes <= machine().core.am_bytes);
  CHECK(p.gsm_bytes <= machine().cluster.gsm_bytes);
  CHECK(p.tiles.kg % p.tiles.k2 == 0);
  CHECK(p.tiles.n2 % p.tiles.n1 == 0);
  CHECK(p.m2 == p.tiles.m2);
}

TEST_CASE("one tile that is asked for is kept, and the others follow", "[plan][w_stationary]") {
  const GemmPlan p = plan_of(k_large, "m2=24,k2=128", f16);
  CHECK(p.m2 == 24);
  CHECK(p.tiles.k2 == 128);
  CHECK(plan_of(k_large, "kg=512", f16).tiles.kg == 512);
  CHECK(plan_of(k_large, "n1=128,m1=5", f16).tiles.n1 == 128);
  CHECK(plan_of(k_large, "w_buffers=2", f16).tiles.w_buffers == 2);
}

TEST_CASE("each memory that W stationary does not fit is told with its equation, bytes and the tile to shrink",
          "[plan][w_stationary]") {
  const std::string tiles = "mg=48,m2=24,kg=512,n2=128,m1=6,n1=128,w_buffers=2";
  CHECK(complaint(k_large, tiles) == "no complaint");
  CHECK(complaint(k_large, "mg=96,m2=48,kg=512,n2=128,m1=6,n1=128,w_buffers=1") ==
        "gemm m=8192 n=4096 k=4096: eq. (6): 2 * 4 B * M2 * K2 with M2=48 (m2=48 padded to 6), K2=256 needs 98304 "
        "bytes of SM, 65536 available; use k2=170 or less");
  CHECK(complaint(k_large, "mg=96,m2=96,kg=512,n2=128,m1=6,n1=128,w_buffers=1") ==
        "gemm m=8192 n=4096 k=4096: eq. (4): 4 B * M2 * K2 with M2=96 (m2=96 padded to 6), K2=256 needs 98304 "
        "bytes of SM, 65536 available; use k2=84 or less");
  CHECK(complaint(k_large, "mg=48,m2=24,kg=1024,n2=128,m1=6,n1=128,w_buffers=2") ==
        "gemm m=8192 n=4096 k=4096: eq. (7): 2 * 4 B * Kg * N2 + 3 * 4 B * M2 * N2 with M2=24 (m2=24 padded to 6), "
        "Kg=1024, N2=128 needs 1085440 bytes of AM, 786432 available; use kg=512 or less");
  CHECK(complaint(k_large, "mg=48,m2=24,kg=2048,n2=128,m1=6,n1=128,w_buffers=1") ==
        "gemm m=8192 n=4096 k=4096: eq. (5): 4 B * Kg * N2 + 4 B * M2 * N2 with M2=24 (m2=24 padded to 6), "
        "Kg=2048, N2=128 needs 1060864 bytes of AM, 786432 available; use kg=1280 or less");
  CHECK(complaint(k_large, "mg=4096,m2=24,kg=512,n2=128,m1=6,n1=128,w_buffers=1") ==
        "gemm m=8192 n=4096 k=4096: eq. (8): 2 * 4 B * Kg * Mg with Kg=512, Mg=4096 needs 16777216 bytes of GSM, "
        "6291456 available; use mg=1536 or less");
}

TEST_CASE("what W stationary cannot do is refused", "[plan][w_stationary]") {
  CHECK(complaint(k_large, "", {w_stationary, GemmVariant::paper}) ==
        "gemm m=8192 n=4096 k=4096: the paper has no W-stationary sequence; use its best variant");
  GemmChoice rope{w_stationary};
  rope.epilogue = RopeEpilogue{.head_dim = 128};
  CHECK(complaint(k_large, "", rope) ==
        "gemm m=8192 n=4096 k=4096: the W-stationary dataflow has no epilogue; use the large-M or small-M dataflow");
  CHECK(complaint(k_large, "", {.dataflow = w_stationary, .weights = GemmWeights::out_in}) ==
        "gemm m=8192 n=4096 k=4096: the W-stationary dataflow takes W as [k, n]; transpose it, or use the small-M "
        "dataflow");
  CHECK(complaint(k_large, "m2=12", {large_m}) ==
        "gemm m=8192 n=4096 k=4096: m2=12 belongs to the W-stationary dataflow; leave it out, or ask for "
        "w_stationary");
  CHECK(complaint(k_large, "m2=12", {automatic}) == complaint(k_large, "m2=12", {large_m}));
  CHECK(complaint({8, 8, 8}, "m2=12", {small_m}) ==
        "gemm m=8 n=8 k=8: m2=12 belongs to the W-stationary dataflow; "
        "leave it out, or ask for w_stationary");
  CHECK(complaint(k_large, "kg=500") == "gemm m=8192 n=4096 k=4096: kg=500 must be a multiple of k2=256");
  CHECK(complaint(k_large, "k2=255") ==
        "gemm m=8192 n=4096 k=4096: k2=255 must be a multiple of 2 and at least 4: the f32 microkernel takes 2 k at a "
        "time");
  CHECK(complaint(k_large, "n1=100") ==
        "gemm m=8192 n=4096 k=4096: n1=100 must be a multiple of 32, the columns of a vector");
  CHECK(complaint(k_large, "n1=10") ==
        "gemm m=8192 n=4096 k=4096: n1=10 must be a multiple of 32, the columns of a vector");
  CHECK_THAT(complaint(k_large, "m1=100"), Catch::StartsWith("gemm m=8192 n=4096 k=4096: m1=100"));
  CHECK(complaint(k_large, "n2=100,n1=64") == "gemm m=8192 n=4096 k=4096: n2=100 must be a multiple of N1 = 64");
  CHECK(complaint(k_large, "x_buffers=3") == "gemm m=8192 n=4096 k=4096: x_buffers=3 must be 1 or 2");
  CHECK(complaint(k_large, "w_buffers=3") == "gemm m=8192 n=4096 k=4096: w_buffers=3 must be 1 or 2");
  CHECK(complaint(k_large, "y_buffers=4") == "gemm m=8192 n=4096 k=4096: y_buffers=4 must be 2 or 3");
  CHECK(complaint({0, 1, 1}, "") == "gemm m=0 n=1 k=1: every dimension must be at least 1");
  CHECK_THROWS_WITH(plan({k_large, w_stationary}, GemmVariant::best, machine({"dma.channels=14"})),
                    Catch::Contains("the W-stationary dataflow needs 15 DMA channels a core, the machine has 14"));
}

}  // namespace mtsim::kernels
