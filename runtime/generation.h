// SPDX-License-Identifier: Apache-2.0
// Text of one prompt: a prefill of all its tokens, then a token an iteration.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/sampler.h"
#include "runtime/backend/backend.h"

namespace mtsim::runtime {

struct GenerationOptions {
  std::int64_t tokens = 0;  // to generate, at most
  models::SamplerOptions sampler;
};

enum class StopReason : std::uint8_t { tokens, end_of_text, context, failure };
std::string_view to_string(StopReason reason);

/// An iteration of it.
struct GenerationStep {
  std::int64_t tokens = 0;  // that went in
  IterationResult result;   // without its logits
  double host_s = 0;        // on the host
};

struct Generation {
  std::vector<std::int64_t> ids;  // the prompt's, and those generated where values are computed
  std::int64_t generated = 0;     // tokens, with values or not
  StopReason stop = StopReason::tokens;
  std::vector<GenerationStep> steps;  // the prefill first
  std::string failure;                // what ended it before its time: a fault of a kernel, logits that are no numbers
};

/// Told of each step: the logits, and the token they gave. Both empty in timing depth.
using GenerationListener = std::function<void(std::span<const float> logits, std::span<const std::int64_t> token)>;

/// Tokens the longest sequence of such a generation has, at most what the model was made for.
std::int64_t longest_context(const models::LlamaConfig& config, std::int64_t prompt, std::int64_t tokens);

/// Throws RuntimeError for a prompt that is empty, longer than the context, or has an id outside the vocabulary.
void check_prompt(const models::LlamaConfig& config, std::span<const std::int64_t> prompt);

/// Ends after `tokens`, with an end-of-text token, or when the context is full. Throws RuntimeError for an empty prompt
/// or one that is longer than the context, and what the backend throws in the first iteration; what goes wrong later is
/// in the result, with all that was done before.
Generation generate(Backend& backend, std::span<const std::int64_t> prompt, const GenerationOptions& options,
                    const GenerationListener& listener = {});

}  // namespace mtsim::runtime
