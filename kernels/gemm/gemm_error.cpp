// SPDX-License-Identifier: Apache-2.0
// How far a GEMM can be from the exact product. Each element passes through
//   p products in a row summed in the type of the operands: p multiply-adds, each rounded once to FP32 (u = 2^-24) and,
//     in FP16, once more to FP16 (u = 2^-11; below 2^-14 by at most half of 2^-24 instead);
//   s sums of such rows added up in FP32;
//   r roundings of Y to FP16 where it leaves AM.
// A value that passes n roundings of relative size u is off by at most (1+u)^n - 1 of the sum of its terms' magnitudes
// (Higham, Accuracy and Stability, 3.1; this form holds for any n u, unlike gamma_n = n u / (1 - n u)). What falls
// below the normal range adds its half unit once per rounding, magnified by the roundings after it.
#include <algorithm>
#include <cmath>

#include "kernels/gemm/gemm_program.h"

namespace mtsim::kernels {
namespace {

constexpr double k_u32 = 0x1p-24, k_u16 = 0x1p-11;
constexpr double k_half_subnormal32 = 0x1p-150, k_half_subnormal16 = 0x1p-25;

/// (1+u)^n - 1
double growth(std::int64_t n, double u) { return std::expm1(static_cast<double>(n) * std::log1p(u)); }

}  // namespace

// The partial sums of p products of variance v have the variances v, 2 v, ..., p v; each addition rounds by at most u
// of the sum, evenly distributed by u / sqrt(3) rms, less where the sum is not just above a power of two. A row of p is
// off by p^2 / 2 * v u^2 / 3, and k / p rows together, over k v, by p u^2 / 6. Twice that leaves room for chance.
double gemm_rms_error(double products, double sums, double roundings) {
  return 2 * (k_u16 * std::sqrt(products / 6 + roundings) + k_u32 * std::sqrt((products + sums) / 6 + 1));
}

GemmErrorBound gemm_error_bound(const GemmPlan& plan) {
  using gemm::ceil_div;
  const std::int64_t k = plan.shape.k;
  if (plan.dtype == DType::f32) {
    // By rows, k-steps are added up as well, and the lanes of each.
    const std::int64_t sums = plan.weights == GemmWeights::out_in ? 1 + ceil_div(k, plan.tiles.k2) : 0;
    const double relative = growth(k + sums, k_u32);
    return {relative, static_cast<double>(k + sums) * k_half_subnormal32 * (1 + relative),
            gemm_rms_error(0, static_cast<double>(k + sums), 0)};
  }
  std::int64_t products = k, sums = 0, roundings = 0;
  if (plan.weights == GemmWeights::out_in) {  // FP16 products are exact in FP32
    products = 0;
    sums = k + 1 + ceil_div(k, plan.tiles.k2);
    roundings = 1;
  } else if (plan.promotes()) {
    const std::int64_t k_blocks = ceil_div(k, plan.tiles.kg);
    products = std::min(k, plan.tiles.k_promote);
    sums = ceil_div(k, plan.tiles.k2) * ceil_div(plan.tiles.k2, plan.tiles.k_promote) + k_blocks;
    roundings = plan.y_stays || plan.sums == GemmSums::f32 ? 1 : k_blocks;
  }
  const double in_f16 = growth(products + roundings, k_u16);
  const double in_f32 = growth(products + sums, k_u32);
  const double relative = in_f16 + in_f32 + in_f16 * in_f32;
  return {relative, static_cast<double>(k + roundings) * k_half_subnormal16 * (1 + relative),
          gemm_rms_error(static_cast<double>(products), static_cast<double>(sums), static_cast<double>(roundings))};
}

}  // namespace mtsim::kernels
