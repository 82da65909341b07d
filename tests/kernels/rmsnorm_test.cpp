// SPDX-License-Identifier: Apache-2.0
// RMSNorm on the cluster against long double; row_reference.cpp derives the bounds.
#include "kernels/rmsnorm/rmsnorm.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "bench_cluster.h"
#include "kernels/add/add.h"
#include "kernels/library.h"
#include "reference.h"
#include "row_reference.h"

namespace mtsim::kernels {
namespace {

const sim::ClusterOptions k_functional{sim::Depth::functional, false};
constexpr float k_infinity = std::numeric_limits<float>::infinity();
constexpr float k_nan = std::numeric_limits<float>::quiet_NaN();

struct Types {
  DType rows, gamma;
};
const std::vector<Types> k_types = {{DType::f32, DType::f32}, {DType::f16, DType::f16}, {DType::f16, DType::f32}};

std::string text(const RmsNormShape& shape) {
  return fmt::format("{} x {} {}, gamma {}, eps {}", shape.rows, shape.columns, to_string(shape.dtype),
                     to_string(shape.gamma_dtype), shape.eps);
}

/// Checks every element, the bytes around the result, findings, and the cycles of the timing depth. Values are rounded
/// to their types. Returns the result.
std::vector<float> run(const RmsNormShape& shape, std::vector<float> x, std::vector<float> gamma,
                       std::int64_t tile_rows = 0) {
  INFO(text(shape));
  x = rounded(std::move(x), shape.dtype);
  gamma = rounded(std::move(gamma), shape.gamma_dtype);
  const RmsNormPlan plan = plan_rmsnorm(shape, tile_rows, machine());
  sim::Cluster& cluster = fresh(k_functional);
  const sim::Pointer in = upload(cluster, x, shape.dtype), weights = upload(cluster, gamma, shape.gamma_dtype);
  const ResultArea out(cluster, shape.rows * shape.columns, shape.dtype);
  const sim::LaunchResult functional = cluster.launch(rmsnorm(cluster, plan, {in, weights, out.data()}));
  expect_clean(functional);
  std::vector<float> y = out.read(cluster);
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const auto at = static_cast<std::size_t>(row * shape.columns), count = static_cast<std::size_t>(shape.columns);
    expect_row(
        row, std::span(y).subspan(at, count),
        rmsnorm_row(std::span<const float>(x).subspan(at, count), gamma, shape.eps, shape.dtype, shape.gamma_dtype));
  }
  sim::Cluster& timing = fresh({sim::Depth::timing});
  const std::int64_t bytes = shape.rows * shape.columns * bytes_of(shape.dtype);
  const sim::Pointer timing_x = timing.ddr_malloc(bytes),
                     timing_gamma = timing.ddr_malloc(shape.columns * bytes_of(shape.gamma_dtype)),
                     timing_y = timing.ddr_malloc(bytes);
  const sim::LaunchResult timed = timing.launch(rmsnorm(timing, plan, {timing_x, timing_gamma, timing_y}));
  expect_clean(timed);
  CHECK(timed.cycles == functional.cycles);
  return y;
}

}  // namespace

TEST_CASE("rmsnorm of any shape agrees with long double and takes the same cycles in both depths", "[rmsnorm]") {
  struct Case {
    std::int64_t rows, columns, tile_rows;
  };
  const auto types = GENERATE(from_range(k_types));
  const auto [rows, columns, tile_rows] = GENERATE(values<Case>({{1, 1, 0},
                                                                 {3, 5, 0},
                                                                 {33, 31, 0},
                                                                 {24, 4096, 0},
                                                                 {100, 1000, 0},
                                                                 {5, 257, 0},
                                                                 {26, 16384, 0},
                                                                 {800, 129, 33},
                                                                 {1540, 256, 64}}));
  run({rows, columns, types.rows, types.gamma, 1e-5F}, random_matrix(rows, columns, 10), random_matrix(1, columns, 11),
      tile_rows);
}

TEST_CASE("rmsnorm of extreme rows", "[rmsnorm]") {
  const auto types = GENERATE(from_range(k_types));
  const float eps = GENERATE(1e-5F, 0.0F);
  const bool wide = types.rows == DType::f32;
  const float huge = wide ? 3e38F : 65504.0F, large = wide ? 1e15F : 60000.0F, small = wide ? 1e-18F : 0x1p-14F;
  const std::vector<std::vector<float>> rows = {
      {0, 0, 0, 0, 0},          // 0, and NaN with eps = 0
      {-0.0F, 0, -0.0F, 0, 1},  // signs of zeros stay
      {huge, 1, -1, 0, huge},   // FP32: the sum of squares is infinite, so 0
      {large, -large, large, 1, 0},
      {small, -small, 2 * small, 0, small},
      {0x1p-24F, 0, -0x1p-24F, 0, 0},  // the smallest FP16
      {k_infinity, 1, 2, 3, 0},        // NaN there, 0 elsewhere
      {1, 2, -k_infinity, 3, k_infinity},
      {k_nan, 1, 2, 3, 4},  // NaN each
      {1, 0, 0, 0, 0},
  };
  const std::vector<float> weights = {1, -2, 0, 0.5F, -0.0F};
  const std::int64_t stride = GENERATE(1, 37, 300);
  const std::int64_t columns = 4 * stride + 1, count = static_cast<std::int64_t>(rows.size());
  std::vector<float> x(static_cast<std::size_t>(count * columns)), gamma(static_cast<std::size_t>(columns), 1);
  for (std::int64_t i = 0; i < 5; ++i) {
    const auto at = static_cast<std::size_t>(i);
    gamma[static_cast<std::size_t>(i * stride)] = weights[at];
    for (std::int64_t r = 0; r < count; ++r)
      x[static_cast<std::size_t>(r * columns + i * stride)] = rows[static_cast<std::size_t>(r)][at];
  }
  INFO("stride " << stride);
  const std::vector<float> y = run({count, columns, types.rows, types.gamma, eps}, x, gamma, 32);
  CHECK(std::isnan(y[0]) == (eps == 0));
  CHECK(std::signbit(y[static_cast<std::size_t>(columns)]));
}

TEST_CASE("rmsnorm keeps its accuracy where the mean of squares is subnormal", "[rmsnorm]") {
  // Squares of 1e-21 are about 1e-42: three digits of FP32 are left, which the bound knows as 2^-150 a square.
  const std::int64_t columns = 64;
  std::vector<float> x(static_cast<std::size_t>(columns), 0);
  x[3] = 0x1p-70F;  // its square and the mean, 2^-146, are exact
  const std::vector<float> y =
      run({1, columns, DType::f32, DType::f32, 0}, x, std::vector<float>(static_cast<std::size_t>(columns), 1));
  CHECK(y[3] == Approx(8).epsilon(0x1p-22));
}

TEST_CASE("add_rmsnorm is add and rmsnorm one behind the other, bit for bit", "[rmsnorm]") {
  struct Case {
    std::int64_t rows, columns, tile_rows;
  };
  const auto types = GENERATE(from_range(k_types));
  const bool in_place = GENERATE(false, true);
  const auto [rows, columns, tile_rows] = GENERATE(
      values<Case>({{1, 1, 0}, {3, 5, 0}, {24, 4096, 0}, {5, 257, 0}, {100, 999, 0}, {800, 129, 33}, {1540, 64, 7}}));
  const RmsNormShape shape{rows, columns, types.rows, types.gamma, 1e-5F};
  INFO(text(shape) << (in_place ? ", in place" : ""));
  const std::vector<float> x = random_matrix(rows, columns, 10), a = random_matrix(rows, columns, 12),
                           gamma = random_matrix(1, columns, 11);
  const std::int64_t count = rows * columns, bytes = count * bytes_of(types.rows);

  sim::Cluster& apart = fresh({});
  const sim::Pointer apart_x = upload(apart, x, types.rows), apart_a = upload(apart, a, types.rows),
                     apart_gamma = upload(apart, gamma, types.gamma), z = apart.ddr_malloc(bytes),
                     y = apart.ddr_malloc(bytes);
  expect_clean(apart.launch(add(apart, plan_add(count, types.rows, 0, machine()), types.rows, {apart_x, apart_a, z})));
  expect_clean(apart.launch(rmsnorm(apart, plan_rmsnorm(shape, 0, machine()), {z, apart_gamma, y})));
  std::vector<std::byte> z_expected(static_cast<std::size_t>(bytes)), y_expected(z_expected.size());
  apart.read(z, z_expected);
  apart.read(y, y_expected);

  const RmsNormPlan plan = plan_add_rmsnorm(shape, tile_rows, machine());
  const auto launch = [&](sim::Cluster& cluster, const ResultArea& sums, const ResultArea& out) {
    const sim::Pointer in = in_place ? sums.data() : upload(cluster, x, types.rows);
    if (in_place) {
      std::vector<std::byte> bits(static_cast<std::size_t>(bytes));
      cluster.read(upload(cluster, x, types.rows), bits);
      cluster.write(in, bits);
    }
    const AddRmsNormOperands operands{in, upload(cluster, a, types.rows), upload(cluster, gamma, types.gamma),
                                      sums.data(), out.data()};
    const sim::LaunchResult result = cluster.launch(add_rmsnorm(cluster, plan, operands));
    expect_clean(result);
    return result.cycles;
  };
  sim::Cluster& together = fresh({});
  const ResultArea sums(together, count, types.rows), out(together, count, types.rows);
  const std::int64_t cycles = launch(together, sums, out);
  std::vector<std::byte> z_got(z_expected.size()), y_got(z_expected.size());
  together.read(sums.data(), z_got);
  together.read(out.data(), y_got);
  CHECK(z_got == z_expected);
  CHECK(y_got == y_expected);
  sums.read(together);  // checks the bytes around
  out.read(together);
  sim::Cluster& timing = fresh({sim::Depth::timing});
  const ResultArea timed_sums(timing, count, types.rows), timed_out(timing, count, types.rows);
  CHECK(launch(timing, timed_sums, timed_out) == cycles);
}

TEST_CASE("what rmsnorm cannot do is refused with the reason", "[rmsnorm]") {
  const auto complaint = [](const RmsNormShape& shape) -> std::string {
    try {
      plan_rmsnorm(shape, 0, machine());
    } catch (const KernelError& error) {
      return error.what();
    }
    return "no complaint";
  };
  CHECK(complaint({1, 8, DType::f32, DType::f32, -1}) == "rmsnorm: eps -1 must be at least 0 and finite");
  CHECK(complaint({1, 8, DType::f32, DType::f16, 0}) == "rmsnorm: FP16 weights need FP16 rows; convert them to FP32");
  CHECK(complaint({1, 100'000, DType::f32, DType::f32, 0}) ==
        "rmsnorm: buffers for tiles of 1 items need 2017280 bytes of AM, 786432 available; an item is too long: "
        "cut it to 38 % of its length");
}

TEST_CASE("rmsnorm of a large matrix is limited by the DDR", "[rmsnorm]") {
  const auto types = GENERATE(from_range(k_types));
  sim::Cluster& cluster = fresh({sim::Depth::timing});
  const RmsNormPlan plan = plan_rmsnorm({4096, 4096, types.rows, types.gamma, 1e-5F}, 0, machine());
  const std::int64_t bytes = 4096 * 4096 * bytes_of(types.rows);
  const RmsNormOperands operands{cluster.ddr_malloc(bytes), cluster.ddr_malloc(4096 * 4), cluster.ddr_malloc(bytes)};
  const std::int64_t cycles = cluster.launch(rmsnorm(cluster, plan, operands)).cycles;
  const sim::MachineConfig config = machine();
  const double running = static_cast<double>(cycles) - config.cluster.launch_us * config.cycles_per_us();
  const double least = plan.stream.ideal_bytes() / config.bytes_per_cycle(config.ddr.bandwidth_gb_s);
  INFO(least / running);
  CHECK(least / running >= 0.9);
}

}  // namespace mtsim::kernels
