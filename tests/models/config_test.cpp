// SPDX-License-Identifier: Apache-2.0
#include "models/config.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/models/support.h"

using namespace mtsim::models;
using namespace mtsim::models::test;

namespace {

Json tiny() {
  return {{"model_type", "llama"},    {"hidden_size", 96},        {"intermediate_size", 192}, {"num_hidden_layers", 2},
          {"num_attention_heads", 4}, {"num_key_value_heads", 2}, {"vocab_size", 112}};
}

LlamaConfig parse(const Json& json) { return parse_hugging_face_config(json.dump(), "c.json"); }

/// What is said about tiny() with one key changed.
std::string error_with(const std::string& key, const Json& value) {
  Json json = tiny();
  json[key] = value;
  return error_of([&] { parse(json); });
}

LlamaConfig with(const std::string& key, const Json& value) {
  Json json = tiny();
  json[key] = value;
  return parse(json);
}

std::string header(std::vector<std::int32_t> numbers) {
  std::string text;
  for (const auto number : numbers) text += bytes_of(number);
  return text;
}

}  // namespace

TEST_CASE("the shipped configurations are the models they are named for", "[config]") {
  // Parameters as the checkpoints' publishers count them; KV bytes per token in FP16.
  struct Known {
    const char* name;
    std::int64_t parameters, kv_bytes;
  };
  for (const auto& [name, parameters, kv_bytes] :
       {Known{"Llama-2-7B", 6'738'415'616, 524'288}, Known{"Llama-2-13B", 13'015'864'320, 819'200},
        Known{"Llama-2-70B", 68'976'648'192, 327'680}, Known{"LLaMA-30B", 32'528'943'616, 1'597'440},
        Known{"Llama-3-8B", 8'030'261'248, 131'072}, Known{"TinyLlama-1.1B", 1'100'048'384, 22'528},
        Known{"Qwen2-7B", 7'615'616'512, 57'344}}) {
    INFO(name);
    const auto config = load_config(name);
    CHECK(config.name == name);
    CHECK(config.parameters() == parameters);
    CHECK(config.kv_bytes_per_token(2) == kv_bytes);
    CHECK(config.rope_pairs == RopePairs::half);
    const auto names = config_names();
    CHECK(std::find(names.begin(), names.end(), name) != names.end());
  }
  CHECK(load_config("Qwen2-7B").qkv_bias);
  CHECK_FALSE(load_config("Qwen2-7B").o_bias);
  CHECK(load_config("Llama-3-8B").rope_theta == 500000);
  CHECK(load_config("Llama-3-8B").kv_heads == 8);
  const auto error = error_of([] { load_config("Llama-2-8B"); });
  CHECK(error.starts_with(
      "'Llama-2-8B' is neither a file, a folder nor a known model; known models: LLaMA-30B, Llama-2-13B,"));
}

TEST_CASE("MTSIM_MODELS comes before the shipped configurations", "[config]") {
  const Folder folder;
  std::filesystem::create_directories(folder.path("Llama-2-7B"));
  folder.write("Llama-2-7B/config.json", tiny().dump());
  ::setenv("MTSIM_MODELS", folder.path().c_str(), 1);
  const auto config = load_config("Llama-2-7B");
  ::unsetenv("MTSIM_MODELS");
  CHECK(config.hidden_size == 96);
  CHECK(load_config(folder.path("Llama-2-7B")).name == "Llama-2-7B");
  CHECK(load_config(folder.path("Llama-2-7B/config.json")).name == "Llama-2-7B");
}

TEST_CASE("what a config.json leaves out is as in Hugging Face", "[config]") {
  const auto config = parse(tiny());
  CHECK(config.head_dim == 24);
  CHECK(config.max_positions == 2048);
  CHECK(config.rms_norm_eps == 1e-6);
  CHECK(config.rope_theta == 10000);
  CHECK_FALSE(config.tie_word_embeddings);
  CHECK_FALSE(config.qkv_bias);
  CHECK_FALSE(config.bos_id);
  CHECK(config.eos_ids.empty());
  CHECK(with("num_key_value_heads", nullptr).kv_heads == 4);
  CHECK(with("head_dim", 32).q_width() == 128);
  CHECK(with("some_new_key", Json{{"a", 1}}).hidden_size == 96);
  CHECK(with("eos_token_id", Json{5, 7}).eos_ids == std::vector<std::int64_t>{5, 7});
  CHECK(with("bos_token_id", 1).bos_id == 1);
  CHECK(with("attention_bias", true).o_bias);
  CHECK(with("model_type", "qwen2").qkv_bias);
  CHECK(with("rope_parameters", Json{{"rope_type", "default"}, {"rope_theta", 5e5}}).rope_theta == 5e5);
  CHECK(with("rope_scaling", Json{{"type", "default"}}).rope_theta == 10000);
}

TEST_CASE("a wrong value of config.json is named with its key", "[config]") {
  CHECK(error_with("hidden_size", nullptr) == "c.json: 'hidden_size' is missing; a config.json of a Llama has it");
  CHECK(error_with("hidden_size", "96") == "c.json: 'hidden_size' is \"96\", not a whole number");
  CHECK(error_with("hidden_size", 96.5) == "c.json: 'hidden_size' is 96.5, not a whole number");
  CHECK(error_with("hidden_size", true) == "c.json: 'hidden_size' is true, not a whole number");
  CHECK(error_with("hidden_size", 18446744073709551615u) ==
        "c.json: 'hidden_size' is 18446744073709551615, not a whole number");
  CHECK(error_with("hidden_size", -1) == "c.json: 'hidden_size' is -1; it must be at least 1");
  CHECK(error_with("num_hidden_layers", 1'000'000) ==
        "c.json: the number of layers is 1000000; a model has 1 to 16384");
  CHECK(error_with("num_attention_heads", 5) ==
        "c.json: 'num_attention_heads' is 5, which does not divide 'hidden_size' 96; give 'head_dim'");
  CHECK(error_with("num_key_value_heads", 3) ==
        "c.json: 4 heads do not share 3 KV heads evenly; the first must be a multiple of the second");
  CHECK(error_with("head_dim", 25) == "c.json: the head dimension is 25; RoPE rotates pairs, so that it must be even");
  CHECK(error_with("rms_norm_eps", "small") == "c.json: 'rms_norm_eps' is \"small\", not a number");
  CHECK(error_with("rms_norm_eps", -1.0) == "c.json: the epsilon of RMSNorm is -1; a model has one from 0 to below 1");
  CHECK(error_with("rope_theta", 0) == "c.json: the base of RoPE is 0; a model has one from 1 on");
  CHECK(error_with("tie_word_embeddings", 1) == "c.json: 'tie_word_embeddings' is 1, not true or false");
  CHECK(error_with("eos_token_id", 112) == "c.json: the EOS id is 112; ids of this vocabulary are 0 to 111");
  CHECK(error_with("bos_token_id", Json{1, 2}) == "c.json: 'bos_token_id' is a list; a prompt begins with one token");
}

TEST_CASE("what is not implemented is refused by its key, not computed otherwise", "[config]") {
  CHECK(error_with("model_type", "gpt2") ==
        "c.json: 'model_type' is \"gpt2\"; llama, mistral (without a sliding window) and qwen2 are implemented");
  CHECK(error_with("architectures", Json{"LlamaForSequenceClassification"})
            .starts_with("c.json: 'architectures' is [\"LlamaForSequenceClassification\"];"));
  CHECK(error_with("architectures", Json{"Qwen2ForCausalLM"}) ==
        "c.json: 'architectures' is [\"Qwen2ForCausalLM\"], but 'model_type' is \"llama\"; one of them is wrong");
  CHECK(error_with("rope_scaling", Json{{"rope_type", "llama3"}, {"factor", 8.0}}) ==
        "c.json: 'rope_scaling' is {\"factor\":8.0,\"rope_type\":\"llama3\"}; scaled RoPE is not implemented, use a "
        "checkpoint without it");
  CHECK(error_with("rope_parameters", Json{{"rope_type", "yarn"}}) != "");
  CHECK(error_with("hidden_act", "gelu") == "c.json: 'hidden_act' is \"gelu\"; only \"silu\" is implemented");
  CHECK(error_with("mlp_bias", true) == "c.json: 'mlp_bias' is true; biases of the feed-forward are not implemented");
  CHECK(error_with("partial_rotary_factor", 0.5) != "");
  CHECK(error_with("quantization_config", Json::object()) != "");
  Json mistral = tiny();
  mistral["model_type"] = "mistral";
  mistral["max_position_embeddings"] = 32768;
  CHECK(error_of([&] { parse(mistral); }) ==
        "c.json: 'sliding_window' is 4096, less than the 32768 positions; windows are not implemented");
  mistral["sliding_window"] = nullptr;
  CHECK(parse(mistral).max_positions == 32768);
  Json qwen = tiny();
  qwen["model_type"] = "qwen2";
  qwen["sliding_window"] = 1024;
  CHECK(parse(qwen).qkv_bias);
  qwen["use_sliding_window"] = true;
  CHECK(error_of([&] { parse(qwen); }).starts_with("c.json: 'sliding_window' is 1024, less than"));
}

TEST_CASE("a config.json that is no JSON object is refused as a whole", "[config]") {
  const auto error = [](const std::string& text) {
    return error_of([&] { parse_hugging_face_config(text, "c.json"); });
  };
  CHECK(error("{\"hidden_size\": 9").starts_with("c.json: is not JSON: parse error at line 1, column 18"));
  CHECK(error("[]") == "c.json: is not a JSON object");
  CHECK(error("{\"vocab_size\": 1, \"vocab_size\": 2}") == "c.json: has 'vocab_size' twice; remove one");
  CHECK(error("{\"a\": \"\xFF\"}").starts_with("c.json: is not JSON: "));
  CHECK(error("{\"rope_theta\": 1e999}").starts_with("c.json: is not JSON: "));
  CHECK(error(std::string(100, '[')).starts_with("c.json: is "));
}

TEST_CASE("the header of llama2.c has no names, so that its numbers must make sense", "[config]") {
  const auto config = parse_llama2c_header(header({64, 172, 5, 8, 4, 512, 256}), "m.bin");
  CHECK(config.head_dim == 8);
  CHECK(config.tie_word_embeddings);
  CHECK(config.rope_pairs == RopePairs::interleaved);
  CHECK(config.bos_id == 1);
  CHECK_FALSE(parse_llama2c_header(header({64, 172, 5, 8, 4, -512, 256}), "m.bin").tie_word_embeddings);
  const auto error = [](const std::string& text) { return error_of([&] { parse_llama2c_header(text, "m.bin"); }); };
  CHECK(error("short") == "m.bin: has 5 bytes; a llama2.c file begins with a header of 28");
  CHECK(error(header({64, 172, -5, 8, 4, 512, 256})) == "m.bin: is no llama2.c file: its header holds -5");
  CHECK(error(header({64, 172, 5, 7, 4, 512, 256})) ==
        "m.bin: is no llama2.c file: 7 heads do not divide the hidden size 64");
  CHECK(error(header({0x616b3432, 1, 5, 7, 4, 512, 256}))
            .starts_with("m.bin: is a llama2.c file of version 1 or later;"));
}
