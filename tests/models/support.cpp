// SPDX-License-Identifier: Apache-2.0
#include "tests/models/support.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>

#include "models/tensor_names.h"

namespace mtsim::models::test {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

RandomModel small_model() {
  RandomModel model;
  auto& config = model.config;
  config.hidden_size = 32;
  config.intermediate_size = 64;
  config.layers = 2;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 8;
  config.vocab_size = 300;
  config.max_positions = 64;
  config.rms_norm_eps = 1e-5;
  config.rope_theta = 10000;
  return model;
}

std::string make_small_model(const Folder& folder, const std::function<void(RandomModel&)>& change) {
  RandomModel model = small_model();
  if (change) change(model);
  write_random_model(folder.path("model"), model, true);
  return folder.path("model");
}

void change_safetensors(const std::string& path, const std::function<void(Json&, std::string&)>& change) {
  const std::string text = read_file(path);
  std::uint64_t length = 0;
  std::memcpy(&length, text.data(), sizeof length);
  Json header = Json::parse(text.substr(8, length));
  std::string data = text.substr(8 + length);
  change(header, data);
  std::string new_header = header.dump();
  new_header.resize((new_header.size() + 7) / 8 * 8, ' ');
  std::ofstream(path, std::ios::binary) << bytes_of(std::uint64_t{new_header.size()}) << new_header << data;
}

void change_config(const std::string& folder, const std::function<void(Json&)>& change) {
  Json json = Json::parse(read_file(folder + "/config.json"));
  change(json);
  std::ofstream(folder + "/config.json") << json.dump();
}

std::vector<float> row(const Tensor& tensor, std::int64_t index) {
  std::vector<float> values(static_cast<std::size_t>(tensor.columns));
  tensor.read_f32(index, 1, values.data());
  return values;
}

namespace {

std::string string_bytes(std::string_view text) { return bytes_of(std::uint64_t{text.size()}) + std::string(text); }
std::string type_bytes(std::uint32_t type) { return bytes_of(type); }
std::string array_bytes(std::uint32_t type, std::uint64_t count) {
  return type_bytes(9) + type_bytes(type) + bytes_of(count);
}

}  // namespace

void GgufBuilder::integer(const std::string& key, std::uint32_t value) {
  metadata.emplace_back(key, type_bytes(4) + bytes_of(value));
}
void GgufBuilder::number(const std::string& key, float value) {
  metadata.emplace_back(key, type_bytes(6) + bytes_of(value));
}
void GgufBuilder::text(const std::string& key, std::string_view value) {
  metadata.emplace_back(key, type_bytes(8) + string_bytes(value));
}

void GgufBuilder::texts(const std::string& key, const std::vector<std::string>& values) {
  std::string bytes = array_bytes(8, values.size());
  for (const auto& value : values) bytes += string_bytes(value);
  metadata.emplace_back(key, bytes);
}

void GgufBuilder::numbers(const std::string& key, const std::vector<float>& values) {
  std::string bytes = array_bytes(6, values.size());
  for (const float value : values) bytes += bytes_of(value);
  metadata.emplace_back(key, bytes);
}

void GgufBuilder::integers(const std::string& key, const std::vector<std::int32_t>& values) {
  std::string bytes = array_bytes(5, values.size());
  for (const auto value : values) bytes += bytes_of(value);
  metadata.emplace_back(key, bytes);
}

void GgufBuilder::remove(const std::string& key) {
  const auto count = std::erase_if(metadata, [&](const auto& pair) { return pair.first == key; });
  REQUIRE(count == 1);
}

GgufBuilder::Tensor& GgufBuilder::tensor(const std::string& name) {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const auto& tensor) { return tensor.name == name; });
  REQUIRE(found != tensors.end());
  return *found;
}

std::string GgufBuilder::build() const {
  std::string header =
      "GGUF" + bytes_of(version) + bytes_of(std::uint64_t{tensors.size()}) + bytes_of(std::uint64_t{metadata.size()});
  for (const auto& [key, value] : metadata) header += string_bytes(key) + value;
  std::string data;
  for (const auto& tensor : tensors) {
    header += string_bytes(tensor.name) + bytes_of(static_cast<std::uint32_t>(tensor.shape.size()));
    for (const auto size : tensor.shape) header += bytes_of(size);
    header += bytes_of(tensor.type) + bytes_of(tensor.offset.value_or(data.size()));
    data += tensor.bytes;
    data.resize((data.size() + alignment - 1) / alignment * alignment, '\0');
  }
  header.resize((header.size() + alignment - 1) / alignment * alignment, '\0');
  return header + data;
}

GgufBuilder gguf_of(const Checkpoint& checkpoint) {
  const LlamaConfig& config = checkpoint.config();
  GgufBuilder gguf;
  const auto integer = [&](const std::string& key, std::int64_t value) {
    gguf.integer(key, static_cast<std::uint32_t>(value));
  };
  gguf.text("general.architecture", "llama");
  integer("llama.embedding_length", config.hidden_size);
  integer("llama.block_count", config.layers);
  integer("llama.feed_forward_length", config.intermediate_size);
  integer("llama.attention.head_count", config.heads);
  integer("llama.attention.head_count_kv", config.kv_heads);
  integer("llama.context_length", config.max_positions);
  gguf.number("llama.attention.layer_norm_rms_epsilon", static_cast<float>(config.rms_norm_eps));
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    for (int number = 0; number < k_roles; ++number) {
      const auto role = static_cast<Role>(number);
      if (!is_present(role, config) || (number >= k_layer_roles && layer > 0)) continue;
      const auto& source = checkpoint.tensor(role, layer);
      GgufBuilder::Tensor tensor{tensor_name(Naming::gguf, role, layer), {static_cast<std::uint64_t>(source.columns)}};
      if (shape_of(role, config).size() == 2) tensor.shape.push_back(static_cast<std::uint64_t>(source.rows));
      const bool is_rotated = role == Role::q || role == Role::k;
      for (std::int64_t i = 0; i < source.rows; ++i) {
        // Row 2 p + h of a head holds what Hugging Face has in row p of half h.
        const std::int64_t in_head = i % config.head_dim, half = config.head_dim / 2;
        const std::int64_t from = is_rotated ? i - in_head + in_head / 2 + in_head % 2 * half : i;
        for (const float value : row(source, from)) tensor.bytes += bytes_of(value);
      }
      gguf.tensors.push_back(std::move(tensor));
    }
  }
  return gguf;
}

}  // namespace mtsim::models::test
