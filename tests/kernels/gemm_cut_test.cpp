// SPDX-License-Identifier: Apache-2.0
// What a GEMM does with the rows and columns beside whole tiles: which microkernels, how fast, and with which bits.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "bench_cluster.h"
#include "kernels/gemm/gemm_program.h"
#include "reference.h"
#include "sim/core/executor.h"

namespace mtsim::kernels {
namespace {

struct Kind {
  DType dtype;
  GemmSums sums;
};
const std::vector<Kind> k_kinds = {
    {DType::f32, GemmSums::f32}, {DType::f16, GemmSums::f16}, {DType::f16, GemmSums::promoted}};

/// Large M with the default tiles, K2 = 256 and K1 = 256 or k_promote = 128.
GemmPlan plan_of(const Kind& kind, GemmVariant variant = GemmVariant::best) {
  const GemmChoice choice{GemmDataflow::large_m, variant, kind.sums};
  return plan_gemm({8192, 4096, 4096}, kind.dtype, GemmTiles::of(kind.dtype, choice), choice, machine());
}

std::int64_t columns_of_vector(DType dtype) { return 128 / bytes_of(dtype); }
std::int64_t rows_of(const gemm::CutBlock& block) { return block.tile ? block.tile->rows : k_gemm_m1; }
std::int64_t columns_of(const gemm::CutBlock& block, DType dtype) {
  return block.tile ? block.tile->columns() : gemm_n1(dtype);
}

/// Cycles of a block's call with K2, Y1 read.
std::int64_t cycles_of(const gemm::CutBlock& block, const Kind& kind, std::int64_t k, bool promotes) {
  const bool f16 = kind.dtype == DType::f16;
  const isa::Program& code =
      block.tile ? gemm_tile_program(*block.tile, {}) : program(f16 ? "gemm_f16_6x256" : "gemm_f32_6x128");
  const auto bytes = static_cast<std::uint64_t>(bytes_of(kind.dtype)), pitch = std::uint64_t{8192};
  const std::vector<std::uint64_t> arguments{
      0, 0, 0, static_cast<std::uint64_t>(k), static_cast<std::uint64_t>(k) * bytes, pitch, pitch};
  const char* entry = !block.tile && promotes ? "accumulate_f32" : "accumulate";
  const sim::RunResult result = sim::profile(sim::DecodedProgram(code, {}), arguments, {.entry = entry}).result;
  REQUIRE(result.status == sim::RunStatus::done);
  return result.cycles;
}

/// Cycles below which no unit could do [rows, columns] of the block: a third of the products (VMAC), or one for each
/// row's X (SIEU doubles it, VIEU spreads it).
double bound_of(std::int64_t rows, std::int64_t vectors, std::int64_t k) {
  return static_cast<double>(k) * std::max(static_cast<double>(rows * vectors) / 3, static_cast<double>(rows));
}

}  // namespace

TEST_CASE("a cut computes every row and column once, the whole tiles first", "[gemm][cut]") {
  for (const Kind& kind : k_kinds) {
    const std::int64_t vector = columns_of_vector(kind.dtype), n1 = gemm_n1(kind.dtype);
    for (const GemmVariant variant : {GemmVariant::best, GemmVariant::paper}) {
      const gemm::Cutter cutter(plan_of(kind, variant), machine());
      for (std::int64_t rows = 1; rows <= 40; ++rows) {
        for (std::int64_t columns = 1; columns <= 2 * n1 + 1; columns += 31) {
          CAPTURE(to_string(kind.dtype), rows, columns);
          const std::int64_t vectors = gemm::ceil_div(columns, vector);
          std::vector<int> computed(
              static_cast<std::size_t>(gemm::round_up(rows, k_gemm_m1) * (gemm::round_up(columns, n1) / vector)));
          std::int64_t row = 0;
          bool tail = false;
          for (const gemm::CutStrip& strip : cutter.cut(rows, columns).strips) {
            REQUIRE(strip.row == row);
            row += strip.rows;
            REQUIRE_FALSE((tail && strip.rows == k_gemm_m1));  // FP16 is made of whole M1 while there are more rows
            tail = strip.rows != k_gemm_m1;
            for (const gemm::CutBlock& block : strip.blocks) {
              if (block.tile) REQUIRE(block.tile->rows == strip.rows);
              if (variant == GemmVariant::paper) REQUIRE_FALSE(block.tile);
              for (std::int64_t r = strip.row; r < strip.row + rows_of(block); ++r) {
                for (std::int64_t c = block.column / vector;
                     c < (block.column + columns_of(block, kind.dtype)) / vector; ++c) {
                  ++computed.at(static_cast<std::size_t>(r * (gemm::round_up(columns, n1) / vector) + c));
                }
              }
            }
          }
          REQUIRE(row == rows);
          bool once = true;
          for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t c = 0; c < vectors; ++c)
              once = once && computed[static_cast<std::size_t>(r * (gemm::round_up(columns, n1) / vector) + c)] == 1;
          }
          REQUIRE(once);
        }
      }
    }
  }
}

TEST_CASE("whole tiles go to the microkernel written by hand, tails are never slower than padded", "[gemm][cut]") {
  for (const Kind& kind : k_kinds) {
    const std::int64_t n1 = gemm_n1(kind.dtype);
    const gemm::Cutter best(plan_of(kind), machine()), paper(plan_of(kind, GemmVariant::paper), machine());
    for (std::int64_t rows = 1; rows <= 40; ++rows) {
      for (std::int64_t columns = 31; columns <= 2 * n1; columns += 31) {
        CHECK(best.cut(rows, columns).cycles <= paper.cut(rows, columns).cycles);
      }
    }
    for (const gemm::CutStrip& strip : best.cut(30, 2 * n1).strips) {
      for (const gemm::CutBlock& block : strip.blocks) CHECK_FALSE(block.tile);
    }
  }
}

TEST_CASE("M and N tails as the plan cuts them reach 70 % of their busiest unit, calls included", "[gemm][cut]") {
  for (const Kind& kind : k_kinds) {
    const GemmPlan plan = plan_of(kind);
    const gemm::Cutter cutter(plan, machine());
    const std::int64_t vector = columns_of_vector(kind.dtype), k = cutter.k_call();
    double worst = 1, padded_worst = 1;
    std::string where;
    const auto share = [&](std::int64_t rows, std::int64_t vectors) {
      double bound = 0;
      std::int64_t cycles = 0;
      for (const gemm::CutStrip& strip : cutter.cut(rows, vectors * vector).strips) {
        for (const gemm::CutBlock& block : strip.blocks) {
          const std::int64_t of_block =
              std::min(columns_of(block, kind.dtype), vectors * vector - block.column) / vector;
          bound += bound_of(strip.rows, of_block, k);
          cycles += cycles_of(block, kind, k, plan.promotes());
        }
      }
      return bound / static_cast<double>(cycles);
    };
    for (std::int64_t whole : {6, 24}) {  // rows in whole M1 beside the tail
      for (std::int64_t rows = whole; rows < whole + k_gemm_m1; ++rows) {
        for (std::int64_t vectors = 1; vectors <= 8; ++vectors) {  // N tails alone, or beside whole N1
          CAPTURE(to_string(kind.dtype), plan.promotes(), rows, vectors);
          const double reached = share(rows, vectors);
          CHECK(reached >= 0.7);
          if (reached < worst) {
            worst = reached;
            where = fmt::format("{} x {}", rows, vectors * vector);
          }
        }
      }
    }
    // No whole M1: one sum an element, a multiply-add waits 6 cycles for the one before it whatever the units do.
    for (std::int64_t rows = 1; rows < k_gemm_m1; ++rows) {
      for (std::int64_t vectors = 1; vectors <= 8; ++vectors) {
        CAPTURE(to_string(kind.dtype), plan.promotes(), rows, vectors);
        const double units = bound_of(rows, vectors, 1), chain = isa::Pipeline{}.of(isa::row(isa::Mnemonic::VFMULAS32));
        const double reached = share(rows, vectors);
        CHECK(reached >= 0.7 * std::min(1.0, units / chain));
        padded_worst = std::min(padded_worst, reached * std::max(1.0, chain / units));
      }
    }
    WARN(
        fmt::format("{}{}: tails beside whole tiles reach at least {:.2f} (at {}); fewer rows than M1 {:.2f} of units "
                    "and chain",
                    to_string(kind.dtype), plan.promotes() ? " promoted" : "", worst, where, padded_worst));
  }
}

TEST_CASE("a gemm with tails has the bits of one that pads them", "[gemm][cut]") {
  const Kind kind = GENERATE(from_range(k_kinds));
  const GemmShape shape = GENERATE(values<GemmShape>({{24 * 7, 33, 37},
                                                      {24 * 13 - 5, 161, 131},
                                                      {24 * 3, 70, 96},
                                                      {24 * 11, 300, 40},
                                                      {24 * 16, 520, 20},
                                                      {23 * 10, 95, 260}}));
  INFO(to_string(kind.dtype) << " m=" << shape.m << " n=" << shape.n << " k=" << shape.k);
  const sim::ClusterOptions functional{sim::Depth::functional, false};
  const std::vector<float> x = rounded(random_matrix(shape.m, shape.k, 7), kind.dtype),
                           w = rounded(random_matrix(shape.k, shape.n, 8), kind.dtype);
  const auto run = [&](GemmVariant variant) {
    const GemmChoice choice{GemmDataflow::large_m, variant, kind.sums};
    const GemmPlan plan = plan_gemm(shape, kind.dtype, GemmTiles::of(kind.dtype, choice), choice, machine());
    GemmRun result = run_gemm(fresh(functional), plan, x, w);
    CHECK(result.result.findings.empty());
    CHECK(result.result.notes.empty());
    CHECK(result.guards_intact);
    return result.y;
  };
  const std::vector<float> best = run(GemmVariant::best), padded = run(GemmVariant::paper);
  CHECK(std::equal(best.begin(), best.end(), padded.begin(), same_bits));
}

}  // namespace mtsim::kernels
