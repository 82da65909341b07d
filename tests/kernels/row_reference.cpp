// SPDX-License-Identifier: Apache-2.0
#include "row_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/reduce/rows.h"
#include "reference.h"

namespace mtsim::kernels {
namespace {

constexpr long double k_u = 0x1p-24L;  // half a unit in the last place of 1 in FP32

/// What the last operation, to `dtype`, adds: relative, and never less than half of the smallest number.
long double storage_error(long double value, DType dtype) {
  return dtype == DType::f16 ? std::max(0x1p-11L * std::abs(value), 0x1p-25L) : 0x1p-150L;
}

}  // namespace

// With d = (x - m) scale, |error of d| <= 2 u |d|, so e = exp(d) is off by 2 u |d|, and by 0.9 ULP (1.8 u) of its own.
// A term of the sum goes through 2 additions a block, 2 of the lane sums and 5 of Fig. 9; their errors and those of the
// terms, weighted with e / sum, are those of the sum. 1 / sum adds 0.51 ULP (1.02 u), the product u. Second-order terms
// are below 1e-4 of these. What is below exp(-104) < 2^-150 is 0.
std::vector<Bounded> softmax_row(std::span<const float> x, float scale, DType dtype) {
  const bool bad = std::any_of(x.begin(), x.end(), [](float v) { return std::isnan(v) || (std::isinf(v) && v > 0); });
  const float most = *std::max_element(x.begin(), x.end());
  if (bad) return std::vector<Bounded>(x.size(), {std::numeric_limits<long double>::quiet_NaN(), 0});
  if (std::isinf(most)) return std::vector<Bounded>(x.size());
  const auto distance = [&](float v) { return (static_cast<long double>(v) - most) * scale; };
  const auto term_error = [](long double d) { return 2 * k_u * std::abs(d) + 1.8L * k_u; };
  long double sum = 0, sum_error = 0;
  for (const float v : x) {
    const long double e = std::exp(distance(v));
    sum += e;
    if (e > 0) sum_error += e * term_error(distance(v));
  }
  const auto additions = static_cast<long double>(2 * row_blocks(static_cast<std::int64_t>(x.size())) + 7);
  sum_error = sum_error / sum + additions * k_u;
  std::vector<Bounded> row;
  for (const float v : x) {
    const long double value = std::exp(distance(v)) / sum;
    const long double relative = value > 0 ? term_error(distance(v)) + sum_error + 2.02L * k_u : 0;
    row.push_back({value, 1.0001L * relative * value + storage_error(value, dtype) + 0x1p-150L});
  }
  return row;
}

// Squares are positive: a fused multiply-add a block, 3 additions of the lane sums and 5 of Fig. 9 put the sum off by
// as many u, relatively; 1 / columns and the sum with eps by 2 u; and where the mean comes near 2^-126, by 2^-149 in
// all. The root halves that and adds 1.01 ULP (2.02 u). Then FP32 storage multiplies twice; FP16 storage too with FP32
// gamma, once with FP16 gamma, whose products are exact.
std::vector<Bounded> rmsnorm_row(std::span<const float> x, std::span<const float> gamma, float eps, DType dtype,
                                 DType gamma_dtype) {
  long double sum = 0;
  for (const float v : x) sum += static_cast<long double>(v) * v;
  if (sum > std::numeric_limits<float>::max()) sum = std::numeric_limits<long double>::infinity();
  const long double mean = sum / static_cast<long double>(x.size()) + eps;
  const long double factor = 1 / std::sqrt(mean);
  const auto sums = static_cast<long double>(row_blocks(static_cast<std::int64_t>(x.size())) + 8);
  const int products = dtype == DType::f16 && gamma_dtype == DType::f16 ? 1 : 2;
  const long double relative = 1.0001L * (k_u * ((sums + 2) / 2 + 2.02L + products) + 0x1p-150L / mean);
  std::vector<Bounded> row;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double value = x[i] * factor * gamma[i];
    // x f may be subnormal before gamma multiplies it.
    row.push_back({value, relative * std::abs(value) + storage_error(value, dtype) +
                              0x1p-150L * std::abs(static_cast<long double>(gamma[i]))});
  }
  return row;
}

void expect_row(std::int64_t row, std::span<const float> actual, std::span<const Bounded> expected) {
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const auto [value, bound] = expected[i];
    const bool right = std::isnan(value)   ? std::isnan(actual[i])
                       : std::isinf(value) ? actual[i] == value
                                           : std::abs(actual[i] - value) <= bound;
    if (right) continue;
    FAIL_CHECK(fmt::format("row {} column {}: {} and not {} within {}", row, i, actual[i], static_cast<double>(value),
                           static_cast<double>(bound)));
    return;
  }
}

namespace {

constexpr std::int64_t k_guard = 1024;
constexpr std::byte k_guard_value{0x5A};

}  // namespace

sim::Pointer upload(sim::Cluster& cluster, const std::vector<float>& values, DType dtype) {
  const sim::Pointer place = cluster.ddr_malloc(static_cast<std::int64_t>(values.size()) * bytes_of(dtype));
  if (dtype == DType::f32) {
    cluster.write(place, std::as_bytes(std::span(values)));
  } else {
    const std::vector<std::uint16_t> bits = bits_f16(values);
    cluster.write(place, std::as_bytes(std::span(bits)));
  }
  return place;
}

ResultArea::ResultArea(sim::Cluster& cluster, std::int64_t count, DType dtype) : m_count(count), m_dtype(dtype) {
  const std::int64_t bytes = count * bytes_of(dtype) + 2 * k_guard;
  const sim::Pointer whole = cluster.ddr_malloc(bytes);
  cluster.write(whole, std::vector<std::byte>(static_cast<std::size_t>(bytes), k_guard_value));
  m_data = whole + k_guard;
}

std::vector<float> ResultArea::read(const sim::Cluster& cluster) const {
  const auto bytes = static_cast<std::size_t>(m_count * bytes_of(m_dtype));
  std::vector<std::byte> all(bytes + 2 * k_guard);
  cluster.read(m_data + -k_guard, all);
  const auto untouched = [](std::byte b) { return b == k_guard_value; };
  CHECK(std::all_of(all.begin(), all.begin() + k_guard, untouched));
  CHECK(std::all_of(all.end() - k_guard, all.end(), untouched));
  std::vector<float> values(static_cast<std::size_t>(m_count));
  if (m_dtype == DType::f32) {
    std::memcpy(values.data(), all.data() + k_guard, bytes);
    return values;
  }
  std::vector<std::uint16_t> halves(values.size());
  std::memcpy(halves.data(), all.data() + k_guard, bytes);
  return values_f16(halves);
}

void expect_clean(const sim::LaunchResult& result) {
  for (const sim::Finding& finding : result.findings) FAIL_CHECK(finding.message);
  if (result.fault) FAIL_CHECK(result.fault->str());
}

}  // namespace mtsim::kernels
