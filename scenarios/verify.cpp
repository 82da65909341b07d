// SPDX-License-Identifier: Apache-2.0
#include "scenarios/verify.h"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

namespace mtsim::scenarios {

namespace {

/// out [rows, n] = a [rows, k] * b [k, n]
void multiply(const std::vector<double>& a, const std::vector<double>& b, std::vector<double>& out, std::int64_t rows,
              std::int64_t n, std::int64_t k) {
  const auto m32 = static_cast<int>(rows), n32 = static_cast<int>(n), k32 = static_cast<int>(k);
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m32, n32, k32, 1.0, a.data(), k32, b.data(), n32, 0.0,
              out.data(), n32);
}

std::vector<double> magnitudes(std::vector<double> values) {
  for (double& value : values) value = std::abs(value);
  return values;
}

}  // namespace

void Comparison::add(double actual, double reference, double bound) {
  const std::int64_t index = m_index++;
  if (std::isfinite(actual) && std::isfinite(reference)) {
    ++m_finite;
    m_squared_errors += (actual - reference) * (actual - reference);
    m_squared_references += reference * reference;
  }
  if (actual == reference || (std::isnan(actual) && std::isnan(reference))) return;
  const double error = std::abs(actual - reference);
  double ratio = error / bound;
  if (std::isnan(ratio)) ratio = std::numeric_limits<double>::infinity();
  if (ratio > m_result.worst_ratio) {
    m_result.worst_ratio = ratio;
    m_result.worst_row = index / m_columns;
    m_result.worst_column = index % m_columns;
  }
  if (error > m_result.max_error || std::isnan(error)) {
    m_result.max_error = error;
    m_result.error_bound = bound;
  }
}

Verification Comparison::result() const {
  Verification result = m_result;
  if (m_finite == 0) return result;
  result.rms_error = std::sqrt(m_squared_errors / static_cast<double>(m_finite));
  result.rms_reference = std::sqrt(m_squared_references / static_cast<double>(m_finite));
  return result;
}

Verification verify_gemm(std::span<const float> x, std::span<const float> w, std::span<const float> y, std::int64_t m,
                         std::int64_t n, std::int64_t k, double relative, double absolute, const FinishRow& finish) {
  constexpr std::int64_t k_rows_at_once = 512;  // keeps the FP64 copies small beside W's
  openblas_set_num_threads(static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 2U)));
  const std::vector<double> w64(w.begin(), w.end());
  const std::vector<double> w_abs = magnitudes(w64);

  Comparison comparison(n);
  std::vector<double> product, magnitude;
  for (std::int64_t first = 0; first < m; first += k_rows_at_once) {
    const std::int64_t rows = std::min(k_rows_at_once, m - first);
    const auto block = x.subspan(static_cast<std::size_t>(first * k), static_cast<std::size_t>(rows * k));
    const std::vector<double> x64(block.begin(), block.end());
    product.resize(static_cast<std::size_t>(rows * n));
    magnitude.resize(product.size());
    multiply(x64, w64, product, rows, n, k);
    multiply(magnitudes(x64), w_abs, magnitude, rows, n, k);
    for (double& bound : magnitude) bound = relative * bound + absolute;
    const auto columns = static_cast<std::size_t>(n);
    for (std::int64_t row = 0; finish && row < rows; ++row) {
      const std::size_t at = static_cast<std::size_t>(row) * columns;
      finish(first + row, std::span(product).subspan(at, columns), std::span(magnitude).subspan(at, columns));
    }
    for (std::size_t i = 0; i < product.size(); ++i)
      comparison.add(y[static_cast<std::size_t>(first * n) + i], product[i], magnitude[i]);
  }
  return comparison.result();
}

}  // namespace mtsim::scenarios
