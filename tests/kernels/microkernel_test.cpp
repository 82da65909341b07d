// SPDX-License-Identifier: Apache-2.0
// The microkernels on the bare executor, against scalar arithmetic.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cstring>
#include <limits>
#include <vector>

#include "bare_core.h"
#include "isa/schedule_view.h"
#include "kernels/gemm/gemm.h"
#include "kernels/library.h"
#include "reference.h"
#include "sim/core/executor.h"

namespace mtsim::kernels {
namespace {

constexpr std::int64_t k_n1 = gemm_n1(DType::f32);

/// One call of gemm_f32_6x128 with chosen pitches in elements.
struct Tile {
  std::int64_t k = 256, x_pitch = 256, w_pitch = 128, y_pitch = 128;
  static constexpr std::int64_t x_at = 260, w_at = 4096, y_at = 600000;  // x only 4-byte aligned

  std::vector<float> x = random_matrix(k_gemm_m1, x_pitch, 1);
  std::vector<float> w = random_matrix(k, w_pitch, 2);
  std::vector<float> y = random_matrix(k_gemm_m1, y_pitch, 3);

  std::vector<std::uint64_t> arguments() const {
    std::vector<std::uint64_t> result;
    for (const std::int64_t v : {x_at, w_at, y_at, k, 4 * x_pitch, 4 * w_pitch, 4 * y_pitch}) {
      result.push_back(static_cast<std::uint64_t>(v));
    }
    return result;
  }

  /// What AM's Y must hold afterwards: 128 columns computed, the rest of each row as it was.
  std::vector<float> expected(bool accumulate) const {
    std::vector<float> result = y;
    for (std::int64_t i = 0; i < k_gemm_m1; ++i) {
      for (std::int64_t j = 0; j < k_n1; ++j) {
        float sum = accumulate ? y[i * y_pitch + j] : 0.0f;
        for (std::int64_t kk = 0; kk < k; ++kk) sum = fma_f32(x[i * x_pitch + kk], w[kk * w_pitch + j], sum);
        result[i * y_pitch + j] = sum;
      }
    }
    return result;
  }

  /// Runs it; fails when anything but Y changes or Y is not, bit for bit, what it must be.
  sim::RunResult run(bool accumulate) const {
    BareCore core;
    put(core.sm, x_at, x);
    put(core.am, w_at, w);
    put(core.am, y_at, y);
    std::vector<std::byte> sm = core.sm, am = core.am;
    const sim::RunResult result = core.run("gemm_f32_6x128", accumulate ? "accumulate" : "write_only", arguments());
    CHECK(result.status == sim::RunStatus::done);
    const std::vector<float> wanted = expected(accumulate);
    put(am, y_at, wanted);
    CHECK(core.sm == sm);
    CHECK(core.am == am);
    return result;
  }
};

}  // namespace

TEST_CASE("the 6x128 microkernel equals a chain of fused multiply-adds bit for bit", "[microkernel]") {
  const bool accumulate = GENERATE(true, false);
  const std::int64_t k = GENERATE(4, 6, 8, 250, 256);
  const std::int64_t pad = GENERATE(0, 1);
  Tile tile{.k = k, .x_pitch = k + 3 * pad, .w_pitch = 128 + 4 * pad, .y_pitch = 128 + 64 * pad};
  INFO("k=" << k << " accumulate=" << accumulate << " padded pitches=" << pad);
  tile.run(accumulate);
}

TEST_CASE("the 6x128 microkernel keeps subnormals, signed zeros, infinities and the canonical NaN", "[microkernel]") {
  using limits = std::numeric_limits<float>;
  const std::vector<float> extremes = {0.0f,
                                       -0.0f,
                                       limits::denorm_min(),
                                       -limits::denorm_min(),
                                       limits::min(),
                                       limits::max(),
                                       -limits::max(),
                                       limits::infinity(),
                                       -limits::infinity(),
                                       limits::quiet_NaN(),
                                       1.0f,
                                       -1.0f,
                                       std::bit_cast<float>(0xFFC12345u),
                                       std::bit_cast<float>(0x7F812345u),
                                       1e-30f,
                                       3e-20f};
  const bool accumulate = GENERATE(true, false);
  const std::uint32_t seed = GENERATE(range(1, 6));
  Tile tile{.k = 4, .x_pitch = 4};
  std::uint32_t state = seed;
  const auto pick = [&] {
    state = state * 1664525u + 1013904223u;
    return extremes[(state >> 16) % extremes.size()];
  };
  for (std::vector<float>* matrix : {&tile.x, &tile.w, &tile.y}) std::generate(matrix->begin(), matrix->end(), pick);
  INFO("seed " << seed);
  tile.run(accumulate);
}

TEST_CASE("a call of the 6x128 microkernel takes 8 K + 22 cycles", "[microkernel]") {
  for (const std::int64_t k : {4, 6, 250, 256}) {
    for (const bool accumulate : {true, false}) {
      const sim::RunResult result = Tile{.k = k, .x_pitch = k}.run(accumulate);
      CHECK(result.cycles == 8 * k + 22);
      CHECK(result.idles == 0);
    }
  }
}

TEST_CASE("the loop of the 6x128 microkernel is Table I: 16 cycles, every VMAC slot used, 96 MAC a cycle",
          "[microkernel]") {
  const isa::Program& kernel = program("gemm_f32_6x128");
  const auto loops = isa::loops(kernel, {});
  REQUIRE(loops.size() == 1);
  const isa::LoopSchedule& loop = loops[0];
  const auto issues = [&](isa::Unit unit) { return loop.issues[static_cast<int>(unit)]; };
  CHECK(loop.label == "loop");
  CHECK(loop.initiation_interval == 16);
  CHECK(loop.busiest_slot == 16);
  const int fmas = issues(isa::Unit::VMAC1) + issues(isa::Unit::VMAC2) + issues(isa::Unit::VMAC3);
  CHECK(fmas == 48);
  CHECK(fmas * 32 / loop.initiation_interval == 96);
  CHECK(issues(isa::Unit::SLDST) == 12);                              // SLDH of 6 rows, two k
  CHECK(issues(isa::Unit::SIEU) == 12);                               // SBALE2
  CHECK(issues(isa::Unit::SMAC1) == 12);                              // SVBCAST
  CHECK(issues(isa::Unit::VLDST1) + issues(isa::Unit::VLDST2) == 4);  // VLDDW of W1
}

TEST_CASE("the 6x128 microkernel reads X1, W1 and Y1 and nothing beyond", "[microkernel]") {
  const Tile tile{.k = 250, .x_pitch = 253, .w_pitch = 132, .y_pitch = 192};
  const sim::DecodedProgram decoded(program("gemm_f32_6x128"), {});
  const bool accumulate = GENERATE(true, false);
  const auto profile = sim::profile(decoded, tile.arguments(), {.entry = accumulate ? "accumulate" : "write_only"});
  REQUIRE(profile.result.status == sim::RunStatus::done);
  const auto extent = [](const sim::Extent& e) {
    return e.empty() ? std::pair<std::int64_t, std::int64_t>{0, 0} : std::pair{e.lo, e.hi};
  };
  const std::int64_t x_end = 4 * (5 * tile.x_pitch + tile.k), w_end = 4 * ((tile.k - 1) * tile.w_pitch + 128),
                     y_end = 4 * (5 * tile.y_pitch + 128);
  CHECK(extent(profile.pointers[0].read) == std::pair<std::int64_t, std::int64_t>{0, x_end});
  CHECK(extent(profile.pointers[1].read) == std::pair<std::int64_t, std::int64_t>{0, w_end});
  CHECK(extent(profile.pointers[2].read) == std::pair<std::int64_t, std::int64_t>{0, accumulate ? y_end : 0});
  CHECK(extent(profile.pointers[2].write) == std::pair<std::int64_t, std::int64_t>{0, y_end});
}

TEST_CASE("all host instruction-set levels compute the same bits", "[microkernel]") {
  const Tile tile{.k = 64, .x_pitch = 64};
  const sim::DecodedProgram decoded(program("gemm_f32_6x128"), {});
  std::vector<std::vector<std::byte>> results;
  for (const sim::HostLevel level : sim::supported_host_levels()) {
    BareCore core;
    put(core.sm, Tile::x_at, tile.x);
    put(core.am, Tile::w_at, tile.w);
    sim::Executor executor(core.sm, core.am, level);
    const auto arguments = tile.arguments();
    for (std::size_t i = 0; i < arguments.size(); ++i) executor.registers().r[10 + 2 * i] = arguments[i];
    executor.registers().r[63] = sim::k_return_address;
    REQUIRE(executor.run(decoded, {.entry = "write_only"}).status == sim::RunStatus::done);
    results.push_back(core.am);
  }
  for (const auto& result : results) CHECK(result == results[0]);
}

TEST_CASE("the pad of X is set to zero 8 bytes a row and nothing else", "[microkernel]") {
  const std::uint64_t rows = GENERATE(6, 30), pitch = GENERATE(16, 1024);
  BareCore core;
  std::vector<std::byte> expected = core.sm;
  for (std::uint64_t row = 0; row < rows; ++row) std::memset(expected.data() + 264 + row * pitch, 0, 8);
  const sim::RunResult result = core.run("zero_sm_column", "", {264, rows, pitch});
  CHECK(result.status == sim::RunStatus::done);
  CHECK(result.cycles == static_cast<std::int64_t>(8 * rows / 6 + 6));
  CHECK(core.sm == expected);
}

TEST_CASE("the pad of W is set to zero in whole rows and nothing else", "[microkernel]") {
  const std::uint64_t bytes = GENERATE(512, 3072);
  BareCore core;
  std::vector<std::byte> expected = core.am;
  std::memset(expected.data() + 4096, 0, bytes);
  const sim::RunResult result = core.run("zero_am", "", {4096, bytes});
  CHECK(result.status == sim::RunStatus::done);
  CHECK(result.cycles == static_cast<std::int64_t>(8 * bytes / 512 + 4));
  CHECK(core.am == expected);
}

}  // namespace mtsim::kernels
