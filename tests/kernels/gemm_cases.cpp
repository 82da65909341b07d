// SPDX-License-Identifier: Apache-2.0
#include "gemm_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>

namespace mtsim::kernels {

std::string text(const GemmCase& c) {
  const char* dataflow[] = {"automatic", "large M", "small M", "W stationary"};
  const char* sums[] = {"promoted", "f16", "f32"};
  return fmt::format("{} m={} n={} k={} {} {} sums {}{}", to_string(c.dtype), c.shape.m, c.shape.n, c.shape.k,
                     dataflow[static_cast<int>(c.dataflow)], c.tiles, sums[static_cast<int>(c.sums)],
                     c.weights == GemmWeights::out_in ? ", W as [n, k]" : "");
}

GemmPlan plan(const GemmCase& c, GemmVariant variant, const sim::MachineConfig& config) {
  const GemmChoice choice{c.dataflow, variant, c.sums, c.weights};
  return plan_gemm(c.shape, c.dtype, parse_gemm_tiles(c.tiles, c.dtype, choice), choice, config);
}

double error_in_bounds(const std::vector<float>& y, const Product& product, const GemmErrorBound& bound) {
  double worst = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double error = std::abs(static_cast<double>(y[i]) - product.value[i]);
    const double limit = bound.relative * product.magnitude[i] + bound.absolute;
    if (!(error <= limit)) worst = std::max(worst, std::isnan(error) ? 1e9 : error / limit);
  }
  return worst;
}

GemmRun expect_right(const GemmPlan& plan) {
  const auto [m, n, k] = plan.shape;
  const std::vector<float> x = rounded(random_matrix(m, k, 1), plan.dtype),
                           w = rounded(random_matrix(k, n, 2), plan.dtype);
  const GemmRun functional = run_gemm(fresh(k_functional), plan, x, w);
  expect_clean(functional.result);
  CHECK(functional.guards_intact);
  CHECK(error_in_bounds(functional.y, multiply_f64(x, w, m, n, k), gemm_error_bound(plan)) == 0);

  GemmRun timing = run_gemm(fresh(k_timing), plan);
  expect_clean(timing.result);
  CHECK(timing.result.cycles == functional.result.cycles);
  return timing;
}

}  // namespace mtsim::kernels
