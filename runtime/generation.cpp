// SPDX-License-Identifier: Apache-2.0
#include "runtime/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "models/error.h"
#include "runtime/error.h"

namespace mtsim::runtime {
namespace {

constexpr std::int64_t k_sequence = 0;

}  // namespace

std::string_view to_string(StopReason reason) {
  constexpr std::array<std::string_view, 4> words = {"tokens", "end_of_text", "context", "failure"};
  return words[static_cast<std::size_t>(reason)];
}

std::int64_t longest_context(const models::LlamaConfig& config, std::int64_t prompt, std::int64_t tokens) {
  return std::min(config.max_positions, prompt + std::max<std::int64_t>(tokens, 1) - 1);
}

void check_prompt(const models::LlamaConfig& config, std::span<const std::int64_t> prompt) {
  if (prompt.empty()) throw RuntimeError("the prompt has no tokens; give some text, or ids");
  if (std::ssize(prompt) > config.max_positions) {
    throw RuntimeError(fmt::format("the prompt has {} tokens, the context of {} holds {}", prompt.size(), config.name,
                                   config.max_positions));
  }
  for (const std::int64_t id : prompt) {
    if (id < 0 || id >= config.vocab_size)
      throw RuntimeError(fmt::format("the prompt has token {}, the vocabulary ids 0 to {}", id, config.vocab_size - 1));
  }
}

Generation generate(Backend& backend, std::span<const std::int64_t> prompt, const GenerationOptions& options,
                    const GenerationListener& listener) {
  const models::LlamaConfig& config = backend.config();
  check_prompt(config, prompt);
  models::Sampler sampler(options.sampler);
  if (!backend.begin(k_sequence, longest_context(config, std::ssize(prompt), options.tokens)))
    throw RuntimeError("the KV cache has no room for the prompt");
  struct End {
    Backend& backend;
    ~End() { backend.end(k_sequence); }
  } end{backend};
  Generation generation{{prompt.begin(), prompt.end()}, 0, StopReason::tokens, {}, {}};
  const auto fail = [&](const std::string& why) {
    generation.stop = StopReason::failure;
    generation.failure = why;
  };
  SequenceInput input{k_sequence, {prompt.begin(), prompt.end()}};
  while (generation.generated < options.tokens) {
    const auto began = std::chrono::steady_clock::now();
    GenerationStep step{std::ssize(input.ids), {}, 0};
    try {
      step.result = backend.run({{input}, false});
    } catch (const std::exception& error) {
      if (generation.steps.empty()) throw;
      fail(error.what());
      break;
    }
    const std::vector<float> logits = std::exchange(step.result.logits, {});
    step.host_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    generation.steps.push_back(std::move(step));
    if (const auto& fault = generation.steps.back().result.fault) {
      fail(fault->str());
      break;
    }
    std::int64_t token = 0;  // of no meaning without values
    if (backend.has_values()) {
      try {
        token = sampler.sample(logits);
      } catch (const models::ModelError& error) {
        fail(error.what());
        break;
      }
    }
    ++generation.generated;
    if (backend.has_values()) {
      generation.ids.push_back(token);
      if (listener) listener(logits, {&token, 1});
      if (std::find(config.eos_ids.begin(), config.eos_ids.end(), token) != config.eos_ids.end()) {
        generation.stop = StopReason::end_of_text;
        break;
      }
    } else if (listener) {
      listener({}, {});
    }
    if (backend.length(k_sequence) == config.max_positions && generation.generated < options.tokens) {
      generation.stop = StopReason::context;
      break;
    }
    input.ids = {static_cast<std::int32_t>(token)};
  }
  return generation;
}

}  // namespace mtsim::runtime
