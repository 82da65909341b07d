// SPDX-License-Identifier: Apache-2.0
#include "models/llama2c.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <limits>

#include "models/error.h"

namespace mtsim::models {

namespace {

/// The number later layouts of llama2.c begin with.
constexpr std::int32_t k_magic_of_later_layouts = 0x616b3432;

}  // namespace

LlamaConfig parse_llama2c_header(std::string_view header, const std::string& file) {
  if (header.size() < k_llama2c_header_bytes)
    throw ModelError(fmt::format("{}: has {} bytes; a llama2.c file begins with a header of {}", file, header.size(),
                                 k_llama2c_header_bytes));
  std::array<std::int32_t, 7> numbers;
  std::memcpy(numbers.data(), header.data(), k_llama2c_header_bytes);
  if (numbers[0] == k_magic_of_later_layouts)
    throw ModelError(fmt::format(
        "{}: is a llama2.c file of version 1 or later; only the legacy layout is read, export it with --version 0",
        file));
  constexpr std::size_t k_vocabulary = 5;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const bool may_be_negative = i == k_vocabulary && numbers[i] != std::numeric_limits<std::int32_t>::min();
    if (numbers[i] == 0 || (numbers[i] < 0 && !may_be_negative))
      throw ModelError(fmt::format("{}: is no llama2.c file: its header holds {}", file, numbers[i]));
  }
  LlamaConfig config;
  config.hidden_size = numbers[0];
  config.intermediate_size = numbers[1];
  config.layers = numbers[2];
  config.heads = numbers[3];
  config.kv_heads = numbers[4];
  config.tie_word_embeddings = numbers[5] > 0;  // a negative vocabulary says that the head has weights of its own
  config.vocab_size = numbers[5] < 0 ? -std::int64_t{numbers[5]} : std::int64_t{numbers[5]};
  config.max_positions = numbers[6];
  if (config.hidden_size % config.heads != 0)
    throw ModelError(fmt::format("{}: is no llama2.c file: {} heads do not divide the hidden size {}", file,
                                 config.heads, config.hidden_size));
  config.head_dim = config.hidden_size / config.heads;
  // What the program that reads these files has built in.
  config.rms_norm_eps = 1e-5;
  config.rope_theta = 10000;
  config.rope_pairs = RopePairs::interleaved;
  if (config.vocab_size > 2) {
    config.bos_id = 1;
    config.eos_ids = {2};
  }
  config.check(file);
  return config;
}

std::vector<StoredTensor> llama2c_tensors(const LlamaConfig& config, std::uint64_t file_bytes,
                                          const std::string& file) {
  std::vector<StoredTensor> tensors;
  std::uint64_t offset = k_llama2c_header_bytes;
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape) {
    std::uint64_t bytes = sizeof(float);
    for (const auto size : shape) bytes *= static_cast<std::uint64_t>(size);
    tensors.push_back({name, "F32", ElementType::f32, std::move(shape), offset, bytes});
    offset += bytes;
  };
  // All layers of one role lie behind each other.
  const auto add_layers = [&](const char* name, const std::vector<std::int64_t>& shape) {
    for (std::int64_t layer = 0; layer < config.layers; ++layer)
      add(fmt::format("model.layers.{}.{}.weight", layer, name), shape);
  };
  const auto hidden = config.hidden_size, intermediate = config.intermediate_size;
  add("model.embed_tokens.weight", {config.vocab_size, hidden});
  add_layers("input_layernorm", {hidden});
  add_layers("self_attn.q_proj", {config.q_width(), hidden});
  add_layers("self_attn.k_proj", {config.kv_width(), hidden});
  add_layers("self_attn.v_proj", {config.kv_width(), hidden});
  add_layers("self_attn.o_proj", {hidden, config.q_width()});
  add_layers("post_attention_layernorm", {hidden});
  add_layers("mlp.gate_proj", {intermediate, hidden});
  add_layers("mlp.down_proj", {hidden, intermediate});
  add_layers("mlp.up_proj", {intermediate, hidden});
  add("model.norm.weight", {hidden});
  // Cosines and sines of RoPE, which nobody reads any more.
  offset += static_cast<std::uint64_t>(config.max_positions * config.head_dim) * sizeof(float);
  if (!config.tie_word_embeddings) add("lm_head.weight", {config.vocab_size, hidden});
  check_places(tensors, file_bytes, file);
  if (offset != file_bytes)
    throw ModelError(fmt::format("{}: has {} bytes; its header asks for {}. The file is damaged or in another layout",
                                 file, file_bytes, offset));
  return tensors;
}

}  // namespace mtsim::models
