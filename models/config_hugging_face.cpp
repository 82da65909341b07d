// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "models/config.h"
#include "models/error.h"
#include "models/json.h"

namespace mtsim::models {

namespace {

using Json = nlohmann::json;

/// What an architecture does when config.json does not say. The numbers are those of the classes of Hugging Face
/// transformers.
struct Architecture {
  const char* model_type;
  std::vector<std::string_view> classes;
  std::int64_t max_positions;
  bool qkv_bias;
};

const Architecture k_architectures[] = {
    {"llama", {"LlamaForCausalLM", "LLaMAForCausalLM"}, 2048, false},
    {"mistral", {"MistralForCausalLM"}, 131072, false},
    {"qwen2", {"Qwen2ForCausalLM"}, 32768, true},
};

/// The members of config.json with their types checked. Null is absent, as Hugging Face writes it.
class Reader {
 public:
  Reader(const Json& json, std::string file) : m_json(json), m_file(std::move(file)) {}

  [[noreturn]] void refuse(const std::string& key, const std::string& what) const {
    throw ModelError(fmt::format("{}: '{}' {}", m_file, key, what));
  }

  const Json* find(const std::string& key) const {
    const auto member = m_json.find(key);
    return member == m_json.end() || member->is_null() ? nullptr : &*member;
  }

  /// Whether the key is there, be it null.
  bool has(const std::string& key) const { return m_json.contains(key); }

  std::int64_t integer(const std::string& key, const Json& value) const {
    const bool is_whole =
        value.is_number_integer() &&
        (!value.is_number_unsigned() ||
         value.get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
    if (!is_whole) refuse(key, fmt::format("is {}, not a whole number", shown(value)));
    return value.get<std::int64_t>();
  }

  std::optional<std::int64_t> integer(const std::string& key) const {
    const Json* value = find(key);
    return value == nullptr ? std::nullopt : std::optional(integer(key, *value));
  }

  std::int64_t size(const std::string& key) const {
    const auto value = integer(key);
    if (!value) refuse(key, "is missing; a config.json of a Llama has it");
    if (*value < 1) refuse(key, fmt::format("is {}; it must be at least 1", *value));
    return *value;
  }

  std::int64_t size(const std::string& key, std::int64_t fallback) const {
    return find(key) == nullptr ? fallback : size(key);
  }

  double number(const std::string& key, double fallback) const {
    const Json* value = find(key);
    if (value == nullptr) return fallback;
    if (!value->is_number()) refuse(key, fmt::format("is {}, not a number", shown(*value)));
    return value->get<double>();
  }

  bool boolean(const std::string& key, bool fallback) const {
    const Json* value = find(key);
    if (value == nullptr) return fallback;
    if (!value->is_boolean()) refuse(key, fmt::format("is {}, not true or false", shown(*value)));
    return value->get<bool>();
  }

  std::string word(const std::string& key, const std::string& fallback) const {
    const Json* value = find(key);
    if (value == nullptr) return fallback;
    if (!value->is_string()) refuse(key, fmt::format("is {}, not a word", shown(*value)));
    return value->get<std::string>();
  }

  /// One id or a list of them.
  std::vector<std::int64_t> ids(const std::string& key) const {
    const Json* value = find(key);
    if (value == nullptr) return {};
    if (!value->is_array()) return {integer(key, *value)};
    std::vector<std::int64_t> ids;
    for (const Json& id : *value) ids.push_back(integer(key, id));
    return ids;
  }

  /// The members of an object in here.
  Reader within(const std::string& key) const { return {m_json.at(key), fmt::format("{}: '{}'", m_file, key)}; }

  /// A value for a message, on one line and not too long.
  static std::string shown(const Json& value) {
    std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (text.size() > 60) text = text.substr(0, 57) + "...";
    return text;
  }

 private:
  const Json& m_json;
  std::string m_file;
};

const Architecture& architecture_of(const Reader& reader) {
  constexpr const char* k_known = "llama, mistral (without a sliding window) and qwen2 are implemented";
  const Architecture* by_type = nullptr;
  const std::string type = reader.word("model_type", "");
  for (const auto& architecture : k_architectures)
    if (type == architecture.model_type) by_type = &architecture;
  if (!type.empty() && by_type == nullptr) reader.refuse("model_type", fmt::format("is \"{}\"; {}", type, k_known));

  const Json* classes = reader.find("architectures");
  if (classes == nullptr) {
    if (by_type == nullptr) reader.refuse("model_type", fmt::format("is missing; {}", k_known));
    return *by_type;
  }
  if (!classes->is_array() || classes->size() != 1 || !classes->front().is_string())
    reader.refuse("architectures", fmt::format("is {}, not a list of one class", Reader::shown(*classes)));
  const std::string name = classes->front().get<std::string>();
  for (const auto& architecture : k_architectures) {
    for (const auto known : architecture.classes) {
      if (name != known) continue;
      if (by_type != nullptr && by_type != &architecture)
        reader.refuse("architectures",
                      fmt::format("is [\"{}\"], but 'model_type' is \"{}\"; one of them is wrong", name, type));
      return architecture;
    }
  }
  reader.refuse("architectures", fmt::format("is {}; {}", Reader::shown(*classes), k_known));
}

/// RoPE as it is, or stretched in a way nobody here computes. `key` holds the object that says so.
void refuse_rope_scaling(const Reader& reader, const std::string& key) {
  const Json* scaling = reader.find(key);
  if (scaling == nullptr) return;
  if (!scaling->is_object()) reader.refuse(key, fmt::format("is {}, not an object", Reader::shown(*scaling)));
  for (const char* member : {"rope_type", "type"}) {
    const auto type = scaling->find(member);
    if (type != scaling->end() && *type == "default") return;
  }
  if (key == "rope_parameters" && !scaling->contains("rope_type") && !scaling->contains("type")) return;
  reader.refuse(
      key, fmt::format("is {}; scaled RoPE is not implemented, use a checkpoint without it", Reader::shown(*scaling)));
}

/// Newer files keep the base of RoPE with its other parameters.
double rope_theta_of(const Reader& reader) {
  refuse_rope_scaling(reader, "rope_scaling");
  refuse_rope_scaling(reader, "rope_parameters");
  const double theta = reader.number("rope_theta", 10000);
  const Json* parameters = reader.find("rope_parameters");
  return parameters == nullptr ? theta : reader.within("rope_parameters").number("rope_theta", theta);
}

void refuse_what_is_not_implemented(const Reader& reader, const Architecture& architecture,
                                    std::int64_t max_positions) {
  const std::string activation = reader.word("hidden_act", "silu");
  if (activation != "silu" && activation != "swish")
    reader.refuse("hidden_act", fmt::format("is \"{}\"; only \"silu\" is implemented", activation));
  if (reader.find("quantization_config") != nullptr)
    reader.refuse("quantization_config",
                  "is given; quantised Hugging Face weights are not implemented, use F32, F16 or BF16");
  if (reader.boolean("mlp_bias", false))
    reader.refuse("mlp_bias", "is true; biases of the feed-forward are not implemented");
  if (const double factor = reader.number("partial_rotary_factor", 1); factor != 1)
    reader.refuse("partial_rotary_factor", fmt::format("is {}; only 1, RoPE on whole heads, is implemented", factor));

  // A window that no position leaves changes nothing. Mistral has one of 4096 unless it says null; Qwen2 only on
  // request.
  const bool is_mistral = std::string_view(architecture.model_type) == "mistral";
  const bool is_qwen = std::string_view(architecture.model_type) == "qwen2";
  const bool has_window = is_mistral || (is_qwen && reader.boolean("use_sliding_window", false));
  const std::int64_t none = max_positions;
  const std::int64_t window = reader.size("sliding_window", is_mistral && !reader.has("sliding_window") ? 4096 : none);
  if (has_window && window < max_positions)
    reader.refuse("sliding_window",
                  fmt::format("is {}, less than the {} positions; windows are not implemented", window, max_positions));
}

}  // namespace

LlamaConfig parse_hugging_face_config(std::string_view text, const std::string& file) {
  const Json json = parse_json_object(text, file);
  const Reader reader(json, file);
  const Architecture& architecture = architecture_of(reader);
  LlamaConfig config;
  config.hidden_size = reader.size("hidden_size");
  config.intermediate_size = reader.size("intermediate_size");
  config.layers = reader.size("num_hidden_layers");
  config.heads = reader.size("num_attention_heads");
  config.kv_heads = reader.size("num_key_value_heads", config.heads);
  if (reader.find("head_dim") == nullptr && config.hidden_size % config.heads != 0)
    reader.refuse("num_attention_heads", fmt::format("is {}, which does not divide 'hidden_size' {}; give 'head_dim'",
                                                     config.heads, config.hidden_size));
  config.head_dim = reader.size("head_dim", config.hidden_size / config.heads);
  config.vocab_size = reader.size("vocab_size");
  config.max_positions = reader.size("max_position_embeddings", architecture.max_positions);
  config.rms_norm_eps = reader.number("rms_norm_eps", 1e-6);
  config.rope_theta = rope_theta_of(reader);
  config.rope_pairs = RopePairs::half;
  config.tie_word_embeddings = reader.boolean("tie_word_embeddings", false);
  config.o_bias = reader.boolean("attention_bias", false);
  config.qkv_bias = config.o_bias || architecture.qkv_bias;
  const auto bos = reader.ids("bos_token_id");
  if (bos.size() > 1) reader.refuse("bos_token_id", "is a list; a prompt begins with one token");
  if (!bos.empty()) config.bos_id = bos.front();
  config.eos_ids = reader.ids("eos_token_id");
  refuse_what_is_not_implemented(reader, architecture, config.max_positions);
  config.check(file);
  return config;
}

}  // namespace mtsim::models
