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
  bool right = false;  // every byte, those around the result too
};

/// Every bit pattern may come, NaNs too. What lies before, behind and between the rows of Y is random as well.
Run run(const TransposePlan& plan, sim::Depth depth = sim::Depth::functional) {
  constexpr std::size_t k_guard = 512;
  const auto rows = static_cast<std::size_t>(plan.shape.rows), columns = static_cast<std::size_t>(plan.shape.columns),
             pitch = static_cast<std::size_t>(plan.shape.y_row());
  const auto bytes = static_cast<std::size_t>(bytes_of(plan.dtype));
  // Behind the last row there is no gap.
  std::vector<std::byte> x(rows * columns * bytes), area(((columns - 1) * pitch + rows) * bytes + 2 * k_guard);
  std::mt19937 random(static_cast<std::uint32_t>(rows * 31 + columns));
  for (auto* values : {&x, &area})
    std::generate(values->begin(), values->end(), [&] { return static_cast<std::byte>(random()); });
  std::vector<std::byte> expected = area;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j)
      std::memcpy(expected.data() + k_guard + (j * pitch + i) * bytes, x.data() + (i * columns + j) * bytes, bytes);
  }
  sim::Cluster& cluster = fresh({depth});
  const sim::Pointer source = cluster.ddr_malloc(std::ssize(x)), guarded = cluster.ddr_malloc(std::ssize(area));
  cluster.write(source, x);
  cluster.write(guarded, area);
  Run run{cluster.launch(transpose(cluster, plan, {source, guarded + std::int64_t{k_guard}}))};
  cluster.read(guarded, area);
  run.right = area == expected;
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

TEST_CASE("transpose into rows that lie apart leaves what is between them", "[transpose]") {
  const DType dtype = GENERATE(DType::f32, DType::f16);
  const auto [rows, columns, pitch] =
      GENERATE(std::array<std::int64_t, 3>{1, 1, 9}, std::array<std::int64_t, 3>{1, 300, 2},
               std::array<std::int64_t, 3>{33, 65, 34}, std::array<std::int64_t, 3>{64, 128, 512},
               std::array<std::int64_t, 3>{300, 77, 301});
  const TransposePlan plan = plan_transpose({rows, columns, pitch}, dtype, {}, machine());
  INFO(fmt::format("{} x {} {}, rows {} apart", rows, columns, to_string(dtype), pitch));
  const Run got = run(plan);
  CHECK_FALSE(got.result.fault);
  CHECK(got.result.findings.empty());
  CHECK(got.right);
  CHECK(run(plan, sim::Depth::timing).result.cycles == got.result.cycles);
}

TEST_CASE("transpose says which tiles it cannot take", "[transpose]") {
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(parse_transpose_tiles("rows=48", DType::f32), Contains("rows=48 must be a multiple of 32"));
  CHECK_THROWS_WITH(parse_transpose_tiles("width=64", DType::f32), Contains("unknown key 'width'"));
  CHECK_THROWS_WITH(plan_transpose({4096, 4096}, DType::f32, {512, 512}, machine()), Contains("bytes of AM"));
  CHECK_THROWS_WITH(plan_transpose({0, 4}, DType::f32, {}, machine()), Contains("at least 1"));
  CHECK_THROWS_WITH(plan_transpose({8, 4, 7}, DType::f32, {}, machine()),
                    Contains("rows of Y are 7 elements apart and have 8"));
}

}  // namespace mtsim::kernels
