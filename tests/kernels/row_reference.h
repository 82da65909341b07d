// SPDX-License-Identifier: Apache-2.0
// Softmax and RMSNorm in long double with libm, and what their FP32 arithmetic may be off by; and operators along rows
// on the test program's cluster.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kernels/dtype.h"
#include "sim/cluster.h"

namespace mtsim::kernels {

struct Bounded {
  long double value = 0;
  long double bound = 0;  // of |result - value|; neither counts where the value is NaN or infinite
};

/// One row; `x` has been rounded to `dtype`.
std::vector<Bounded> softmax_row(std::span<const float> x, float scale, DType dtype);
std::vector<Bounded> rmsnorm_row(std::span<const float> x, std::span<const float> gamma, float eps, DType dtype,
                                 DType gamma_dtype);

/// Fails the test at the first element out of its bound, naming it.
void expect_row(std::int64_t row, std::span<const float> actual, std::span<const Bounded> expected);

/// `values` in new DDR of the cluster, as `dtype`.
sim::Pointer upload(sim::Cluster& cluster, const std::vector<float>& values, DType dtype);

/// DDR for results, with bytes around it that must stay.
class ResultArea {
 public:
  ResultArea(sim::Cluster& cluster, std::int64_t count, DType dtype);
  sim::Pointer data() const { return m_data; }
  /// Fails the test where a byte around the results has changed.
  std::vector<float> read(const sim::Cluster& cluster) const;

 private:
  std::int64_t m_count;
  DType m_dtype;
  sim::Pointer m_data;
};

/// Fails the test for a fault and for every finding.
void expect_clean(const sim::LaunchResult& result);

}  // namespace mtsim::kernels
