// SPDX-License-Identifier: Apache-2.0
// The weights of a model by what they are for, whichever format has them. Files are mapped, so that a weight takes
// memory only while it is used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/config.h"
#include "models/mapped_file.h"
#include "models/tensor.h"

namespace mtsim::models {

/// What a tensor is for. Those of a layer come first.
enum class Role {
  attn_norm,   // [hidden]
  q,           // [heads * head_dim, hidden]
  k,           // [kv_heads * head_dim, hidden]
  v,           // [kv_heads * head_dim, hidden]
  o,           // [hidden, heads * head_dim]
  q_bias,      // [heads * head_dim]
  k_bias,      // [kv_heads * head_dim]
  v_bias,      // [kv_heads * head_dim]
  o_bias,      // [hidden]
  ffn_norm,    // [hidden]
  gate,        // [intermediate, hidden]
  up,          // [intermediate, hidden]
  down,        // [hidden, intermediate]
  embedding,   // [vocab, hidden]
  final_norm,  // [hidden]
  head,        // [vocab, hidden]; the embedding where they are tied
};
inline constexpr int k_roles = 16, k_layer_roles = 13;

const char* to_string(Role role);

/// The shape of a role's tensor: [out, in], or [n].
std::vector<std::int64_t> shape_of(Role role, const LlamaConfig& config);
/// Whether a model of this configuration has such a tensor (biases, a head of its own).
bool is_present(Role role, const LlamaConfig& config);

/// A weight as it lies in its file. The bytes live as long as the checkpoint and need not be aligned.
struct Tensor {
  std::string name;  // the file's own
  std::string file;
  ElementType type = ElementType::f32;
  std::int64_t rows = 0;     // out; 1 for a vector
  std::int64_t columns = 0;  // in
  std::string_view bytes;    // rows one after the other, row_bytes(type, columns) each

  // Rows [first, first + count) to `to`, [count, columns]. The first NaN, infinity or, in FP16, number too large for it
  // is a ModelError with tensor and index.
  void read_f32(std::int64_t first, std::int64_t count, float* to) const;
  void read_f16(std::int64_t first, std::int64_t count, std::uint16_t* to) const;
  /// The same check for bytes that are used in place. Reads them all.
  void check_values() const;
};

class Checkpoint {
 public:
  /// A Hugging Face folder (config.json with model.safetensors or model.safetensors.index.json), a .gguf, or a llama2.c
  /// .bin. Looks at every tensor's name, shape, type and place, at no value. Throws ModelError.
  static Checkpoint open(const std::string& path);

  const LlamaConfig& config() const { return m_config; }
  /// As given to open().
  const std::string& path() const { return m_path; }
  /// The files the weights are in.
  const std::vector<MappedFile>& files() const { return m_files; }

  /// Must be present. `layer` counts from 0 and is 0 for the last three roles.
  const Tensor& tensor(Role role, std::int64_t layer = 0) const;

 private:
  struct Source;  // a file's tensors and the names they have
  Checkpoint() = default;
  void open_hugging_face();
  void open_gguf();
  void open_llama2c();
  void assign(const std::vector<Source>& sources);

  std::string m_path;
  LlamaConfig m_config;
  std::vector<MappedFile> m_files;
  std::vector<std::optional<Tensor>> m_tensors;  // [layers][k_layer_roles], then the three others
};

}  // namespace mtsim::models
