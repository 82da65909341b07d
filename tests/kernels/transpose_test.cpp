// SPDX-License-Identifier: Apache-2.0
// Transposes bit for bit, of any shape, with nothing written beside the result.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "bench_cluster.h"
#include "kernels/transpose/transpose.h"

namespace mtsim::kernels {
namespace {

struct Run {
  sim::LaunchResult result;
  bool right = false, guards_intact = false;
};

/// Every bit pattern may come, NaNs too.
Run run(const TransposePlan& plan, sim::Depth depth = sim::Depth::functional) {
  constexpr std::int64_t k_guard = 512;
  const auto rows = static_cast<std::size_t>(plan.shape.rows), columns = static_cast<std::size_t>(plan.shape.columns);
  const auto bytes = static_cast<std::size_t>(bytes_of(plan.dtype));
  std::vector<std::byte> x(rows * columns * bytes), expected(x.size());
  std::mt19937 random(static_cast<std::uint32_t>(rows * 31 + columns));
  std::generate(x.begin(), x.end(), [&] { return static_cast<std::byte>(random()); });
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j)
      std::memcpy(expected.data() + (j * rows + i) * bytes, x.data() + (i * columns + j) * bytes, bytes);
  }
  sim::Cluster& cluster = fresh({depth});
  const auto size = static_cast<std::int64_t>(x.size());
  const sim::Pointer source = cluster.ddr_malloc(size), guarded = cluster.ddr_malloc(size + 2 * k_guard);
  std::vector<std::byte> area(x.size() + 2 * k_guard, std::byte{0x5A});
  cluster.write(source, x);
  cluster.write(guarded, area);
  Run run{cluster.launch(transpose(cluster, plan, {source, guarded + k_guard}))};
  cluster.read(guarded, area);
  const auto untouched = [](std::byte b) { return b == std::byte{0x5A}; };
  run.guards_intact = std::all_of(area.begin(), area.begin() + k_guard, untouched) &&
                      std::all_of(area.end() - k_guard, area.end(), untouched);
  run.right = std::equal(expected.begin(), expected.end(), area.begin() + k_guard);
  return run;
}

}  // namespace

TEST_CASE("transpose moves every element to its place, in the same cycles in both depths", "[transpose]") {
  const DType dtype = GENERATE(DType::f32, DType::f16);
  const auto [rows, columns] = GENERATE(std::array<std::int64_t, 2>{1, 1}, std::array<std::int64_t, 2>{1, 300},
                                        std::array<std::int64_t, 2>{300, 1}, std::array<std::int64_t, 2>{32, 32},
                                        std::array<std::int64_t, 2>{64, 128}, std::array<std::int64_t, 2>{33, 65},
                                        std::array<std::int64_t, 2>{257, 129}, std::array<std::int64_t, 2>{1000, 77},
                                        std::array<std::int64_t, 2>{128, 4096});
  const TransposePlan plan = plan_transpose({rows, columns}, dtype, {}, machine());
  INFO(fmt::format("{} x {} {}, tiles {} x {}", rows, columns, to_string(dtype), plan.tiles.rows, plan.tiles.columns));
  const Run got = run(plan);
  CHECK_FALSE(got.result.fault);
  CHECK(got.result.findings.empty());
  CHECK(got.right);
  CHECK(got.guards_intact);
  CHECK(run(plan, sim::Depth::timing).result.cycles == got.result.cycles);
}

TEST_CASE("transpose takes tiles of any multiple of 128 B each way", "[transpose]") {
  const DType dtype = GENERATE(DType::f32, DType::f16);
  const TransposePlan plan =
      plan_transpose({300, 500}, dtype, parse_transpose_tiles("rows=64,columns=192", dtype), machine());
  const Run got = run(plan);
  CHECK(got.right);
  CHECK(got.result.findings.empty());
}

TEST_CASE("transpose says which tiles it cannot take", "[transpose]") {
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(parse_transpose_tiles("rows=48", DType::f32), Contains("rows=48 must be a multiple of 32"));
  CHECK_THROWS_WITH(parse_transpose_tiles("width=64", DType::f32), Contains("unknown key 'width'"));
  CHECK_THROWS_WITH(plan_transpose({4096, 4096}, DType::f32, {512, 512}, machine()), Contains("bytes of AM"));
  CHECK_THROWS_WITH(plan_transpose({0, 4}, DType::f32, {}, machine()), Contains("at least 1"));
}

}  // namespace mtsim::kernels
