// SPDX-License-Identifier: Apache-2.0
// Hugging Face folders and llama2.c files: what is read, and every way in which one can be damaged.
#include "models/checkpoint.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "models/convert.h"
#include "models/llama2c.h"
#include "tests/models/support.h"

using namespace mtsim::models;
using namespace mtsim::models::test;

namespace {

constexpr const char* k_up = "model.layers.1.mlp.up_proj.weight";  // [64, 32] BF16

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// What opening a small model says once its safetensors are changed, without the folder of this run.
std::string error_after(const std::function<void(Json&, std::string&)>& change) {
  const Folder folder;
  const std::string model = make_small_model(folder), file = model + "/model.safetensors";
  change_safetensors(file, change);
  std::string text = error_of([&] { Checkpoint::open(model); });
  const auto at = text.find(file);
  return at == std::string::npos ? text : text.replace(at, file.size(), "model.safetensors");
}

/// A small model in shards of 32 KB.
std::string make_shards(const Folder& folder) {
  return make_small_model(folder, [](RandomModel& model) { model.shard_bytes = 32 << 10; });
}

void change_index(const std::string& model, const std::function<void(Json& map)>& change) {
  const std::string path = model + "/model.safetensors.index.json";
  Json index = Json::parse(read_file(path));
  change(index["weight_map"]);
  std::filesystem::remove(path);
  std::ofstream(path) << index.dump();
}

/// A llama2.c file with the numbers 0, 1, 2, ... as its weights.
std::string llama2c_file(std::int32_t vocabulary) {
  std::string bytes;
  for (const std::int32_t number : {8, 12, 2, 2, 1, vocabulary, 16}) bytes += bytes_of(number);
  const auto config = parse_llama2c_header(bytes, "m.bin");
  const std::int64_t tables = 16 * 4;
  const std::int64_t head = vocabulary < 0 ? config.embedding_parameters() : 0;
  for (std::int64_t i = 0; i < config.parameters() + tables; ++i)
    bytes += bytes_of(static_cast<float>(i < config.parameters() - head            ? i
                                         : i < config.parameters() - head + tables ? -1
                                                                                   : i - tables));
  return bytes;
}

}  // namespace

TEST_CASE("tensors are found by their role, with shape, type and place", "[checkpoint]") {
  const Folder folder;
  const auto checkpoint = Checkpoint::open(make_small_model(folder));
  const auto& up = checkpoint.tensor(Role::up, 1);
  CHECK(up.name == k_up);
  CHECK(up.type == ElementType::bf16);
  CHECK(up.rows == 64);
  CHECK(up.columns == 32);
  CHECK(up.bytes.size() == 64 * 32 * 2);
  CHECK(checkpoint.tensor(Role::final_norm).rows == 1);
  CHECK(checkpoint.tensor(Role::head).name == "lm_head.weight");
  const std::string text = read_file(folder.path("model/model.safetensors"));
  CHECK(contains(text, std::string(up.bytes)));
  // The same numbers in both types, and a range of rows like each row.
  std::vector<float> f32(3 * 32);
  std::vector<std::uint16_t> f16(3 * 32);
  up.read_f32(5, 3, f32.data());
  up.read_f16(5, 3, f16.data());
  for (std::size_t i = 0; i < f32.size(); ++i) CHECK(f16[i] == f32_to_f16(f32[i]));
  CHECK(std::vector<float>(f32.begin() + 32, f32.begin() + 64) == row(up, 6));
}

TEST_CASE("shards read as one file does", "[checkpoint]") {
  const Folder one, many;
  const auto single = Checkpoint::open(make_small_model(one));
  const auto sharded = Checkpoint::open(make_shards(many));
  CHECK(sharded.files().size() > 2);
  for (int number = 0; number < k_roles; ++number) {
    const auto role = static_cast<Role>(number);
    if (!is_present(role, single.config())) continue;
    for (std::int64_t layer = 0; layer < (number < k_layer_roles ? 2 : 1); ++layer)
      CHECK(single.tensor(role, layer).bytes == sharded.tensor(role, layer).bytes);
  }
}

TEST_CASE("a damaged safetensors file gives one error that names the tensor", "[checkpoint]") {
  const std::string up = std::string("model.safetensors: tensor '") + k_up + "': ";
  CHECK(error_after([](Json&, std::string&) {}).empty());
  CHECK(contains(error_after([](Json&, std::string& data) { data.resize(data.size() - 100); }),
                 "model.safetensors: tensor 'lm_head.weight': its 19200 bytes from byte"));
  CHECK(error_after([](Json& header, std::string&) {
          header[k_up]["shape"] = {32, 64};
        }) == up + "has shape [32, 64]; the configuration asks for [64, 32]");
  CHECK(error_after([](Json& header, std::string&) {
          header[k_up]["shape"] = {64, 33};
        }) == up + "has 4096 bytes, but BF16 of shape [64,33] are 4224");
  CHECK(error_after([](Json& header, std::string&) {
          header[k_up]["shape"] = {64, -32};
        }) == up + "has -32 in its shape, not a whole number");
  CHECK(error_after([](Json& header, std::string&) {
          header[k_up]["shape"] = {1ull << 40, 1ull << 40};
        }) == up + "has shape [1099511627776,1099511627776], too large for any file");
  CHECK(error_after([](Json& header, std::string&) { header[k_up]["dtype"] = "I16"; }) ==
        up + "has type I16; F32, F16 and BF16 are read, convert the file to one of them");
  CHECK(error_after([](Json& header, std::string&) { header[k_up]["dtype"] = "Q4"; }) ==
        up + "has dtype \"Q4\", which is not one of the format");
  CHECK(error_after([](Json& header, std::string&) { header[k_up].erase("dtype"); }) == up + "has no 'dtype'");
  CHECK(error_after([](Json& header, std::string&) {
          header[k_up]["data_offsets"] = {18446744073709551615u, 18446744073709551615u};
        }) == up + "has data_offsets [18446744073709551615,18446744073709551615], which is no range");
  CHECK(error_after([](Json& header, std::string&) {
          header[k_up]["data_offsets"] = {9000000000000000000u, 9000000000000004096u};
        }).starts_with(up + "its 4096 bytes from byte 90000000000000"));
  CHECK(error_after([](Json& header, std::string&) {
          header[k_up]["data_offsets"] = {4096, 0};
        }) == up + "has data_offsets [4096,0], which is no range");
  CHECK(contains(error_after([](Json& header, std::string&) {
                   header[k_up]["data_offsets"] = {0, 4096};
                 }),
                 "inside tensor '"));
  CHECK(error_after([](Json& header, std::string&) {
          header["model.layers.1.mlp.up.weight"] = header[k_up];
          header.erase(k_up);
        }) ==
        "model.safetensors: tensor 'model.layers.1.mlp.up.weight': is none of a Llama's; a model that needs it would "
        "give other results here");
  CHECK(error_after([](Json& header, std::string&) {
          header["model.layers.2.mlp.up_proj.weight"] = header[k_up];
          header.erase(k_up);
        }) ==
        "model.safetensors: tensor 'model.layers.2.mlp.up_proj.weight': belongs to layer 2, but the configuration has "
        "2 layers");
  CHECK(contains(error_after([](Json&, std::string& data) { data += "more"; }), "but the file has"));
  CHECK(error_after([](Json& header, std::string&) {
          header["__metadata__"] = {{"format", 1}};
        }) == "model.safetensors: '__metadata__' is not an object of texts");
}

TEST_CASE("a missing, a doubled and a misspelt tensor are told apart", "[checkpoint]") {
  const Folder folder;
  const std::string model = make_small_model(folder), file = model + "/model.safetensors";
  const std::string text = read_file(file);
  const auto error_with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    REQUIRE(changed.find(from) != std::string::npos);
    changed.replace(changed.find(from), from.size(), to);
    std::filesystem::remove(file);
    folder.write("model/model.safetensors", changed);
    return error_of([&] { Checkpoint::open(model); });
  };
  CHECK(error_with("layers.1.mlp.up_proj.weight", "layers.0.mlp.up_proj.weight") ==
        file + ": header: has 'model.layers.0.mlp.up_proj.weight' twice; remove one");
  CHECK(contains(error_with("layers.1.mlp.up_proj.weight", "layers.1.mlp.up_\xFF\xFFoj.weight"),
                 "last read: '\"model.layers.1.mlp.up_\\xFF'"));
  CHECK(contains(error_with("layers.1.mlp.up_proj.weight", "layers.1.mlp.up_prox.weight"),
                 "'model.layers.1.mlp.up_prox.weight': is none of a Llama's"));
  // The last tensor cut off cleanly.
  change_config(model, [](Json& config) { config["num_hidden_layers"] = 3; });
  folder.write("model/model.safetensors", text);
  CHECK(error_of([&] { Checkpoint::open(model); }) ==
        model + ": tensor 'model.layers.2.input_layernorm.weight': is missing; the checkpoint is incomplete");
}

TEST_CASE("a safetensors file that is cut anywhere is refused", "[checkpoint]") {
  const Folder folder;
  const std::string model = make_small_model(folder), text = read_file(model + "/model.safetensors");
  for (std::size_t length = 0; length < text.size(); length += 1 + length / 8) {
    INFO(length);
    folder.write("model/model.safetensors", text.substr(0, length));
    CHECK(error_of([&] { Checkpoint::open(model); }).starts_with(model + "/model.safetensors: "));
  }
}

TEST_CASE("an index and its shards must agree", "[checkpoint]") {
  const auto error_after_index = [](const std::function<void(Json&)>& change) {
    const Folder folder;
    const std::string model = make_shards(folder);
    change_index(model, change);
    return error_of([&] { Checkpoint::open(model); });
  };
  CHECK(error_after_index([](Json&) {}).empty());
  CHECK(contains(error_after_index([](Json& map) { map[k_up] = "../x"; }),
                 std::string("tensor '") + k_up + "': its file is \"../x\", not the name"));
  CHECK(contains(error_after_index([](Json& map) { map[k_up] = "absent.safetensors"; }),
                 "absent.safetensors: cannot be read: No such file"));
  CHECK(contains(error_after_index([](Json& map) { map[k_up] = map["model.embed_tokens.weight"]; }),
                 std::string("tensor '") + k_up + "': "));
  CHECK(contains(error_after_index([](Json& map) { map.erase(k_up); }),
                 std::string("tensor '") + k_up + "': is not in model.safetensors.index.json"));
  CHECK(contains(error_after_index([](Json& map) { map["more"] = map[k_up]; }),
                 "tensor 'more': is missing, though model.safetensors.index.json has it"));
  CHECK(contains(error_after_index([](Json& map) { map = Json::object(); }), "'weight_map' names no tensor"));
}

TEST_CASE("a folder without weights says what it lacks", "[checkpoint]") {
  const Folder folder;
  const std::string model = make_small_model(folder);
  std::filesystem::remove(model + "/model.safetensors");
  CHECK(error_of([&] { Checkpoint::open(model); }) ==
        model + ": has neither model.safetensors nor model.safetensors.index.json");
  folder.write("model/pytorch_model.bin", "x");
  CHECK(contains(error_of([&] { Checkpoint::open(model); }), "convert its pytorch_model.bin to safetensors"));
  CHECK(error_of([] { Checkpoint::open("Llama-2-7B"); }) ==
        "'Llama-2-7B' is a configuration without weights; name a folder or file with weights");
  std::filesystem::remove(model + "/config.json");
  CHECK(
      contains(error_of([&] { Checkpoint::open(model); }), "/config.json: cannot be read: No such file or directory"));
}

TEST_CASE("a weight that is no number is an error when it is touched, not before", "[checkpoint]") {
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    const Folder folder;
    const std::string model = make_small_model(folder), file = model + "/model.safetensors";
    change_safetensors(file, [&](Json& header, std::string& data) {
      const auto begin = header[k_up]["data_offsets"][0].get<std::size_t>();
      const std::uint16_t bits = f32_to_bf16(value);
      std::memcpy(&data[begin + (7 * 32 + 3) * 2], &bits, sizeof bits);
    });
    const auto checkpoint = Checkpoint::open(model);
    const auto& up = checkpoint.tensor(Role::up, 1);
    const auto expected = file + ": tensor '" + k_up + "': element [7, 3] is " + (std::isnan(value) ? "NaN" : "-inf") +
                          ", which no weight is; the checkpoint is damaged";
    std::vector<float> f32(8 * 32);
    std::vector<std::uint16_t> f16(8 * 32);
    up.read_f32(0, 7, f32.data());
    CHECK(error_of([&] { up.read_f32(0, 8, f32.data()); }) == expected);
    CHECK(error_of([&] { up.read_f16(7, 1, f16.data()); }) == expected);
    CHECK(error_of([&] { up.check_values(); }) == expected);
    checkpoint.tensor(Role::gate, 1).check_values();
  }
}

TEST_CASE("a weight FP16 cannot hold is an error in FP16 alone", "[checkpoint]") {
  const Folder folder;
  const std::string model = make_small_model(folder), file = model + "/model.safetensors";
  change_safetensors(file, [&](Json& header, std::string& data) {
    const auto begin = header["model.norm.weight"]["data_offsets"][0].get<std::size_t>();
    const std::uint16_t bits = f32_to_bf16(-65536);
    std::memcpy(&data[begin + 5 * 2], &bits, sizeof bits);
  });
  const auto checkpoint = Checkpoint::open(model);
  CHECK(row(checkpoint.tensor(Role::final_norm), 0)[5] == -65536);
  std::vector<std::uint16_t> f16(32);
  CHECK(error_of([&] { checkpoint.tensor(Role::final_norm).read_f16(0, 1, f16.data()); }) ==
        file + ": tensor 'model.norm.weight': element [5] is -65536, which FP16 (up to 65504) cannot hold; use FP32");
}

TEST_CASE("a bias the configuration does not know is refused, one it asks for is read", "[checkpoint]") {
  const Folder folder;
  const std::string model = make_small_model(folder, [](RandomModel& random) { random.config.qkv_bias = true; });
  const auto checkpoint = Checkpoint::open(model);
  CHECK(checkpoint.tensor(Role::k_bias, 1).columns == 16);
  change_config(model, [](Json& config) {
    config["architectures"] = {"LlamaForCausalLM"};
    config["model_type"] = "llama";
  });
  CHECK(contains(error_of([&] { Checkpoint::open(model); }),
                 "tensor 'model.layers.0.self_attn.q_proj.bias': is a bias, but the configuration has none there; "
                 "check 'attention_bias'"));
}

TEST_CASE("a llama2.c file is its tensors in order", "[checkpoint]") {
  const Folder folder;
  const std::string path = folder.write("m.bin", llama2c_file(10));
  const auto checkpoint = Checkpoint::open(path);
  const std::int64_t hidden = 8, q = 8, kv = 4, vocab = 10;
  std::int64_t at = 0;  // of the numbers, in the order the program that writes these files has them
  CHECK(row(checkpoint.tensor(Role::embedding), 1)[2] == 10);
  at += vocab * hidden;
  CHECK(row(checkpoint.tensor(Role::attn_norm, 1), 0)[3] == static_cast<float>(at + hidden + 3));
  at += 2 * hidden;
  CHECK(row(checkpoint.tensor(Role::q, 1), 2)[1] == static_cast<float>(at + q * hidden + 2 * hidden + 1));
  at += 2 * q * hidden;
  CHECK(row(checkpoint.tensor(Role::k, 0), 0)[0] == static_cast<float>(at));
  at += 2 * kv * hidden;
  CHECK(row(checkpoint.tensor(Role::v, 0), 0)[0] == static_cast<float>(at));
  at += 2 * kv * hidden;
  CHECK(row(checkpoint.tensor(Role::o, 0), 0)[0] == static_cast<float>(at));
  at += 2 * hidden * q;
  CHECK(row(checkpoint.tensor(Role::ffn_norm, 0), 0)[0] == static_cast<float>(at));
  at += 2 * hidden;
  CHECK(row(checkpoint.tensor(Role::gate, 0), 0)[0] == static_cast<float>(at));
  at += 2 * 12 * hidden;
  CHECK(row(checkpoint.tensor(Role::down, 1), 1)[0] == static_cast<float>(at + hidden * 12 + 12));
  at += 2 * hidden * 12;
  CHECK(row(checkpoint.tensor(Role::up, 0), 0)[0] == static_cast<float>(at));
  at += 2 * 12 * hidden;
  CHECK(row(checkpoint.tensor(Role::final_norm), 0)[0] == static_cast<float>(at));
  at += hidden;
  CHECK(&checkpoint.tensor(Role::head) == &checkpoint.tensor(Role::embedding));
  const auto untied = Checkpoint::open(folder.write("u.bin", llama2c_file(-10)));
  CHECK(row(untied.tensor(Role::head), 0)[0] == static_cast<float>(at));
  for (const std::int64_t change : {-4, 4}) {
    std::string bytes = llama2c_file(10);
    bytes.resize(bytes.size() + static_cast<std::size_t>(change));
    CHECK(contains(error_of([&] { Checkpoint::open(folder.write("c.bin", bytes)); }), "its header asks for"));
  }
  CHECK(contains(error_of([&] { Checkpoint::open(folder.write("c.bin", llama2c_file(10).substr(0, 2000))); }),
                 "/c.bin: tensor 'model.layers.1.post_attention_layernorm.weight': its 32 bytes from byte 1980"));
}
