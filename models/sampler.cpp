// SPDX-License-Identifier: Apache-2.0
#include "models/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "models/error.h"

namespace mtsim::models {

namespace {

/// The first of the largest.
std::size_t checked_maximum(std::span<const float> logits) {
  std::size_t best = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]) || logits[i] == std::numeric_limits<float>::infinity())
      throw ModelError(fmt::format("the logit of token {} is {}; the model computed no number", i,
                                   std::isnan(logits[i]) ? "NaN" : "infinite"));
    if (logits[i] > logits[best]) best = i;
  }
  if (logits.empty() || std::isinf(logits[best]))
    throw ModelError("there is no token to choose: all logits are minus infinity");
  return best;
}

/// exp of x <= 0, in additions and multiplications alone: the library's depends on the host's instruction set in the
/// last bit, and a sampled text would with it. Correct to a few units in the last place.
double exponential(double x) {
  constexpr double k_log2_high = 0x1.62e42feep-1, k_log2_low = 0x1.a39ef35793c76p-33;
  if (x < -700) return 0;
  const double n = std::floor(x / k_log2_high + 0.5);
  const double r = (x - n * k_log2_high) - n * k_log2_low;  // |r| <= 0.35
  double sum = 1;
  for (int i = 14; i > 0; --i) sum = 1 + r / i * sum;
  return std::ldexp(sum, static_cast<int>(n));
}

struct Candidate {
  double weight = 0;  // not normalised
  std::size_t id = 0;
};

}  // namespace

std::uint64_t RandomSequence::next() {
  std::uint64_t z = m_state += 0x9E3779B97F4A7C15;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return z ^ z >> 31;
}

double RandomSequence::uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

Sampler::Sampler(const SamplerOptions& options) : m_options(options), m_random(options.seed) {
  if (!(options.temperature >= 0 && std::isfinite(options.temperature)))
    throw ModelError(fmt::format("a temperature of {}; give 0 (the likeliest token) or more", options.temperature));
  if (!(options.top_p > 0 && options.top_p <= 1))
    throw ModelError(fmt::format("a top-p of {}; give more than 0 and at most 1", options.top_p));
}

std::int64_t Sampler::sample(std::span<const float> logits) {
  const std::size_t best = checked_maximum(logits);
  if (m_options.temperature == 0) return static_cast<std::int64_t>(best);
  std::vector<Candidate> candidates(logits.size());
  double total = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double distance = static_cast<double>(logits[i]) - static_cast<double>(logits[best]);
    candidates[i] = {exponential(distance / m_options.temperature), i};
    total += candidates[i].weight;
  }
  if (m_options.top_p < 1) {
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
    });
    double kept = 0;
    std::size_t count = 0;
    while (count < candidates.size() && kept < m_options.top_p * total) kept += candidates[count++].weight;
    candidates.resize(count);
    total = kept;
  }
  double left = m_random.uniform() * total;
  for (const Candidate& candidate : candidates) {
    left -= candidate.weight;
    if (left < 0) return static_cast<std::int64_t>(candidate.id);
  }
  // Rounding ate the rest.
  const auto last =
      std::find_if(candidates.rbegin(), candidates.rend(), [](const auto& candidate) { return candidate.weight > 0; });
  return static_cast<std::int64_t>(last->id);
}

}  // namespace mtsim::models
