// SPDX-License-Identifier: Apache-2.0
// Whether results are as right as their arithmetic can promise: against a reference in FP64, each element with a bound
// derived from the operations behind it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace mtsim::scenarios {

struct Verification {
  double max_error = 0;    // largest |result - reference|
  double error_bound = 0;  // the bound at that element
  double worst_ratio = 0;  // largest error / bound over all elements; infinite when an element is wrongly not finite
  std::int64_t worst_row = 0, worst_column = 0;  // where that is
  double rms_error = 0;                          // root mean square of result - reference where both are finite
  double rms_reference = 0;                      // and of the reference there
  double rms_limit = 0;                          // of rms_error / rms_reference; 0: none is known
  bool passed() const { return worst_ratio <= 1 && (rms_limit == 0 || rms_error <= rms_limit * rms_reference); }
};

/// Compares a row-major matrix element by element.
class Comparison {
 public:
  explicit Comparison(std::int64_t columns) : m_columns(columns) {}

  /// The next element. A NaN or infinite reference wants the same; a bound of 0 wants the exact value.
  void add(double actual, double reference, double bound);
  Verification result() const;

 private:
  std::int64_t m_columns;
  std::int64_t m_index = 0;
  std::int64_t m_finite = 0;
  double m_squared_errors = 0, m_squared_references = 0;
  Verification m_result;
};

/// Y [m, n] against X [m, k] * W [k, n] by OpenBLAS, all row-major. The bound of an element is relative * (|X||W|) +
/// absolute. `finish` then makes of a row's exact values and bounds those of what the kernel did with it.
using FinishRow = std::function<void(std::int64_t row, std::span<double> values, std::span<double> bounds)>;
Verification verify_gemm(std::span<const float> x, std::span<const float> w, std::span<const float> y, std::int64_t m,
                         std::int64_t n, std::int64_t k, double relative, double absolute,
                         const FinishRow& finish = {});

}  // namespace mtsim::scenarios
