// SPDX-License-Identifier: Apache-2.0
// The template gemm_tile.s at every size the registers hold: values bit for bit, cycles against the busiest unit.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "isa/checker.h"
#include "kernels/gemm/gemm_tile.h"
#include "reference.h"
#include "sim/core/executor.h"

namespace mtsim::kernels {
namespace {

/// Matrices of one element type, values kept as FP32.
struct Elements {
  DType dtype;
  float round(float value) const { return dtype == DType::f16 ? static_cast<float>(from_f16(to_f16(value))) : value; }
  float fma(float a, float b, float c) const { return dtype == DType::f16 ? fma_f16(a, b, c) : fma_f32(a, b, c); }
  void store(std::byte* to, float value) const {
    const std::uint16_t half = to_f16(value);
    if (dtype == DType::f16) {
      std::memcpy(to, &half, 2);
    } else {
      std::memcpy(to, &value, 4);
    }
  }
};

struct Matrix {
  std::int64_t rows, columns, pitch;  // pitch in elements
  std::vector<float> values;
  float& at(std::int64_t i, std::int64_t j) { return values[static_cast<std::size_t>(i * pitch + j)]; }
};

Matrix random(std::int64_t rows, std::int64_t columns, std::int64_t pitch, std::uint32_t seed, const Elements& type) {
  Matrix m{rows, columns, pitch, random_matrix(rows, pitch, seed)};
  for (float& v : m.values) v = type.round(v);
  return m;
}

struct Run {
  sim::RunResult result;
  std::int64_t wrong = 0;  // bytes of SM or AM that are not what they must be
};

Run run(const GemmTile& tile, std::int64_t k, bool accumulate, const isa::Pipeline& pipeline, bool extremes = false) {
  const Elements type{tile.dtype}, y_type{tile.promotes ? DType::f32 : tile.dtype};
  const std::int64_t size = bytes_of(tile.dtype), columns = tile.columns(), quad = 8 / size;
  const std::int64_t y_size = bytes_of(y_type.dtype);
  const GemmTileLoop loop = gemm_tile_loop(tile, pipeline);
  Matrix x = random(tile.rows, k, (k + quad - 1) / quad * quad + quad, 1, type);
  Matrix w = random(k, columns, columns + 16 / size, 2, type);
  Matrix y = random(tile.rows, columns, columns + 32 / y_size, 3, y_type);
  if (extremes) {
    using limits = std::numeric_limits<float>;
    const float values[] = {0.0f, -0.0f, limits::denorm_min(), 0x1p-24f, -0x1p-20f, limits::infinity(), 65504, -3e38f,
                            1.0f, -1.0f, limits::quiet_NaN()};
    for (std::size_t i = 0; i < x.values.size(); i += 3) x.values[i] = type.round(values[i % std::size(values)]);
    for (std::size_t i = 0; i < w.values.size(); i += 7) w.values[i] = type.round(values[i % std::size(values)]);
  }
  std::vector<std::byte> sm(65536, std::byte{0xEE}), am(786432, std::byte{0xEE});
  const std::int64_t x_at = 64, w_at = 4096, y_at = 600000;
  const auto place = [](std::vector<std::byte>& memory, std::int64_t at, const Matrix& m, const Elements& elements) {
    const std::int64_t bytes = bytes_of(elements.dtype);
    for (std::size_t i = 0; i < m.values.size(); ++i)
      elements.store(memory.data() + at + static_cast<std::int64_t>(i) * bytes, m.values[i]);
  };
  place(sm, x_at, x, type);
  place(am, w_at, w, type);
  place(am, y_at, y, y_type);
  std::vector<std::byte> sm_wanted = sm, am_wanted = am;
  for (std::int64_t i = 0; i < tile.rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      std::vector<float> sums(static_cast<std::size_t>(loop.parts), 0.0f);
      // FP32 sums of FP16: where VFMULAHLS and VFMULAHHS find the column in its group of 64.
      const std::int64_t in_y = tile.promotes ? j / 64 * 64 + j % 4 / 2 * 32 + j % 64 / 4 * 2 + j % 2 : j;
      if (accumulate && !tile.promotes) sums[0] = y.at(i, j);
      for (std::int64_t kk = 0; kk < k; ++kk) {
        float& sum = sums[static_cast<std::size_t>(kk % loop.parts)];
        sum = type.fma(x.at(i, kk), w.at(kk, j), sum);
      }
      for (std::size_t p = 1; p < sums.size(); ++p) sums[0] = type.fma(1.0f, sums[p], sums[0]);
      if (tile.promotes) sums[0] = fma_f32(1.0f, sums[0], accumulate ? y.at(i, in_y) : 0.0f);
      y_type.store(am_wanted.data() + y_at + (i * y.pitch + in_y) * y_size, sums[0]);
    }
  }
  const isa::Program& program = gemm_tile_program(tile, pipeline);
  const sim::DecodedProgram decoded(program, pipeline);
  sim::Executor executor(sm, am);
  const std::int64_t arguments[] = {x_at, w_at, y_at, k, x.pitch * size, w.pitch * size, y.pitch * y_size};
  for (std::size_t i = 0; i < std::size(arguments); ++i)
    executor.registers().r[program.parameters[i].reg.index] = static_cast<std::uint64_t>(arguments[i]);
  executor.registers().r[63] = sim::k_return_address;
  Run outcome{executor.run(decoded, {.entry = accumulate ? "accumulate" : "write_only"})};
  for (std::size_t i = 0; i < am.size(); ++i) outcome.wrong += am[i] != am_wanted[i];
  for (std::size_t i = 0; i < sm.size(); ++i) outcome.wrong += sm[i] != sm_wanted[i];
  return outcome;
}

/// By rows: the most vectors that the scheduler finds registers for, of eight. A size that is lost is seen here.
int most_vectors(int rows, DType dtype) {
  constexpr std::array f32 = {8, 8, 8, 8, 8, 8, 7, 6, 5, 5, 4, 4, 4, 3, 3, 3};
  constexpr std::array f16 = {8, 8, 8, 8, 7, 6, 5, 5, 4, 4, 3, 3, 3, 3, 3, 3};
  return (dtype == DType::f16 ? f16 : f32).at(static_cast<std::size_t>(rows - 1));
}

/// Every size the scheduler finds registers for, up to eight vectors a row.
const std::vector<GemmTile>& feasible_tiles() {
  static const std::vector<GemmTile> tiles = [] {
    std::vector<GemmTile> found;
    for (const DType dtype : k_dtypes) {
      for (int rows = 1; rows <= k_max_tile_rows; ++rows) {
        for (int vectors = 1; vectors <= 8; ++vectors) {
          const GemmTile tile{rows, vectors, dtype};
          CAPTURE(rows, vectors, to_string(dtype));
          try {
            gemm_tile_program(tile, {});
            found.push_back(tile);
            CHECK(vectors <= most_vectors(rows, dtype));
          } catch (const KernelError&) {
            // Any K from one pass on takes a loop that is not pipelined as well. Loads run ahead in it: four k-steps of
            // W1 and X1 in FP16.
            CHECK(vectors > most_vectors(rows, dtype));
          }
        }
      }
    }
    return found;
  }();
  return tiles;
}

/// Those a GEMM may call: whatever its tails are, the registers hold them.
std::vector<GemmTile> gemm_tiles() {
  std::vector<GemmTile> tiles;
  for (const auto& [dtype, promotes] : {std::pair(DType::f32, false), {DType::f16, false}, {DType::f16, true}}) {
    for (int rows = 1; rows <= k_max_tile_rows; ++rows) {
      for (int vectors = 1; gemm_tile_fits({rows, vectors, dtype, true, promotes}); ++vectors) {
        tiles.push_back({rows, vectors, dtype, true, promotes});
      }
    }
  }
  return tiles;
}

std::vector<std::uint64_t> arguments(const GemmTile& tile, std::int64_t k) {
  const auto size = static_cast<std::uint64_t>(bytes_of(tile.dtype)),
             columns = static_cast<std::uint64_t>(tile.columns());
  return {0, 0, 0, static_cast<std::uint64_t>(k), static_cast<std::uint64_t>(k) * size, columns * size, columns * 4};
}

isa::Pipeline what_if() {
  isa::Pipeline pipeline;
  pipeline.override(isa::Mnemonic::VFMULAS32, 8);
  pipeline.override(isa::Mnemonic::VLDDW, 12);
  pipeline.override(isa::Mnemonic::VLDW, 12);
  pipeline.remove(isa::Unit::VMAC3);
  return pipeline;
}

}  // namespace

TEST_CASE("a generated tile equals chains of fused multiply-adds bit for bit, at every size", "[tile]") {
  for (const GemmTile& tile : feasible_tiles()) {
    const int steps = gemm_tile_loop(tile, {}).steps;
    CAPTURE(tile.rows, tile.vectors, to_string(tile.dtype), steps);
    // One pass runs the loop that is not pipelined, 9 the pipelined one.
    for (const std::int64_t passes : {1, 9}) {
      const Run outcome = run(tile, passes * steps, passes == 1, {});
      REQUIRE(outcome.result.status == sim::RunStatus::done);
      CHECK(outcome.wrong == 0);
    }
  }
}

TEST_CASE("every tile a GEMM may call has one sum an element, and takes the cycles it is chosen by", "[tile]") {
  double most = 1;
  for (const GemmTile& tile : gemm_tiles()) {
    CAPTURE(tile.rows, tile.vectors, to_string(tile.dtype), tile.promotes);
    const isa::Program& program = gemm_tile_program(tile, {});
    std::string why;
    CHECK((isa::timing_is_static(program, &why) && isa::footprint_is_static(program, &why)));
    CHECK(why == "");
    CHECK(isa::assumed_shapes(program).empty());
    CHECK(gemm_tile_of(program) == tile);
    REQUIRE(gemm_tile_loop(tile, {}).parts == 1);
    const GemmK k = gemm_k(tile.dtype);
    for (const std::int64_t count : {k.least, 9 * k.unit}) {
      const Run outcome = run(tile, count, count == k.least || tile.rows % 2 == 0, {});
      REQUIRE(outcome.result.status == sim::RunStatus::done);
      CHECK(outcome.wrong == 0);
    }
    for (const std::int64_t count : {64, 128, 256}) {
      const sim::DecodedProgram decoded(program, {});
      for (const char* entry : {"accumulate", "write_only"}) {
        const std::int64_t cycles = sim::profile(decoded, arguments(tile, count), {.entry = entry}).result.cycles;
        const double ratio = static_cast<double>(gemm_tile_cycles(tile, count, {})) / static_cast<double>(cycles);
        CAPTURE(count, entry, cycles);
        CHECK(ratio >= 1);
        CHECK(ratio <= 1.1);
        most = std::max(most, ratio);
        const std::int64_t least = gemm_tile_least_cycles(tile, count, {});
        CHECK(least <= cycles);
        CHECK(static_cast<double>(cycles) <= 1.1 * static_cast<double>(least));
      }
    }
  }
  WARN(fmt::format("estimated cycles / cycles: 1.00 to {:.2f}", most));
}

TEST_CASE("a generated tile keeps subnormals, infinities and the canonical NaN", "[tile]") {
  for (const GemmTile& tile : {GemmTile{6, 4, DType::f32},
                               {3, 1, DType::f32},
                               {6, 4, DType::f16},
                               {1, 3, DType::f16},
                               {7, 5, DType::f16, true, true}}) {
    CAPTURE(tile.rows, tile.vectors, to_string(tile.dtype));
    CHECK(run(tile, 24, true, {}, true).wrong == 0);
  }
}

TEST_CASE("generated tiles are right on another machine", "[tile][whatif]") {
  for (const GemmTile& tile :
       {GemmTile{6, 4, DType::f32}, {2, 3, DType::f32}, {6, 4, DType::f16}, {1, 1, DType::f16}}) {
    CAPTURE(tile.rows, tile.vectors, to_string(tile.dtype));
    CHECK(run(tile, 52, true, what_if()).wrong == 0);
  }
}

TEST_CASE("every generated tile reaches 70 % of its resource bound and uses no assumed packet shape", "[tile]") {
  double worst = 1, worst_call = 1;
  for (const GemmTile& tile : feasible_tiles()) {
    CAPTURE(tile.rows, tile.vectors, to_string(tile.dtype));
    const isa::Program& program = gemm_tile_program(tile, {});
    CHECK(isa::assumed_shapes(program).empty());
    const GemmTileLoop loop = gemm_tile_loop(tile, {});
    REQUIRE(program.linear_loops.size() == 2);
    for (const isa::LoopReport& report : program.linear_loops) {
      int busiest = 0;  // of all units and packet rules, before any unit is chosen
      for (const isa::ResourceBound& bound : report.resources) {
        if (bound.slots > 0) busiest = std::max(busiest, bound.cycles);
      }
      // One row of up to four vectors has too little work for the delay slots of SBR, and no other tile has.
      const int branch = isa::Pipeline{}.branch_cycles();
      CHECK((busiest < branch) == (tile.rows == 1 && tile.vectors <= 4));
      if (busiest < branch) {
        CHECK(report.interval == branch);
        busiest = branch;
      }
      const double share = static_cast<double>(busiest) / report.interval;
      CHECK(share >= 0.7);
      worst = std::min(worst, share);
      // A call of K = 512, prologue, epilogue and Y1 included.
      const double bound = static_cast<double>(busiest) * 512 / loop.steps;
      const sim::RunResult call =
          sim::profile(sim::DecodedProgram(program, {}), arguments(tile, 512), {.entry = "accumulate"}).result;
      worst_call = std::min(worst_call, bound / static_cast<double>(call.cycles));
    }
  }
  WARN(fmt::format("busiest unit / initiation interval: at least {:.2f}; of a whole call with K = 512: {:.2f}", worst,
                   worst_call));
  CHECK(worst_call >= 0.7);
}

TEST_CASE("a tile that the registers do not hold is refused with its size", "[tile]") {
  CHECK_THROWS_WITH(gemm_tile_program({16, 8, DType::f32}, {}),
                    Catch::Contains("16 rows x 8 vectors (256 columns, f32)") && Catch::Contains("registers"));
  CHECK_THROWS_WITH(gemm_tile_program({17, 1, DType::f32}, {}), Catch::Contains("1 to 16 rows"));
  CHECK_THROWS_WITH(gemm_tile_program({6, 4, DType::f32, true, true}, {}), Catch::Contains("no FP16 sums to promote"));
}

}  // namespace mtsim::kernels
