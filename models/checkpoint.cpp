// SPDX-License-Identifier: Apache-2.0
#include "models/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <filesystem>
#include <map>
#include <system_error>

#include "models/error.h"
#include "models/gguf.h"
#include "models/llama2c.h"
#include "models/safetensors.h"
#include "models/tensor_names.h"
#include "models/utf8.h"

namespace mtsim::models {

namespace fs = std::filesystem;

namespace {

std::size_t slot(Role role, std::int64_t layer, std::int64_t layers) {
  const auto number = static_cast<std::int64_t>(role);
  return static_cast<std::size_t>(number < k_layer_roles ? layer * k_layer_roles + number
                                                         : layers * k_layer_roles + number - k_layer_roles);
}

[[noreturn]] void refuse(const std::string& file, const std::string& name, const std::string& what) {
  throw ModelError(fmt::format("{}: tensor '{}': {}", file, printable(name), what));
}

/// The shards of an index, mapped, in the order of their names. Every tensor is where the index says and nowhere else.
std::vector<MappedFile> map_shards(const fs::path& folder, const std::map<std::string, std::string>& index) {
  std::vector<std::string> names;
  for (const auto& [tensor, shard] : index) names.push_back(shard);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::vector<MappedFile> files;
  files.reserve(names.size());
  for (const auto& name : names) files.emplace_back((folder / name).string());
  return files;
}

}  // namespace

const char* to_string(Role role) {
  constexpr const char* k_words[] = {"attn_norm", "q",        "k",    "v",  "o",    "q_bias",    "k_bias",     "v_bias",
                                     "o_bias",    "ffn_norm", "gate", "up", "down", "embedding", "final_norm", "head"};
  return k_words[static_cast<int>(role)];
}

std::vector<std::int64_t> shape_of(Role role, const LlamaConfig& config) {
  switch (role) {
    case Role::attn_norm:
    case Role::ffn_norm:
    case Role::final_norm:
    case Role::o_bias: return {config.hidden_size};
    case Role::q: return {config.q_width(), config.hidden_size};
    case Role::k:
    case Role::v: return {config.kv_width(), config.hidden_size};
    case Role::o: return {config.hidden_size, config.q_width()};
    case Role::q_bias: return {config.q_width()};
    case Role::k_bias:
    case Role::v_bias: return {config.kv_width()};
    case Role::gate:
    case Role::up: return {config.intermediate_size, config.hidden_size};
    case Role::down: return {config.hidden_size, config.intermediate_size};
    case Role::embedding:
    case Role::head: return {config.vocab_size, config.hidden_size};
  }
  return {};
}

bool is_present(Role role, const LlamaConfig& config) {
  switch (role) {
    case Role::q_bias:
    case Role::k_bias:
    case Role::v_bias: return config.qkv_bias;
    case Role::o_bias: return config.o_bias;
    case Role::head: return !config.tie_word_embeddings;
    default: return true;
  }
}

struct Checkpoint::Source {
  const MappedFile* file = nullptr;
  std::vector<StoredTensor> tensors;
  Naming naming = Naming::hugging_face;
};

Checkpoint Checkpoint::open(const std::string& path) {
  Checkpoint checkpoint;
  checkpoint.m_path = path;
  checkpoint.m_config = load_config(path);
  std::error_code error;
  if (!fs::exists(path, error))
    throw ModelError(fmt::format("'{}' is a configuration without weights; name a folder or file with weights", path));
  if (fs::is_directory(path, error))
    checkpoint.open_hugging_face();
  else if (fs::path(path).extension() == ".gguf")
    checkpoint.open_gguf();
  else if (fs::path(path).extension() == ".bin")
    checkpoint.open_llama2c();
  else
    throw ModelError(fmt::format("{}: holds no weights; name its folder, a .gguf or a llama2.c .bin", path));
  return checkpoint;
}

void Checkpoint::open_hugging_face() {
  const fs::path folder = m_path, single = folder / "model.safetensors",
                 index_path = folder / "model.safetensors.index.json";
  std::error_code error;
  std::map<std::string, std::string> index;
  const bool is_single = fs::exists(single, error);
  if (is_single) {
    m_files.emplace_back(single.string());
  } else if (fs::exists(index_path, error)) {
    index = parse_safetensors_index(MappedFile(index_path.string()).text(), index_path.string());
    m_files = map_shards(folder, index);
  } else {
    const bool has_pickles =
        fs::exists(folder / "pytorch_model.bin", error) || fs::exists(folder / "pytorch_model.bin.index.json", error);
    throw ModelError(fmt::format("{}: has neither model.safetensors nor model.safetensors.index.json{}", m_path,
                                 has_pickles ? "; convert its pytorch_model.bin to safetensors" : ""));
  }
  std::vector<Source> sources;
  for (const auto& file : m_files) {
    Source source{&file, safetensors_tensors(file.text(), file.path()), Naming::hugging_face};
    const std::string shard = fs::path(file.path()).filename().string();
    for (const auto& tensor : source.tensors) {
      if (is_single) continue;
      const auto entry = index.find(tensor.name);
      if (entry == index.end()) refuse(file.path(), tensor.name, "is not in model.safetensors.index.json");
      if (entry->second != shard)
        refuse(file.path(), tensor.name,
               fmt::format("should be in '{}' by model.safetensors.index.json", printable(entry->second)));
      index.erase(entry);
    }
    sources.push_back(std::move(source));
  }
  if (!index.empty())
    refuse((folder / index.begin()->second).string(), index.begin()->first,
           "is missing, though model.safetensors.index.json has it");
  assign(sources);
}

void Checkpoint::open_gguf() {
  const MappedFile& file = m_files.emplace_back(m_path);
  const GgufFile gguf(file.text(), file.path());
  assign({{&file, stored_tensors(gguf, file.size()), Naming::gguf}});
}

void Checkpoint::open_llama2c() {
  const MappedFile& file = m_files.emplace_back(m_path);
  assign({{&file, llama2c_tensors(m_config, file.size(), m_path), Naming::hugging_face}});
}

void Checkpoint::assign(const std::vector<Source>& sources) {
  m_tensors.resize(static_cast<std::size_t>(m_config.layers * k_layer_roles + k_roles - k_layer_roles));
  for (const auto& source : sources) {
    for (const auto& stored : source.tensors) {
      const std::string& file = source.file->path();
      const auto place = place_of(source.naming, stored.name);
      if (!place && is_without_effect(stored.name)) continue;
      if (!place)
        refuse(file, stored.name, "is none of a Llama's; a model that needs it would give other results here");
      if (place->layer >= m_config.layers)
        refuse(file, stored.name,
               fmt::format("belongs to layer {}, but the configuration has {} layers", place->layer, m_config.layers));
      if (!is_present(place->role, m_config)) {
        if (place->role == Role::head) continue;  // a copy of the embedding
        refuse(file, stored.name, "is a bias, but the configuration has none there; check 'attention_bias'");
      }
      if (stored.type == ElementType::other)
        refuse(
            file, stored.name,
            fmt::format("has type {}; F32, F16 and BF16 are read, convert the file to one of them", stored.type_name));
      const auto shape = shape_of(place->role, m_config);
      if (stored.shape != shape)
        refuse(file, stored.name,
               fmt::format("has shape {}; the configuration asks for {}", shape_text(stored.shape), shape_text(shape)));
      auto& tensor = m_tensors[slot(place->role, place->layer, m_config.layers)];
      if (tensor) refuse(file, stored.name, fmt::format("is there twice, in '{}' too; remove one", tensor->file));
      const bool is_vector = shape.size() == 1;
      tensor = Tensor{stored.name,  file,
                      stored.type,  is_vector ? 1 : shape[0],
                      shape.back(), source.file->text().substr(stored.offset, stored.bytes)};
    }
  }
  const Source& last = sources.back();
  for (int role = 0; role < k_roles; ++role) {
    const bool in_layer = role < k_layer_roles;
    for (std::int64_t layer = 0; layer < (in_layer ? m_config.layers : 1); ++layer) {
      if (is_present(static_cast<Role>(role), m_config) &&
          !m_tensors[slot(static_cast<Role>(role), layer, m_config.layers)])
        refuse(m_path, tensor_name(last.naming, static_cast<Role>(role), layer),
               "is missing; the checkpoint is incomplete");
    }
  }
}

const Tensor& Checkpoint::tensor(Role role, std::int64_t layer) const {
  if (role == Role::head && m_config.tie_word_embeddings) role = Role::embedding;
  const auto& tensor = m_tensors[slot(role, layer, m_config.layers)];
  assert(tensor);
  return *tensor;
}

}  // namespace mtsim::models
