// SPDX-License-Identifier: Apache-2.0
// The architecture numbers of a Llama-family model, from whichever file has them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mtsim::models {

/// Which two elements of a head RoPE rotates by one angle.
enum class RopePairs {
  half,         // i and i + head_dim / 2: Hugging Face checkpoints
  interleaved,  // 2 i and 2 i + 1: llama2.c, and GGUF of the llama architecture, whose rows of Q and K are permuted for
                // it
};

const char* to_string(RopePairs pairs);

/// Every decoder of this family: RMSNorm, RoPE on Q and K, grouped-query attention, SiLU-gated feed-forward.
struct LlamaConfig {
  std::string name;              // of the folder or file
  std::int64_t hidden_size = 0;  // width of the residual stream
  std::int64_t intermediate_size = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;     // of Q
  std::int64_t kv_heads = 0;  // of K and V; divides heads
  std::int64_t head_dim = 0;  // even; heads * head_dim need not be hidden_size
  std::int64_t vocab_size = 0;
  std::int64_t max_positions = 0;  // longest context the model was made for
  double rms_norm_eps = 0;
  double rope_theta = 0;
  RopePairs rope_pairs = RopePairs::half;
  bool tie_word_embeddings = false;  // the head is the embedding
  bool qkv_bias = false;
  bool o_bias = false;
  std::optional<std::int64_t> bos_id;  // what a prompt begins with
  std::vector<std::int64_t> eos_ids;   // any of them ends a text

  std::int64_t q_width() const { return heads * head_dim; }
  std::int64_t kv_width() const { return kv_heads * head_dim; }
  std::int64_t queries_per_kv_head() const { return heads / kv_heads; }

  std::int64_t embedding_parameters() const { return vocab_size * hidden_size; }
  std::int64_t layer_parameters() const;
  /// All weights there are; a tied head counts once.
  std::int64_t parameters() const;
  /// K and V of one token over all layers, at so many bytes an element.
  std::int64_t kv_bytes_per_token(std::int64_t bytes_per_element) const;

  /// Throws ModelError for numbers no model can have, naming the first as `key` says it. `file` is for the message.
  void check(const std::string& file) const;
};

/// By the name of a shipped configuration ("Llama-2-7B"), or from a path: a folder with config.json, a config.json, a
/// .gguf, a llama2.c .bin. Throws ModelError.
LlamaConfig load_config(const std::string& name_or_path);

/// A Hugging Face config.json. Unknown keys are ignored as Hugging Face does; what would change the result and is not
/// implemented (RoPE scaling, sliding windows, quantisation, other activations) is a ModelError that names the key.
LlamaConfig parse_hugging_face_config(std::string_view text, const std::string& file);

/// The 28-byte header of a llama2.c .bin in the legacy layout.
LlamaConfig parse_llama2c_header(std::string_view header, const std::string& file);

/// The shipped configurations, sorted.
std::vector<std::string> config_names();

}  // namespace mtsim::models
