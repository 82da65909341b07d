// SPDX-License-Identifier: Apache-2.0
// Whether an FP32 product is as right as FP32 can promise: against OpenBLAS in FP64, with a bound derived from k.
#pragma once

#include <cstdint>
#include <span>

namespace mtsim::scenarios {

struct Verification {
  double max_error = 0;    // largest |Y - X*W|
  double error_bound = 0;  // the bound at that element
  double worst_ratio = 0;  // largest error / bound over all elements; infinite when an element is not finite
  std::int64_t worst_row = 0, worst_column = 0;  // where that is
  bool passed() const { return worst_ratio <= 1; }
};

/// Y [m, n] against X [m, k] * W [k, n], all row-major FP32. The bound of an element is gamma(terms) * (|X||W|) with
/// gamma(t) = t u / (1 - t u), u = 2^-24: what any order of `terms` fused multiply-adds stays under (Higham, 3.1).
/// `terms` is k plus the padding the kernel adds.
Verification verify_gemm_f32(std::span<const float> x, std::span<const float> w, std::span<const float> y,
                             std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t terms);

}  // namespace mtsim::scenarios
