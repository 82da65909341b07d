// SPDX-License-Identifier: Apache-2.0
// The microkernels for W as [n, k], on the bare executor, against scalar arithmetic in the order of theirs.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "bare_core.h"
#include "isa/schedule_view.h"
#include "kernels/gemm/gemm_program.h"
#include "reference.h"

namespace mtsim::kernels {
namespace {

using gemm::k_dot_n1;

/// One call of gemm_dot_1x32.
struct Dot {
  DType dtype = DType::f32;
  std::int64_t k = 64, w_pitch = 64;  // elements
  static constexpr std::int64_t x_at = 8, w_at = 65544, y_at = 600008, scratch_at = 700416;

  std::vector<float> x = rounded(random_matrix(1, k, 1), dtype);
  std::vector<float> w = rounded(random_matrix(k_dot_n1, w_pitch, 2), dtype);
  std::vector<float> y = random_matrix(1, k_dot_n1, 3);

  Defines defines() const { return {{"F16", dtype == DType::f16 ? 1 : 0}}; }
  std::vector<std::uint64_t> arguments() const {
    std::vector<std::uint64_t> result;
    for (const std::int64_t v : {x_at, w_at, y_at, k, bytes_of(dtype) * w_pitch, scratch_at})
      result.push_back(static_cast<std::uint64_t>(v));
    return result;
  }

  /// Each word of each lane sums its own k; then the words of a lane, lanes four apart, and the four that are left.
  float expected(std::int64_t row) const {
    const std::int64_t halves = dtype == DType::f16 ? 2 : 1, vector = 32 * halves;
    std::array<float, 16> lane{};
    for (int l = 0; l < 16; ++l) {
      std::array<float, 2> word{};
      for (std::int64_t at = 0; at < k; at += vector) {
        for (std::int64_t half = 0; half < halves; ++half) {
          for (int i = 0; i < 2; ++i) {
            const std::int64_t kk = at + 2 * halves * l + 2 * half + i;
            word[i] = fma_f32(w[row * w_pitch + kk], x[kk], word[i]);
          }
        }
      }
      lane[l] = fma_f32(1, word[0], word[1]);
    }
    std::array<float, 4> part{};
    const auto add = [](float a, float b) { return fma_f32(1, a, b); };
    for (int u = 0; u < 4; ++u) part[u] = add(add(lane[u], lane[4 + u]), add(lane[8 + u], lane[12 + u]));
    return add(y[row], add(add(part[0], part[1]), add(part[2], part[3])));
  }

  void put_operand(std::vector<std::byte>& am, std::int64_t at, const std::vector<float>& values) const {
    if (dtype == DType::f32)
      put(am, at, values);
    else
      put(am, at, bits_f16(values));
  }

  /// Runs it; fails when anything but Y and the scratch changes or Y is not, bit for bit, what it must be.
  sim::RunResult run() const {
    BareCore core;
    put_operand(core.am, x_at, x);
    put_operand(core.am, w_at, w);
    put(core.am, y_at, y);
    std::vector<std::byte> am = core.am;
    const sim::RunResult result = core.run("gemm_dot_1x32", "", arguments(), defines());
    CHECK(result.status == sim::RunStatus::done);
    std::vector<float> wanted;
    for (std::int64_t row = 0; row < k_dot_n1; ++row) wanted.push_back(expected(row));
    put(am, y_at, wanted);
    for (auto* memory : {&am, &core.am}) std::memset(memory->data() + scratch_at, 0, gemm::k_dot_scratch_bytes);
    CHECK(core.am == am);
    return result;
  }
};

}  // namespace

TEST_CASE("the 1x32 microkernel sums the products of each row of W in its own order, bit for bit", "[microkernel]") {
  const DType dtype = GENERATE(DType::f32, DType::f16);
  const std::int64_t k = GENERATE(64, 128, 192, 1024), pad = GENERATE(0, 20);
  INFO(to_string(dtype) << " k=" << k << " pad=" << pad);
  Dot{.dtype = dtype, .k = k, .w_pitch = k + pad}.run();
}

TEST_CASE("the 1x32 microkernel keeps subnormals, infinities and the canonical NaN", "[microkernel]") {
  const DType dtype = GENERATE(DType::f32, DType::f16);
  std::uint32_t state = GENERATE(range(1u, 4u));
  const std::vector<float> extremes = {0.0f,     -0.0f,    1.0f,     -2.0f,     0x1p-24f,
                                       0x1p-14f, 65504.0f, INFINITY, -INFINITY, NAN};
  const std::size_t usual = GENERATE(7u, 10u);  // without and with infinities and NaN
  Dot dot{.dtype = dtype};
  for (std::vector<float>* values : {&dot.x, &dot.w, &dot.y}) {
    for (float& value : *values) {
      state = state * 1664525u + 1013904223u;
      value = extremes[(state >> 16) % usual];
    }
  }
  dot.run();
}

TEST_CASE("the loop of the 1x32 microkernel takes a vector of 32 rows in 19 cycles, in FP16 in 22", "[microkernel]") {
  for (const auto& [f16, cycles] : {std::pair{0, 19}, {1, 22}}) {
    for (const isa::LoopSchedule& loop : isa::loops(program("gemm_dot_1x32", {}, {{"F16", f16}}), {})) {
      if (loop.label == "loop.kernel") CHECK(loop.initiation_interval == cycles);
    }
  }
}

TEST_CASE("a row of FP32 sums becomes FP16 in memory order, also where it lies", "[microkernel]") {
  const std::uint64_t n = GENERATE(64u, 192u, 512u);
  const std::uint64_t sums_at = 4096, y_at = GENERATE(4096u, 600008u);
  std::vector<float> sums = normal_matrix(1, static_cast<std::int64_t>(n), 1);
  const std::vector<float> special = {NAN, INFINITY, -INFINITY, 65520.0f, 0x1p-25f, -0.0f};
  std::copy(special.begin(), special.end(), sums.begin());
  BareCore core;
  put(core.am, sums_at, sums);
  std::vector<std::byte> am = core.am;
  CHECK(core.run("gemm_narrow_row", "", {sums_at, y_at, n}).status == sim::RunStatus::done);
  put(am, static_cast<std::int64_t>(y_at), bits_f16(sums));
  CHECK(core.am == am);
}

TEST_CASE("the ends of rows in AM are set to zero, a vector a row, and nothing else", "[microkernel]") {
  const std::uint64_t rows = GENERATE(1u, 7u), pitch = GENERATE(128u, 264u);
  BareCore core;
  std::vector<std::byte> expected = core.am;
  for (std::uint64_t row = 0; row < rows; ++row) std::memset(expected.data() + 264 + row * pitch, 0, 128);
  const sim::RunResult result = core.run("zero_am_column", "", {264, rows, pitch});
  CHECK(result.status == sim::RunStatus::done);
  CHECK(result.cycles == static_cast<std::int64_t>(8 * rows + 4));
  CHECK(core.am == expected);
}

}  // namespace mtsim::kernels
