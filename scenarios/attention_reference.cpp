// SPDX-License-Identifier: Apache-2.0
#include "scenarios/attention_reference.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "scenarios/operands.h"

namespace mtsim::scenarios {

// Errors as multiples of u = 2^-24. A score is off by (head_dim + 3) u |q||k| (a fused multiply-add a product, up to
// three additions of partial sums), or u |score| more; a weight exp(x) then by scale times that, by 2 u |x| for the two
// roundings of x, and by 6 u a pass (exponential 1.8 u, rescaling of O and of the sum). V adds keys + 3 + passes
// roundings, the sum of weights keys / 32 + 8 + passes, 1 / sum and the last product 3. exp(-87) stands for what is
// less. Storage in FP16 adds 2^-11 of a score, and of a weight that or 2^-25.
AttentionRow attention_row(std::span<const float> q, std::span<const float> k, std::span<const float> v, double scale,
                           const AttentionKind& kind) {
  constexpr double u = 0x1p-24;
  const double stored = kind.half_scores ? 0x1p-11 : 0, apart = kind.scales_apart ? u : 0;
  const std::size_t d = q.size(), keys = k.size() / d;
  AttentionRow row{std::vector<double>(d), std::vector<double>(d)};
  std::vector<double> weights(keys), errors(keys);
  double most = -std::numeric_limits<double>::infinity();
  for (std::size_t j = 0; j < keys; ++j) {
    double score = 0, magnitude = 0;
    for (std::size_t i = 0; i < d; ++i) {
      const double product = static_cast<double>(q[i]) * static_cast<double>(k[j * d + i]);
      score += product;
      magnitude += std::abs(product);
    }
    weights[j] = score;
    errors[j] = scale * (u * static_cast<double>(d + 3) * magnitude + (apart + stored) * std::abs(score));
    most = std::max(most, score);
  }
  if (keys == 0) return row;
  const auto n = static_cast<double>(keys), parts = static_cast<double>(kind.passes);
  double sum = 0, sum_error = 0;
  for (std::size_t j = 0; j < keys; ++j) {
    const double x = scale * (weights[j] - most);
    weights[j] = std::exp(x);
    errors[j] = weights[j] * std::expm1(errors[j] + 2 * u * std::min(std::abs(x), 90.0) + 6 * (parts + 1) * u);
    sum += weights[j];
    sum_error += errors[j];
  }
  const double relative = sum_error / sum;
  std::vector<double> magnitudes(d), first(d);
  for (std::size_t j = 0; j < keys; ++j) {
    const double error =
        (errors[j] + weights[j] * ((n + 3 + parts) * u + stored)) / sum + (kind.half_scores ? 0x1p-25 : 0);
    for (std::size_t c = 0; c < d; ++c) {
      const auto x = static_cast<double>(v[j * d + c]);
      row.values[c] += weights[j] / sum * x;
      first[c] += error * std::abs(x);
      magnitudes[c] += std::abs(x);
    }
  }
  for (std::size_t c = 0; c < d; ++c) {
    const double value = std::abs(row.values[c]);
    row.bounds[c] = (first[c] + value * (relative + (n / 32 + 11 + parts) * u)) / std::max(0.0, 1 - relative) +
                    std::exp(-87.0) * (magnitudes[c] + n * value) + 0x1p-149;
  }
  return row;
}

}  // namespace mtsim::scenarios
