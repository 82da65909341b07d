// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <string>

#include "bench_cluster.h"
#include "kernels/gemm/gemm.h"

namespace mtsim::kernels {
namespace {

using enum GemmDataflow;

GemmPlan plan(const GemmShape& shape, const std::string& tiles = "", GemmDataflow dataflow = automatic) {
  return plan_gemm(shape, DType::f32, parse_gemm_tiles(tiles, DType::f32), {.dataflow = dataflow}, machine());
}

std::string complaint(const GemmShape& shape, const std::string& tiles, GemmDataflow dataflow = large_m) {
  try {
    plan(shape, tiles, dataflow);
  } catch (const KernelError& error) {
    return error.what();
  }
  return "no complaint";
}

constexpr GemmShape k_large{8192, 4096, 4096};

}  // namespace

TEST_CASE("the paper's FP32 blocks take what eqs. (6)-(8) say", "[plan]") {
  const GemmPlan p =
      plan_gemm(k_large, DType::f32, {}, {.dataflow = large_m, .variant = GemmVariant::paper}, machine());
  CHECK(p.m2 == 30);
  CHECK(p.sm_bytes == 2 * 4 * 30 * 256);
  CHECK(p.am_bytes == 2 * 4 * 256 * 256 + 3 * 4 * 30 * 256);
  CHECK(p.gsm_bytes == 4 * 720 * 2048);
  CHECK(p.y_buffers == 3);
}

TEST_CASE("FP16: one tile of FP32 sums and two of FP16 fill the AM, eqs. (6)-(8) in bytes", "[plan]") {
  const auto p = [](const GemmShape& shape, const GemmChoice& choice) {
    return plan_gemm(shape, DType::f16, GemmTiles::of(DType::f16, choice), choice, machine());
  };
  const GemmPlan promoted = p(k_large, {large_m, GemmVariant::paper});
  CHECK(promoted.m2 == 60);
  CHECK(promoted.sm_bytes == 2 * 2 * 60 * 256);
  CHECK(promoted.am_bytes == 2 * 2 * 256 * 512 + (4 + 2 * 2) * 60 * 512);
  CHECK(promoted.gsm_bytes == 2 * 1440 * 2048);
  CHECK(promoted.y_buffers == 1);
  CHECK(promoted.y_transfers == 2);
  CHECK(promoted.scratch_bytes == 0);

  const GemmPlan two_rounds = p({8192, 1024, 4096}, {large_m, GemmVariant::paper});
  CHECK(two_rounds.y_stays);  // two tiles of FP32 sums, which are narrowed where they lie
  CHECK(two_rounds.y_buffers == 2);
  CHECK(two_rounds.y_transfers == 0);

  const GemmPlan f16 = p(k_large, {large_m, GemmVariant::paper, GemmSums::f16});
  CHECK(f16.am_bytes == 2 * 2 * 256 * 512 + 3 * 2 * 60 * 512);
  CHECK(f16.y_buffers == 3);

  const GemmPlan f32 = p(k_large, {large_m, GemmVariant::paper, GemmSums::f32});
  CHECK(f32.am_bytes == 2 * 2 * 192 * 512 + 3 * 4 * 60 * 512);
  CHECK(f32.scratch_bytes == 4 * 8192 * 4096);  // FP32 sums in DDR between k-blocks
}

TEST_CASE("W as [n, k] has no large-M dataflow; X, two W2 and Y2 share the AM", "[plan]") {
  const GemmChoice rows{.weights = GemmWeights::out_in};
  const auto p = [&](const GemmShape& shape, const GemmChoice& choice) {
    return plan_gemm(shape, DType::f16, GemmTiles::of(DType::f16, choice), choice, machine());
  };
  const GemmPlan decode = p({16, 4096, 4096}, rows);
  CHECK(decode.dataflow == small_m);
  CHECK(decode.tiles.kg == 4096);  // all of X
  CHECK(decode.x_bytes == 2 * 16 * 4096);
  CHECK(decode.sm_bytes == 0);
  CHECK(p({97, 4096, 4096}, rows).tiles.kg == 1024);  // two blocks of 97 x 1024
  CHECK_THROWS_WITH(p(k_large, {.dataflow = large_m, .weights = GemmWeights::out_in}),
                    "gemm m=8192 n=4096 k=4096: the large-M dataflow takes W as [k, n]; transpose it, or use the "
                    "small-M dataflow");
  CHECK_THROWS_WITH(p(k_large, rows), Catch::Contains("of AM, 786432 available; use a smaller k2, n2 or m"));
}

TEST_CASE("a machine with too few DMA channels is refused with both numbers", "[plan]") {
  const auto with = [](const std::string& channels, GemmDataflow dataflow) -> std::string {
    try {
      plan_gemm({6, 4096, 4096}, DType::f32, {}, {.dataflow = dataflow}, machine({"dma.channels=" + channels}));
    } catch (const KernelError& error) {
      return error.what();
    }
    return "";
  };
  CHECK_THAT(with("15", large_m), Catch::Contains("needs 16 DMA channels") && Catch::Contains("has 15"));
  CHECK_THAT(with("13", small_m), Catch::Contains("needs 14 DMA channels") && Catch::Contains("has 13"));
  CHECK(with("16", large_m).empty());
  CHECK(with("14", small_m).empty());
}

TEST_CASE("the best variant keeps all Y2 of a block in AM when they fit", "[plan]") {
  CHECK(plan({8192, 2048, 4096}).y_buffers == 8);  // 8 rounds of 256 columns beside 512 KB of W2
  CHECK(plan({8192, 2304, 4096}).y_buffers == 3);  // 9 do not fit
  CHECK(plan({8192, 256, 4096}).y_buffers == 3);
}

TEST_CASE("tiles shrink to a small problem", "[plan]") {
  const GemmPlan p = plan({7, 129, 3}, "", large_m);
  CHECK(p.tiles.mg == 7);
  CHECK(p.tiles.k2 == 4);  // K padded
  CHECK(p.tiles.n2 == 256);
  CHECK(p.m2 == 1);
  CHECK(p.sm_bytes == 2 * 4 * 6 * 4);  // rows padded to 6
}

TEST_CASE("a tile that does not fit is refused with equation, bytes and the tile to shrink", "[plan]") {
  CHECK(complaint(k_large, "k2=512,kg=2048") ==
        "gemm m=8192 n=4096 k=4096: eq. (6): 2 * 4 B * M2 * K2 with M2=30 (720 rows on 24 cores, padded to 6), K2=512 "
        "needs "
        "122880 bytes of SM, 65536 available; use k2=272 or less");
  CHECK(
      complaint(k_large, "k2=1024,kg=2048") ==
      "gemm m=8192 n=4096 k=4096: eq. (4): 4 B * M2 * K2 with M2=30 (720 rows on 24 cores, padded to 6), K2=1024 needs "
      "122880 bytes of SM, 65536 available; use k2=272 or less");
  CHECK(complaint(k_large, "n2=512") ==
        "gemm m=8192 n=4096 k=4096: eq. (7): 2 * 4 B * K2 * N2 + 3 * 4 B * M2 * N2 with M2=30 (720 rows on 24 cores, "
        "padded to "
        "6), K2=256, N2=512 needs 1232896 bytes of AM, 786432 available; use n2=256 or less");
  CHECK(complaint(k_large, "n2=1024") ==
        "gemm m=8192 n=4096 k=4096: eq. (5): 4 B * K2 * N2 + 4 B * M2 * N2 with M2=30 (720 rows on 24 cores, padded to "
        "6), "
        "K2=256, N2=1024 needs 1171456 bytes of AM, 786432 available; use n2=256 or less");
  CHECK(complaint(k_large, "kg=4096") ==
        "gemm m=8192 n=4096 k=4096: eq. (8): 4 B * Kg * Mg with Kg=4096, Mg=720 (24 cores of 30 rows) needs 11796480 "
        "bytes of "
        "GSM, 6291456 available; use kg=2048 or less");
  CHECK(complaint({200, 4096, 4096}, "k2=128", small_m) ==
        "gemm m=200 n=4096 k=4096: eq. (4): 4 B * M2 * K2 with M2=204 (200 rows padded to 6), K2=128 needs 104448 "
        "bytes of SM, "
        "65536 available; use k2=40 or less");
  CHECK(complaint({3000, 4096, 4096}, "", small_m) ==
        "gemm m=3000 n=4096 k=4096: eq. (4): 4 B * M2 * K2 with M2=3000 (3000 rows padded to 6), K2=256 needs 3072000 "
        "bytes of "
        "SM, 65536 available; no k2 fits, shrink m, or use the large-M dataflow");
}

TEST_CASE("a tile the advice names does fit", "[plan]") {
  CHECK_NOTHROW(plan(k_large, "k2=272,kg=2176,mg=600", large_m));
  CHECK_NOTHROW(plan(k_large, "n2=256", large_m));
  CHECK_NOTHROW(plan({200, 4096, 4096}, "k2=40", small_m));
}

TEST_CASE("tiles the microkernel cannot take are refused", "[plan]") {
  CHECK(complaint(k_large, "k2=255") ==
        "gemm m=8192 n=4096 k=4096: k2=255 must be a multiple of 2 and at least 4: the f32 microkernel takes 2 k at a "
        "time");
  CHECK(complaint(k_large, "n2=200") == "gemm m=8192 n=4096 k=4096: n2=200 must be a multiple of N1 = 128");
  CHECK(complaint(k_large, "k2=250") == "gemm m=8192 n=4096 k=4096: kg=2048 must be a multiple of k2=250");
  const auto f16 = [](const std::string& tiles, const GemmChoice& choice = {}) {
    return plan_gemm(k_large, DType::f16, parse_gemm_tiles(tiles, DType::f16, choice), choice, machine());
  };
  CHECK_THROWS_WITH(f16("k2=254"),
                    Catch::Contains("k2=254 must be a multiple of 4 and at least 8: the f16 microkernel"));
  CHECK_THROWS_WITH(f16("k_promote=130"), Catch::Contains("k_promote=130 must be a multiple of 4 and at least 8"));
  CHECK_THROWS_WITH(f16("k_promote=8"), Catch::Contains("k_promote=8 must be at least 16"));
  CHECK_THROWS_WITH(f16("k_promote=64", {.sums = GemmSums::f16}), Catch::Contains("k_promote is about FP16 products"));
  CHECK(complaint({0, 1, 1}, "") == "gemm m=0 n=1 k=1: every dimension must be at least 1");
}

TEST_CASE("tile text is read over the defaults and refused with the known keys", "[plan]") {
  const GemmTiles tiles = parse_gemm_tiles("mg=360,k2=128", DType::f32);
  CHECK(tiles.mg == 360);
  CHECK(tiles.kg == 2048);
  CHECK(tiles.k2 == 128);
  CHECK_THROWS_WITH(parse_gemm_tiles("n3=5", DType::f32),
                    "tile 'n3=5': unknown key 'n3'; known: mg, kg, k2, n2, m1, n1, x_buffers, "
                    "w_buffers, y_buffers, y_tiles, m2; did you mean 'n2'?");
  CHECK_THROWS_WITH(parse_gemm_tiles("k2=-4", DType::f32),
                    "tile 'k2=-4': k2='-4' must be a positive number below 2^31, e.g. k2=256");
  CHECK_THROWS_WITH(parse_gemm_tiles("k2", DType::f32),
                    "tile 'k2': k2='' must be a positive number below 2^31, e.g. k2=256");
  CHECK_THROWS_WITH(parse_gemm_tiles("k2=12x", DType::f32),
                    Catch::Contains("k2='12x' must be a positive number below 2^31"));
}

TEST_CASE("the faster dataflow is chosen: small M while a block of rows costs less than the steps of W", "[plan]") {
  CHECK(plan({8192, 4096, 4096}).dataflow == large_m);
  CHECK(plan({1, 4096, 4096}).dataflow == small_m);
  CHECK(plan({6, 128, 4096}).dataflow == small_m);     // one core computes, no step of W waits for the others
  CHECK(plan({256, 4096, 4096}).dataflow == small_m);  // 43 strips, as long as W takes to come in
  CHECK(plan({256, 4096, 4096}).tiles.k2 == 30);       // X2 twice in SM
  CHECK(plan({1024, 4096, 4096}).dataflow == large_m);
  CHECK(plan({1024, 256, 4096}).dataflow == large_m);  // two tiles of columns would keep two cores busy
}

}  // namespace mtsim::kernels
