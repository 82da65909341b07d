// SPDX-License-Identifier: Apache-2.0
// The FP16 microkernel and what turns its FP32 sums into FP16, on the bare executor, against scalar arithmetic.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "bare_core.h"
#include "isa/schedule_view.h"
#include "kernels/gemm/gemm.h"
#include "reference.h"

namespace mtsim::kernels {
namespace {

constexpr std::int64_t k_n1 = gemm_n1(DType::f16);

/// Where element j of a row of FP32 sums lies: in each group of 64, pairs 4l, 4l+1 of all lanes, then pairs 4l+2, 4l+3.
std::int64_t in_sums(std::int64_t j) {
  const std::int64_t group = j / 64, lane = j % 64 / 4, part = j % 4;
  return 64 * group + 32 * (part / 2) + 2 * lane + part % 2;
}

/// VFMULAHLS/HHS with 1.0: an FP16 value added to an FP32 sum.
float promote(float value, float sum) { return fma_f32(value, 1.0f, sum); }

enum class Entry { accumulate, write_only, accumulate_f32, write_only_f32 };
const char* name(Entry entry) {
  static const char* const names[] = {"accumulate", "write_only", "accumulate_f32", "write_only_f32"};
  return names[static_cast<int>(entry)];
}
bool in_f32(Entry entry) { return entry == Entry::accumulate_f32 || entry == Entry::write_only_f32; }

/// One call of gemm_f16_6x256 with chosen pitches in elements.
struct Tile {
  std::int64_t k = 256, x_pitch = 256, w_pitch = 256, y_pitch = 256;
  static constexpr std::int64_t x_at = 264, w_at = 4096, y_at = 600016;  // x only 8-byte, y only 16-byte aligned

  std::vector<float> x = rounded(random_matrix(k_gemm_m1, x_pitch, 1), DType::f16);
  std::vector<float> w = rounded(random_matrix(k, w_pitch, 2), DType::f16);
  std::vector<float> y = rounded(random_matrix(k_gemm_m1, y_pitch, 3), DType::f16);

  std::vector<std::uint64_t> arguments(Entry entry) const {
    std::vector<std::uint64_t> result;
    for (const std::int64_t v : {x_at, w_at, y_at, k, 2 * x_pitch, 2 * w_pitch, (in_f32(entry) ? 4 : 2) * y_pitch})
      result.push_back(static_cast<std::uint64_t>(v));
    return result;
  }

  /// What AM's Y must hold afterwards: 256 columns computed, the rest of each row as it was.
  std::vector<float> expected(Entry entry) const {
    std::vector<float> result = y;
    for (std::int64_t i = 0; i < k_gemm_m1; ++i) {
      for (std::int64_t j = 0; j < k_n1; ++j) {
        float& out = result[i * y_pitch + (in_f32(entry) ? in_sums(j) : j)];
        float sum = entry == Entry::accumulate ? out : 0.0f;
        for (std::int64_t kk = 0; kk < k; ++kk) sum = fma_f16(x[i * x_pitch + kk], w[kk * w_pitch + j], sum);
        out = in_f32(entry) ? promote(sum, entry == Entry::accumulate_f32 ? out : 0.0f) : sum;
      }
    }
    return result;
  }

  void put_y(std::vector<std::byte>& am, const std::vector<float>& values, Entry entry) const {
    if (in_f32(entry))
      put(am, y_at, values);
    else
      put(am, y_at, bits_f16(values));
  }

  /// Runs it; fails when anything but Y changes or Y is not, bit for bit, what it must be.
  sim::RunResult run(Entry entry) const {
    BareCore core;
    put(core.sm, x_at, bits_f16(x));
    put(core.am, w_at, bits_f16(w));
    put_y(core.am, y, entry);
    std::vector<std::byte> sm = core.sm, am = core.am;
    const sim::RunResult result = core.run("gemm_f16_6x256", name(entry), arguments(entry));
    CHECK(result.status == sim::RunStatus::done);
    put_y(am, expected(entry), entry);
    CHECK(core.sm == sm);
    CHECK(core.am == am);
    return result;
  }
};

const std::vector<float> k_extremes = {0.0f,         -0.0f,     0x1p-24f,
                                       -0x1p-24f,  // least subnormal
                                       0x1p-14f,
                                       0x1.ff8p-15f,  // least normal, largest subnormal
                                       65504.0f,     -65504.0f, INFINITY, -INFINITY, NAN,
                                       1.0f,         -1.0f,     0x1p-12f, 256.0f};

/// Fills with extremes; NaN never meets another payload, since FP16 operands come from bits_f16.
void fill_with_extremes(std::vector<float>& values, std::uint32_t& state) {
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = k_extremes[(state >> 16) % k_extremes.size()];
  }
}

}  // namespace

TEST_CASE("the 6x256 microkernel equals a chain of FP16 multiply-adds bit for bit", "[microkernel][f16]") {
  const Entry entry = GENERATE(Entry::accumulate, Entry::write_only, Entry::accumulate_f32, Entry::write_only_f32);
  const std::int64_t k = GENERATE(8, 12, 16, 252);
  const std::int64_t pad = GENERATE(0, 1);
  INFO(name(entry) << " k=" << k << " padded pitches=" << pad);
  Tile{.k = k, .x_pitch = k + 12 * pad, .w_pitch = 256 + 8 * pad, .y_pitch = 256 + 64 * pad}.run(entry);
}

TEST_CASE("the 6x256 microkernel keeps subnormals, signed zeros, infinities and the canonical NaN",
          "[microkernel][f16]") {
  const Entry entry = GENERATE(Entry::accumulate, Entry::write_only, Entry::accumulate_f32, Entry::write_only_f32);
  std::uint32_t state = GENERATE(range(1u, 6u));
  INFO(name(entry) << " seed " << state);
  Tile tile{.k = 8, .x_pitch = 8};
  for (std::vector<float>* matrix : {&tile.x, &tile.w, &tile.y}) fill_with_extremes(*matrix, state);
  tile.run(entry);
}

TEST_CASE("a call of the 6x256 microkernel takes 8 K + 22 cycles, 8 K + 39 with FP32 sums", "[microkernel][f16]") {
  for (const std::int64_t k : {8, 12, 256}) {
    for (const Entry entry : {Entry::accumulate, Entry::write_only, Entry::accumulate_f32, Entry::write_only_f32}) {
      CHECK(Tile{.k = k, .x_pitch = k}.run(entry).cycles == 8 * k + (in_f32(entry) ? 39 : 22));
    }
  }
}

TEST_CASE("the loop of the 6x256 microkernel takes 32 cycles for four k, every VMAC slot used, 192 MAC a cycle",
          "[microkernel][f16]") {
  const isa::Program& kernel = program("gemm_f16_6x256");
  const auto loops = isa::loops(kernel, {});
  REQUIRE(loops.size() == 1);
  const isa::LoopSchedule& loop = loops[0];
  const auto issues = [&](isa::Unit unit) { return loop.issues[static_cast<int>(unit)]; };
  CHECK(loop.initiation_interval == 32);
  CHECK(loop.busiest_slot == 32);
  const int fmas = issues(isa::Unit::VMAC1) + issues(isa::Unit::VMAC2) + issues(isa::Unit::VMAC3);
  CHECK(fmas == 96);
  CHECK(fmas * 64 / loop.initiation_interval == 192);
  CHECK(issues(isa::Unit::SLDST) == 6);                               // SLDW of 6 rows, four k
  CHECK(issues(isa::Unit::SMAC1) == 6);                               // SVBCAST
  CHECK(issues(isa::Unit::VIEU) == 24);                               // VFEXTH16xx
  CHECK(issues(isa::Unit::VLDST1) + issues(isa::Unit::VLDST2) == 8);  // VLDDW of W1
}

TEST_CASE("the 6x256 microkernel reads X1, W1 and Y1 and nothing beyond", "[microkernel][f16]") {
  const Tile tile{.k = 252, .x_pitch = 256, .w_pitch = 264, .y_pitch = 320};
  const sim::DecodedProgram decoded(program("gemm_f16_6x256"), {});
  const Entry entry = GENERATE(Entry::accumulate, Entry::write_only, Entry::accumulate_f32, Entry::write_only_f32);
  INFO(name(entry));
  const auto profile = sim::profile(decoded, tile.arguments(entry), {.entry = name(entry)});
  REQUIRE(profile.result.status == sim::RunStatus::done);
  using Span = std::pair<std::int64_t, std::int64_t>;
  const auto extent = [](const sim::Extent& e) { return e.empty() ? Span{0, 0} : Span{e.lo, e.hi}; };
  const std::int64_t y_bytes = in_f32(entry) ? 4 : 2, y_end = y_bytes * (5 * tile.y_pitch + k_n1);
  const bool reads_y = entry == Entry::accumulate || entry == Entry::accumulate_f32;
  CHECK(extent(profile.pointers[0].read) == Span{0, 2 * (5 * tile.x_pitch + tile.k)});
  CHECK(extent(profile.pointers[1].read) == Span{0, 2 * ((tile.k - 1) * tile.w_pitch + k_n1)});
  CHECK(extent(profile.pointers[2].read) == Span{0, reads_y ? y_end : 0});
  CHECK(extent(profile.pointers[2].write) == Span{0, y_end});
}

TEST_CASE("FP32 sums become FP16 rows: rounded once, alone or added to what is there", "[microkernel][f16]") {
  const bool merge = GENERATE(false, true);
  const bool in_place = !merge && GENERATE(false, true);
  std::uint32_t state = GENERATE(1u, 2u);
  INFO((merge ? "merge" : "narrow") << (in_place ? " in place" : "") << " seed " << state);
  constexpr std::int64_t k_sums_at = 4096, k_sums_pitch = 320, k_y_pitch = 264;
  const std::int64_t y_at = in_place ? k_sums_at : 600016, y_bytes = in_place ? 4 * k_sums_pitch : 2 * k_y_pitch;
  std::vector<float> sums = normal_matrix(k_gemm_m1, k_sums_pitch, state);
  std::vector<float> y = rounded(normal_matrix(k_gemm_m1, k_y_pitch, state + 1), DType::f16);
  for (float& value : sums) value *= state % 2 == 1 ? 1.0f : 0x1p-16f;  // the second time in FP16's subnormals
  const std::vector<float> special = {NAN, INFINITY, -INFINITY, 65519.99f, 65520.0f, -65536.0f, 3e38f, 0x1p-25f, -0.0f};
  std::copy(special.begin(), special.end(), sums.begin());

  BareCore core;
  put(core.am, k_sums_at, sums);
  if (!in_place) put(core.am, y_at, bits_f16(y));
  std::vector<std::byte> am = core.am;
  const auto result =
      core.run("gemm_narrow_6x256", merge ? "merge" : "narrow",
               {k_sums_at, static_cast<std::uint64_t>(y_at), 4 * k_sums_pitch, static_cast<std::uint64_t>(y_bytes)});
  CHECK(result.status == sim::RunStatus::done);
  CHECK(result.cycles == (merge ? 46 : 38));
  for (std::int64_t i = 0; i < k_gemm_m1; ++i) {
    std::vector<float> row(static_cast<std::size_t>(k_n1));
    for (std::int64_t j = 0; j < k_n1; ++j) {
      const float sum = sums[i * k_sums_pitch + in_sums(j)];
      row[j] = merge ? promote(y[i * k_y_pitch + j], sum) : sum;
    }
    put(am, y_at + i * y_bytes, bits_f16(row));
  }
  CHECK(core.am == am);
}

}  // namespace mtsim::kernels
