// SPDX-License-Identifier: Apache-2.0
#include "models/config.h"

#include <fmt/format.h>

#include <cmath>

#include "models/error.h"

namespace mtsim::models {

namespace {

/// Far above any model; below them no product of three numbers and the layers leaves 64 bits.
constexpr std::int64_t k_max_layers = 1 << 14;
constexpr std::int64_t k_max_width = 1 << 22;
constexpr std::int64_t k_max_vocabulary = 1 << 24;
constexpr std::int64_t k_max_positions = std::int64_t{1} << 30;

}  // namespace

const char* to_string(RopePairs pairs) { return pairs == RopePairs::half ? "half" : "interleaved"; }

std::int64_t LlamaConfig::layer_parameters() const {
  const std::int64_t attention = hidden_size * (2 * q_width() + 2 * kv_width());
  const std::int64_t biases = (qkv_bias ? q_width() + 2 * kv_width() : 0) + (o_bias ? hidden_size : 0);
  return attention + biases + 3 * hidden_size * intermediate_size + 2 * hidden_size;
}

std::int64_t LlamaConfig::parameters() const {
  return embedding_parameters() * (tie_word_embeddings ? 1 : 2) + layers * layer_parameters() + hidden_size;
}

std::int64_t LlamaConfig::kv_bytes_per_token(std::int64_t bytes_per_element) const {
  return 2 * layers * kv_width() * bytes_per_element;
}

void LlamaConfig::check(const std::string& file) const {
  const auto refuse = [&](std::string_view what) { throw ModelError(fmt::format("{}: {}", file, what)); };
  const auto in_range = [&](std::string_view what, std::int64_t value, std::int64_t high) {
    if (value < 1 || value > high) refuse(fmt::format("{} is {}; a model has 1 to {}", what, value, high));
  };
  in_range("the number of layers", layers, k_max_layers);
  in_range("the hidden size", hidden_size, k_max_width);
  in_range("the intermediate size", intermediate_size, k_max_width);
  in_range("the number of heads", heads, k_max_width);
  in_range("the number of KV heads", kv_heads, k_max_width);
  in_range("the vocabulary size", vocab_size, k_max_vocabulary);
  in_range("the number of positions", max_positions, k_max_positions);
  in_range("the head dimension", head_dim, k_max_width);
  in_range("heads times head dimension", q_width(), k_max_width);
  if (head_dim % 2 != 0)
    refuse(fmt::format("the head dimension is {}; RoPE rotates pairs, so that it must be even", head_dim));
  if (heads % kv_heads != 0)
    refuse(fmt::format("{} heads do not share {} KV heads evenly; the first must be a multiple of the second", heads,
                       kv_heads));
  if (!(rms_norm_eps >= 0 && rms_norm_eps < 1))
    refuse(fmt::format("the epsilon of RMSNorm is {}; a model has one from 0 to below 1", rms_norm_eps));
  if (!(rope_theta >= 1 && std::isfinite(rope_theta)))
    refuse(fmt::format("the base of RoPE is {}; a model has one from 1 on", rope_theta));
  const auto is_id = [&](std::string_view what, std::int64_t id) {
    if (id < 0 || id >= vocab_size)
      refuse(fmt::format("the {} id is {}; ids of this vocabulary are 0 to {}", what, id, vocab_size - 1));
  };
  if (bos_id) is_id("BOS", *bos_id);
  for (const std::int64_t id : eos_ids) is_id("EOS", id);
}

}  // namespace mtsim::models
