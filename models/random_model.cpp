// SPDX-License-Identifier: Apache-2.0
#include "models/random_model.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "models/checkpoint.h"
#include "models/convert.h"
#include "models/error.h"
#include "models/new_folder.h"
#include "models/sampler.h"
#include "models/sentencepiece_model.h"
#include "models/tensor_names.h"

namespace mtsim::models {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t k_piece_elements = 1 << 16;  // made and written together

struct NewTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::uint64_t elements = 1;
  double centre = 0, deviation = 0;
};

/// Spreads that keep the values of all layers near 1, so that logits differ by some units.
NewTensor new_tensor(Role role, std::int64_t layer, const LlamaConfig& config) {
  NewTensor tensor{tensor_name(Naming::hugging_face, role, layer), shape_of(role, config)};
  for (const auto size : tensor.shape) tensor.elements *= static_cast<std::uint64_t>(size);
  const bool is_vector = tensor.shape.size() == 1;
  const bool is_norm = role == Role::attn_norm || role == Role::ffn_norm || role == Role::final_norm;
  const bool ends_a_branch = role == Role::o || role == Role::down;  // 2 a layer add up in the residual stream
  tensor.centre = is_norm ? 1 : 0;
  tensor.deviation = is_vector                 ? 0.1
                     : role == Role::embedding ? 1
                                               : 1 / std::sqrt(static_cast<double>(tensor.shape.back()));
  if (ends_a_branch) tensor.deviation /= std::sqrt(2.0 * static_cast<double>(config.layers));
  // A tied head is the embedding, and reads values near 1.
  if (role == Role::embedding && config.tie_word_embeddings)
    tensor.deviation = 1 / std::sqrt(static_cast<double>(config.hidden_size));
  return tensor;
}

std::vector<NewTensor> new_tensors(const LlamaConfig& config) {
  std::vector<NewTensor> tensors{new_tensor(Role::embedding, 0, config)};
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    for (int role = 0; role < k_layer_roles; ++role)
      if (is_present(static_cast<Role>(role), config))
        tensors.push_back(new_tensor(static_cast<Role>(role), layer, config));
  }
  for (const Role role : {Role::final_norm, Role::head})
    if (is_present(role, config)) tensors.push_back(new_tensor(role, 0, config));
  return tensors;
}

/// Which tensors go together, from front to back.
std::vector<std::vector<NewTensor>> shards_of(const RandomModel& model) {
  std::vector<std::vector<NewTensor>> shards(1);
  std::uint64_t bytes = 0;
  for (auto& tensor : new_tensors(model.config)) {
    const std::uint64_t more = tensor.elements * static_cast<std::uint64_t>(row_bytes(model.type, 1));
    if (model.shard_bytes != 0 && !shards.back().empty() && bytes + more > model.shard_bytes) {
      shards.emplace_back();
      bytes = 0;
    }
    shards.back().push_back(std::move(tensor));
    bytes += more;
  }
  return shards;
}

/// A number near a normal distribution of deviation 1, from additions alone: four uniform ones of 16 bits.
double bell(RandomSequence& random) {
  constexpr double k_deviation = 37837.2;  // 65536 * sqrt(4 / 12)
  const std::uint64_t bits = random.next();
  const auto sum =
      static_cast<std::int64_t>((bits & 0xFFFF) + (bits >> 16 & 0xFFFF) + (bits >> 32 & 0xFFFF) + (bits >> 48));
  return static_cast<double>(sum - 2 * 65535) / k_deviation;
}

/// Each tensor has a sequence of its own, so that its values do not depend on the others.
RandomSequence sequence_of(const NewTensor& tensor, std::uint64_t seed) {
  RandomSequence mixed(seed);
  std::uint64_t start = mixed.next();
  for (const char c : tensor.name) start = (start ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return RandomSequence(start);
}

class SafetensorsWriter {
 public:
  SafetensorsWriter(const RandomModel& model, const WriteProgress& progress) : m_model(model), m_progress(progress) {
    for (const auto& tensor : new_tensors(model.config)) m_all += bytes_of(tensor);
  }

  std::uint64_t bytes_of(const NewTensor& tensor) const {
    return tensor.elements * static_cast<std::uint64_t>(row_bytes(m_model.type, 1));
  }
  std::uint64_t all_bytes() const { return m_all; }

  void write(const std::string& path, const std::vector<NewTensor>& tensors) {
    StreamedFile file(path);
    nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};  // thousands of keys: not in a list
    std::uint64_t offset = 0;
    for (const auto& tensor : tensors) {
      header[tensor.name] = {{"dtype", to_string(m_model.type)},
                             {"shape", tensor.shape},
                             {"data_offsets", {offset, offset + bytes_of(tensor)}}};
      offset += bytes_of(tensor);
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the tensors are aligned
    const std::uint64_t length = text.size();
    file.write({reinterpret_cast<const char*>(&length), sizeof length});
    file.write(text);
    for (const auto& tensor : tensors) write_values(file, tensor);
    file.close();
  }

 private:
  void write_values(StreamedFile& file, const NewTensor& tensor) {
    RandomSequence random = sequence_of(tensor, m_model.seed);
    std::string bytes;
    for (std::uint64_t done = 0; done < tensor.elements; done += k_piece_elements) {
      bytes.clear();
      const auto count = std::min<std::uint64_t>(k_piece_elements, tensor.elements - done);
      for (std::uint64_t i = 0; i < count; ++i)
        append(bytes, static_cast<float>(tensor.centre + tensor.deviation * bell(random)));
      file.write(bytes);
      m_done += bytes.size();
      if (m_progress) m_progress(m_done, m_all);
    }
  }

  void append(std::string& bytes, float value) const {
    if (m_model.type == ElementType::f32) return append_bytes(bytes, value);
    append_bytes(bytes, m_model.type == ElementType::f16 ? f32_to_f16(value) : f32_to_bf16(value));
  }

  template <class T>
  static void append_bytes(std::string& bytes, T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  const RandomModel& m_model;
  const WriteProgress& m_progress;
  std::uint64_t m_all = 0, m_done = 0;
};

Json config_json(const RandomModel& model) {
  const LlamaConfig& config = model.config;
  const char* dtype = model.type == ElementType::f32   ? "float32"
                      : model.type == ElementType::f16 ? "float16"
                                                       : "bfloat16";
  Json json = {{"architectures", {config.qkv_bias ? "Qwen2ForCausalLM" : "LlamaForCausalLM"}},
               {"model_type", config.qkv_bias ? "qwen2" : "llama"},
               {"hidden_act", "silu"},
               {"hidden_size", config.hidden_size},
               {"intermediate_size", config.intermediate_size},
               {"num_hidden_layers", config.layers},
               {"num_attention_heads", config.heads},
               {"num_key_value_heads", config.kv_heads},
               {"head_dim", config.head_dim},
               {"vocab_size", config.vocab_size},
               {"max_position_embeddings", config.max_positions},
               {"rms_norm_eps", config.rms_norm_eps},
               {"rope_theta", config.rope_theta},
               {"tie_word_embeddings", config.tie_word_embeddings},
               {"bos_token_id", 1},
               {"eos_token_id", 2},
               {"torch_dtype", dtype}};
  return json;
}

void write_text(const std::string& folder, const std::string& name, const std::string& text, WrittenModel& written) {
  StreamedFile file(folder + "/" + name);
  file.write(text);
  file.close();
  written.files.push_back(name);
}

bool is_of_a_model(const std::string& name) {
  return name == "config.json" || name == "tokenizer.model" || name == "model.safetensors.index.json" ||
         name.ends_with(".safetensors");
}

void check(const RandomModel& model) {
  model.config.check("the model to make");
  if (model.config.vocab_size < k_min_made_vocabulary)
    throw ModelError(
        fmt::format("a vocabulary of {}: its tokenizer has 3 special tokens, 256 bytes and the space; take at least {}",
                    model.config.vocab_size, k_min_made_vocabulary));
  if (model.config.o_bias || model.config.rope_pairs != RopePairs::half)
    throw ModelError("only models as Llama and Qwen2 have them in Hugging Face folders are made");
}

}  // namespace

WrittenModel write_random_model(const std::string& folder, const RandomModel& model, bool replace,
                                const WriteProgress& progress) {
  check(model);
  NewFolder target(folder, replace, is_of_a_model);
  WrittenModel written;
  write_text(target.temporary(), "config.json", config_json(model).dump(2) + "\n", written);
  SafetensorsWriter writer(model, progress);
  written.weight_bytes = writer.all_bytes();
  const auto shards = shards_of(model);
  auto weight_map = nlohmann::json::object();
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shards.size() == 1 ? "model.safetensors"
                                                : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    for (const auto& tensor : shards[i]) weight_map[tensor.name] = name;
    writer.write(target.temporary() + "/" + name, shards[i]);
    written.files.push_back(name);
  }
  const Json index = {{"metadata", {{"total_size", writer.all_bytes()}}}, {"weight_map", weight_map}};
  if (shards.size() > 1) write_text(target.temporary(), "model.safetensors.index.json", index.dump(2) + "\n", written);
  write_text(target.temporary(), "tokenizer.model", made_tokenizer(model.config.vocab_size), written);
  target.commit();
  return written;
}

std::string made_tokenizer(std::int64_t size) {
  constexpr std::string_view k_consonants = "tnshrdlcmfwgpbvkjzyq", k_vowels = "eaiou";
  const std::string space = "\u2581";
  SentencePieceModel model;
  auto& pieces = model.pieces;
  const auto wanted = static_cast<std::size_t>(size);
  // Two neighbours become the piece of the highest score: the earlier piece.
  const auto add = [&](const std::string& text, PieceType type = PieceType::normal) {
    if (pieces.size() < wanted)
      pieces.push_back({text, type == PieceType::normal ? -static_cast<float>(pieces.size()) : 0, type});
  };
  add(model.unknown_piece, PieceType::unknown);
  add(model.bos_piece, PieceType::control);
  add(model.eos_piece, PieceType::control);
  for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte), PieceType::byte);
  add(space);
  for (char c = '!'; c <= '~'; ++c) add(std::string(1, c));
  // Every longer piece is two shorter ones, so that merging reaches it.
  std::vector<std::string> words{""}, longer;
  for (; pieces.size() < wanted; words.swap(longer), longer.clear()) {
    for (std::size_t i = 0; i < words.size() && pieces.size() < wanted; ++i) {
      for (const char consonant : k_consonants) {
        for (const char vowel : k_vowels) {
          longer.push_back(words[i] + consonant + vowel);
          add(longer.back());
          add(space + longer.back());
        }
      }
    }
  }
  return serialize(model);
}

}  // namespace mtsim::models
