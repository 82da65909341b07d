// SPDX-License-Identifier: Apache-2.0
#include "scenarios/rope_reference.h"

#include <cmath>

#include "scenarios/operator_stream.h"

namespace mtsim::scenarios {

namespace {

struct Bounded {
  double value = 0, bound = 0;
};

/// x cos - y sin. Sine and cosine: 3.5 ULP, relative to them at most 3.5 * 2^-23. The product x cos is rounded, then
/// the fused sum, and in FP16 the result once more; below the normal range each is off by half the smallest subnormal.
Bounded rotated(const Bounded& x, const Bounded& y, double cosine, double sine, kernels::DType dtype) {
  constexpr double k_off = 3.5 * 0x1p-23;
  const double u = unit_roundoff(DType::f32);
  const double x_part = (std::abs(x.value) + x.bound) * std::abs(cosine);
  const double y_part = (std::abs(y.value) + y.bound) * std::abs(sine);
  Bounded result{x.value * cosine - y.value * sine, x.bound * std::abs(cosine) + y.bound * std::abs(sine)};
  result.bound += k_off * (x_part + y_part) + u * (1 + k_off) * x_part;
  result.bound += u * (std::abs(result.value) + result.bound) + 0x1p-149;
  if (dtype == DType::f16)
    result.bound += unit_roundoff(DType::f16) * (std::abs(result.value) + result.bound) + 0x1p-25;
  return result;
}

}  // namespace

std::vector<float> reference_inv_freq(std::int64_t head_dim, double theta) {
  std::vector<float> frequencies;
  for (std::int64_t i = 0; i < head_dim / 2; ++i) {
    const long double exponent = -2 * static_cast<long double>(i) / static_cast<long double>(head_dim);
    frequencies.push_back(static_cast<float>(std::pow(static_cast<long double>(theta), exponent)));
  }
  return frequencies;
}

void rotate_reference(std::int64_t position, std::span<const float> inv_freq, kernels::RopePairs pairs,
                      kernels::DType dtype, std::span<double> values, std::span<double> bounds) {
  const std::size_t half = inv_freq.size();
  const bool interleaved = pairs == kernels::RopePairs::interleaved;
  for (std::size_t i = 0; i < half; ++i) {
    // The angle is rounded to FP32, as the definition has it.
    const auto angle = static_cast<double>(static_cast<float>(position) * inv_freq[i]);
    const double cosine = std::cos(angle), sine = std::sin(angle);
    for (std::size_t head = 0; head + 2 * half <= values.size(); head += 2 * half) {
      const std::size_t a = head + (interleaved ? 2 * i : i), b = interleaved ? a + 1 : a + half;
      const Bounded x{values[a], bounds[a]}, y{values[b], bounds[b]};
      const Bounded first = rotated(x, y, cosine, sine, dtype), second = rotated(y, x, cosine, -sine, dtype);
      values[a] = first.value;
      bounds[a] = first.bound;
      values[b] = second.value;
      bounds[b] = second.bound;
    }
  }
}

}  // namespace mtsim::scenarios
