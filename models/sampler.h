// SPDX-License-Identifier: Apache-2.0
// The next token from logits. The same seed gives the same text on every host.
#pragma once

#include <cstdint>
#include <span>

namespace mtsim::models {

struct SamplerOptions {
  double temperature = 0;  // 0: the largest logit, always
  double top_p = 1;        // of the likeliest tokens, as few as have this probability together; 1: all
  std::uint64_t seed = 1;
};

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
class RandomSequence {
 public:
  explicit RandomSequence(std::uint64_t seed) : m_state(seed) {}
  std::uint64_t next();
  /// From 0 to below 1, 53 bits.
  double uniform();

 private:
  std::uint64_t m_state;
};

class Sampler {
 public:
  /// Throws ModelError for a temperature below 0, top_p outside (0, 1], or what is no number.
  explicit Sampler(const SamplerOptions& options);

  /// An index into `logits` [vocab]. Of equal logits the first comes first. Throws ModelError for a NaN or plus
  /// infinity, naming its index; minus infinity is a token never taken.
  std::int64_t sample(std::span<const float> logits);

 private:
  SamplerOptions m_options;
  RandomSequence m_random;
};

}  // namespace mtsim::models
