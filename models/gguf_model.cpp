// SPDX-License-Identifier: Apache-2.0
// What the metadata and tensors of a GGUF file mean for a Llama.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/error.h"
#include "models/gguf.h"
#include "models/utf8.h"

namespace mtsim::models {

namespace {

/// The numbers the format gives its tensor types, for the messages too. Empty: withdrawn.
constexpr std::array<std::string_view, 31> k_type_names = {
    "F32",   "F16",    "Q4_0", "Q4_1", "",     "",        "Q5_0",   "Q5_1",    "Q8_0",  "Q8_1",   "Q2_K",
    "Q3_K",  "Q4_K",   "Q5_K", "Q6_K", "Q8_K", "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S",
    "IQ2_S", "IQ4_XS", "I8",   "I16",  "I32",  "I64",     "F64",    "IQ1_M",   "BF16"};

std::optional<ElementType> element_type(std::uint32_t type) {
  for (const auto known : {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::q8_0})
    if (type < k_type_names.size() && k_type_names[type] == to_string(known)) return known;
  return std::nullopt;
}

std::int64_t required(const GgufFile& file, const std::string& key) {
  const auto value = file.integer(key);
  if (!value) file.refuse(key, "is missing; the metadata of a model has it");
  return *value;
}

/// A number that is the same in all layers, be it one value or a list of one a layer.
std::optional<std::int64_t> same_in_all_layers(const GgufFile& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end() || !std::holds_alternative<GgufArray>(found->second)) return file.integer(key);
  const auto values = file.integers(key);
  if (values->empty() ||
      std::any_of(values->begin(), values->end(), [&](auto value) { return value != values->front(); }))
    file.refuse(key, "differs from layer to layer; layers of different shapes are not implemented");
  return values->front();
}

bool has_tensor(const GgufFile& file, std::string_view name) {
  return std::any_of(file.tensors().begin(), file.tensors().end(),
                     [&](const auto& tensor) { return tensor.name == name; });
}

std::int64_t vocabulary_of(const GgufFile& file, const std::string& prefix) {
  if (const auto size = file.integer(prefix + "vocab_size")) return *size;
  for (const auto& tensor : file.tensors())
    if (tensor.name == "token_embd.weight") return tensor.shape.front();
  if (const auto tokens = file.strings("tokenizer.ggml.tokens")) return static_cast<std::int64_t>(tokens->size());
  file.refuse(prefix + "vocab_size", "is missing, and there is neither an embedding nor a vocabulary");
}

void refuse_what_is_not_implemented(const GgufFile& file, const std::string& prefix, const LlamaConfig& config) {
  const auto differs = [&](const std::string& key, std::int64_t value, const char* what) {
    if (const auto given = file.integer(prefix + key); given && *given != value)
      file.refuse(prefix + key, fmt::format("is {}; {}", *given, what));
  };
  differs("rope.dimension_count", config.head_dim, "only RoPE on whole heads is implemented");
  differs("attention.value_length", config.head_dim, "heads of V as long as those of K are implemented");
  differs("expert_count", 0, "mixtures of experts are not implemented");
  if (const auto window = file.integer(prefix + "attention.sliding_window");
      window && *window > 0 && *window < config.max_positions)
    file.refuse(
        prefix + "attention.sliding_window",
        fmt::format("is {}, less than the {} positions; windows are not implemented", *window, config.max_positions));
  if (const auto type = file.string(prefix + "rope.scaling.type"); type && *type != "none")
    file.refuse(prefix + "rope.scaling.type", fmt::format("is '{}'; scaled RoPE is not implemented", printable(*type)));
  for (const char* key : {"rope.scale_linear", "rope.scaling.factor"}) {
    if (const auto scale = file.number(prefix + key); scale && *scale != 1 && *scale != 0)
      file.refuse(prefix + key, fmt::format("is {}; scaled RoPE is not implemented", *scale));
  }
  if (has_tensor(file, "rope_freqs.weight"))
    file.refuse("rope_freqs.weight", "is among the tensors; scaled RoPE is not implemented");
}

}  // namespace

LlamaConfig config_of(const GgufFile& file) {
  const auto architecture = file.string("general.architecture");
  if (!architecture) file.refuse("general.architecture", "is missing; the metadata of a model has it");
  if (*architecture != "llama" && *architecture != "qwen2")
    file.refuse("general.architecture",
                fmt::format("is '{}'; llama and qwen2 are implemented", printable(*architecture)));
  const std::string prefix = std::string(*architecture) + ".";
  LlamaConfig config;
  config.hidden_size = required(file, prefix + "embedding_length");
  config.layers = required(file, prefix + "block_count");
  const auto intermediate = same_in_all_layers(file, prefix + "feed_forward_length");
  const auto heads = same_in_all_layers(file, prefix + "attention.head_count");
  if (!intermediate) file.refuse(prefix + "feed_forward_length", "is missing; the metadata of a model has it");
  if (!heads) file.refuse(prefix + "attention.head_count", "is missing; the metadata of a model has it");
  config.intermediate_size = *intermediate;
  config.heads = *heads;
  config.kv_heads = same_in_all_layers(file, prefix + "attention.head_count_kv").value_or(config.heads);
  if (config.heads < 1)
    file.refuse(prefix + "attention.head_count", fmt::format("is {}; it must be at least 1", config.heads));
  const auto head_dim = file.integer(prefix + "attention.key_length");
  if (!head_dim && config.hidden_size % config.heads != 0)
    file.refuse(prefix + "attention.head_count",
                fmt::format("is {}, which does not divide the hidden size {}", config.heads, config.hidden_size));
  config.head_dim = head_dim.value_or(config.hidden_size / config.heads);
  config.vocab_size = vocabulary_of(file, prefix);
  config.max_positions = required(file, prefix + "context_length");
  const auto epsilon = file.number(prefix + "attention.layer_norm_rms_epsilon");
  if (!epsilon) file.refuse(prefix + "attention.layer_norm_rms_epsilon", "is missing; the metadata of a model has it");
  config.rms_norm_eps = *epsilon;
  config.rope_theta = file.number(prefix + "rope.freq_base").value_or(10000);
  config.rope_pairs = *architecture == "llama" ? RopePairs::interleaved : RopePairs::half;
  config.tie_word_embeddings = !has_tensor(file, "output.weight");
  config.qkv_bias = has_tensor(file, "blk.0.attn_q.bias");
  config.o_bias = has_tensor(file, "blk.0.attn_output.bias");
  config.bos_id = file.integer("tokenizer.ggml.bos_token_id");
  if (const auto eos = file.integer("tokenizer.ggml.eos_token_id")) config.eos_ids = {*eos};
  refuse_what_is_not_implemented(file, prefix, config);
  config.check(file.file());
  return config;
}

std::vector<StoredTensor> stored_tensors(const GgufFile& file, std::uint64_t file_bytes) {
  std::vector<StoredTensor> tensors;
  for (const auto& given : file.tensors()) {
    const auto refuse = [&](const std::string& what) {
      throw ModelError(fmt::format("{}: tensor '{}': {}", file.file(), printable(given.name), what));
    };
    const auto type = element_type(given.type);
    if (!type) {
      const bool is_known = given.type < k_type_names.size() && !k_type_names[given.type].empty();
      refuse(fmt::format("has type {}; F32, F16, BF16 and Q8_0 are read, convert the file to one of them",
                         is_known ? std::string(k_type_names[given.type]) : fmt::format("number {}", given.type)));
    }
    StoredTensor tensor{given.name, to_string(*type), *type, given.shape, given.offset, 0};
    if (*type == ElementType::q8_0 && given.shape.back() % k_q8_0_elements != 0)
      refuse(fmt::format("has shape {}; rows of Q8_0 are multiples of {}", shape_text(given.shape), k_q8_0_elements));
    std::uint64_t bytes = static_cast<std::uint64_t>(row_bytes(*type, given.shape.back()));
    for (std::size_t i = 0; i + 1 < given.shape.size(); ++i) bytes *= static_cast<std::uint64_t>(given.shape[i]);
    tensor.bytes = bytes;
    tensors.push_back(std::move(tensor));
  }
  check_places(tensors, file_bytes, file.file());
  return tensors;
}

}  // namespace mtsim::models
