// SPDX-License-Identifier: Apache-2.0
// Softmax on the cluster against libm in long double; row_reference.cpp derives the bounds.
#include "kernels/softmax/softmax.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "bench_cluster.h"
#include "isa/schedule_view.h"
#include "kernels/library.h"
#include "reference.h"
#include "row_reference.h"

namespace mtsim::kernels {
namespace {

const sim::ClusterOptions k_functional{sim::Depth::functional, false};
constexpr float k_infinity = std::numeric_limits<float>::infinity();
constexpr float k_nan = std::numeric_limits<float>::quiet_NaN();

/// Checks every element, the bytes around the result, findings, and the cycles of the timing depth. Values are rounded
/// to the type. Returns the result.
std::vector<float> run(const SoftmaxShape& shape, std::vector<float> x, std::int64_t tile_rows = 0) {
  x = rounded(std::move(x), shape.dtype);
  const SoftmaxPlan plan = plan_softmax(shape, tile_rows, machine());
  sim::Cluster& cluster = fresh(k_functional);
  const sim::Pointer in = upload(cluster, x, shape.dtype);
  const ResultArea out(cluster, shape.rows * shape.columns, shape.dtype);
  const sim::LaunchResult functional = cluster.launch(softmax(cluster, plan, {in, out.data()}));
  expect_clean(functional);
  std::vector<float> y = out.read(cluster);
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const auto at = static_cast<std::size_t>(row * shape.columns), count = static_cast<std::size_t>(shape.columns);
    const std::span<const float> values(x);
    expect_row(row, std::span(y).subspan(at, count), softmax_row(values.subspan(at, count), shape.scale, shape.dtype));
  }
  sim::Cluster& timing = fresh({sim::Depth::timing});
  const std::int64_t bytes = shape.rows * shape.columns * bytes_of(shape.dtype);
  const sim::Pointer timing_x = timing.ddr_malloc(bytes), timing_y = timing.ddr_malloc(bytes);
  const sim::LaunchResult timed = timing.launch(softmax(timing, plan, {timing_x, timing_y}));
  expect_clean(timed);
  CHECK(timed.cycles == functional.cycles);
  return y;
}

std::vector<float> scaled(std::vector<float> values, float factor) {
  for (float& v : values) v *= factor;
  return values;
}

}  // namespace

TEST_CASE("softmax of any shape agrees with libm, FP32 and FP16, and takes the same cycles in both depths",
          "[softmax]") {
  struct Case {
    std::int64_t rows, columns, tile_rows;
  };
  const auto dtype = GENERATE(DType::f32, DType::f16);
  const auto [rows, columns, tile_rows] = GENERATE(values<Case>({{1, 1, 0},
                                                                 {3, 5, 0},
                                                                 {33, 31, 0},
                                                                 {24, 4096, 0},
                                                                 {100, 1000, 0},
                                                                 {5, 257, 0},
                                                                 {770, 2, 0},
                                                                 {26, 16384, 0},
                                                                 {800, 129, 33},
                                                                 {1540, 256, 64}}));
  INFO(fmt::format("{} x {} {}, tile {}", rows, columns, to_string(dtype), tile_rows));
  // A spread of 60: results from 1 down to 1e-26.
  run({rows, columns, dtype, 1}, scaled(random_matrix(rows, columns, 7), 30), tile_rows);
}

TEST_CASE("logits are scaled before the exponential", "[softmax]") {
  const auto dtype = GENERATE(DType::f32, DType::f16);
  const float scale = GENERATE(0.08838834764F, 3.0F);
  run({30, 100, dtype, scale}, scaled(random_matrix(30, 100, 8), 40));
}

TEST_CASE("softmax of extreme rows", "[softmax]") {
  const auto dtype = GENERATE(DType::f32, DType::f16);
  const float huge = dtype == DType::f32 ? 3e38F : 65504.0F;
  const float tiny = dtype == DType::f32 ? 1e-45F : 0x1p-24F;
  const std::vector<std::vector<float>> rows = {
      {0, 0, 0, 0, 0},
      {1e4F, -1e4F, 1e4F, 0, 0},                                          // 1/2 0 1/2 0 0
      {huge, -huge, -huge, -k_infinity, -huge},                           // 1 0 0 0 0
      {-huge, -huge, -huge, -huge, -huge},                                // 1/5 each
      {huge, huge, huge, huge, huge},                                     // 1/5 each
      {-k_infinity, 1, -k_infinity, 2, -k_infinity},                      // 0 where masked
      {-k_infinity, -k_infinity, -k_infinity, -k_infinity, -k_infinity},  // all masked: 0
      {k_nan, 1, 2, 3, 4},                                                // NaN each
      {1, 2, 3, 4, k_nan},
      {k_nan, k_nan, k_nan, k_nan, k_nan},
      {k_nan, -k_infinity, -k_infinity, -k_infinity, -k_infinity},
      {k_infinity, 1, 2, 3, 4},  // inf - inf: NaN each
      {k_infinity, -k_infinity, 0, k_infinity, 1},
      {tiny, -tiny, 0, -0.0F, tiny},  // 1/5 each
      {0, -87, -100, -103, -104},     // subnormal results
      {0, -103.9F, -104.1F, -1000, -88},
      {-87.4F, 0, -87.3F, -17.4F, -16.6F},  // FP16: around its smallest numbers
  };
  // Every kind of row beside every other, and the same elements far apart in a long row: lanes, blocks and pads differ.
  const std::int64_t stride = GENERATE(1, 37, 300);
  const std::int64_t columns = 4 * stride + 1, count = static_cast<std::int64_t>(rows.size());
  std::vector<float> x(static_cast<std::size_t>(count * columns), -k_infinity);
  for (std::int64_t r = 0; r < count; ++r) {
    for (std::int64_t i = 0; i < 5; ++i)
      x[static_cast<std::size_t>(r * columns + i * stride)] =
          rows[static_cast<std::size_t>(r)][static_cast<std::size_t>(i)];
  }
  INFO(to_string(dtype) << " stride " << stride);
  const std::vector<float> y = run({count, columns, dtype, 1}, x, 32);
  CHECK(y[static_cast<std::size_t>(2 * columns)] == 1);
  CHECK(y[static_cast<std::size_t>(2 * columns + stride)] == 0);
  CHECK(y[static_cast<std::size_t>(6 * columns)] == 0);
  CHECK(std::isnan(y[static_cast<std::size_t>(7 * columns + stride)]));
}

TEST_CASE("a row that a mask cuts short sums to 1", "[softmax]") {
  const std::int64_t columns = 700;
  std::vector<float> x = random_matrix(columns, columns, 9);
  for (std::int64_t r = 0; r < columns; ++r) {
    for (std::int64_t c = r + 1; c < columns; ++c) x[static_cast<std::size_t>(r * columns + c)] = -k_infinity;
  }
  const std::vector<float> y = run({columns, columns, DType::f32, 1}, x);
  for (std::int64_t r = 0; r < columns; ++r) {
    double sum = 0;
    for (std::int64_t c = 0; c < columns; ++c) sum += y[static_cast<std::size_t>(r * columns + c)];
    // Errors of weights and of 1 / sum: some 20 u at so few additions and so small logits.
    CHECK(sum == Approx(1).epsilon(20 * 0x1p-24));
  }
}

TEST_CASE("what softmax cannot do is refused with the reason", "[softmax]") {
  const auto complaint = [](const SoftmaxShape& shape, std::int64_t rows) -> std::string {
    try {
      plan_softmax(shape, rows, machine());
    } catch (const KernelError& error) {
      return error.what();
    }
    return "no complaint";
  };
  CHECK(complaint({1, 8, DType::f32, 0}, 0) == "softmax: scale 0 must be above 0 and finite");
  CHECK(complaint({1, 8, DType::f32, -1}, 0) == "softmax: scale -1 must be above 0 and finite");
  CHECK(complaint({1, 8, DType::f32, k_nan}, 0) == "softmax: scale nan must be above 0 and finite");
  CHECK(complaint({1, 100'000, DType::f32, 1}, 0) ==
        "softmax: buffers for tiles of 1 items need 1616896 bytes of AM, 786432 available; an item is too long: "
        "cut it to 48 % of its length");
  CHECK(complaint({100, 16'384, DType::f32, 1}, 4) ==
        "softmax: buffers for tiles of 4 items need 1063936 bytes of AM, 786432 available; use a smaller tile");
}

TEST_CASE("softmax of a large matrix is limited by the DDR", "[softmax]") {
  const auto dtype = GENERATE(DType::f32, DType::f16);
  sim::Cluster& cluster = fresh({sim::Depth::timing});
  const SoftmaxPlan plan = plan_softmax({4096, 4096, dtype, 1}, 0, machine());
  const std::int64_t bytes = 4096 * 4096 * bytes_of(dtype);
  const SoftmaxOperands operands{cluster.ddr_malloc(bytes), cluster.ddr_malloc(bytes)};
  const std::int64_t cycles = cluster.launch(softmax(cluster, plan, operands)).cycles;
  const sim::MachineConfig config = machine();
  const double running = static_cast<double>(cycles) - config.cluster.launch_us * config.cycles_per_us();
  const double least = plan.stream.ideal_bytes() / config.bytes_per_cycle(config.ddr.bandwidth_gb_s);
  INFO(least / running);
  CHECK(least / running >= 0.9);
}

}  // namespace mtsim::kernels
