// SPDX-License-Identifier: Apache-2.0
#include "models/gguf.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "models/convert.h"
#include "models/reference.h"
#include "tests/models/support.h"

using namespace mtsim::models;
using namespace mtsim::models::test;

namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// A small model as GGUF, and what opening it says once `change` is made.
class SmallGguf {
 public:
  SmallGguf() : m_source(Checkpoint::open(make_small_model(m_folder))) { gguf = gguf_of(m_source); }

  const Checkpoint& source() const { return m_source; }
  Checkpoint open() const { return Checkpoint::open(m_folder.write("m.gguf", gguf.build())); }
  /// Without the folder of this run in it.
  std::string error_of_bytes(const std::string& bytes) const {
    std::string text = error_of([&] { Checkpoint::open(m_folder.write("m.gguf", bytes)); });
    const auto at = text.find(m_folder.path("m.gguf"));
    return at == std::string::npos ? text : text.replace(at, m_folder.path("m.gguf").size(), "m.gguf");
  }
  std::string short_error() const { return error_of_bytes(gguf.build()); }

  GgufBuilder gguf;

 private:
  Folder m_folder;
  Checkpoint m_source;
};

}  // namespace

TEST_CASE("a GGUF with its Q and K permuted computes what the Hugging Face folder does", "[gguf]") {
  const SmallGguf small;
  const auto gguf = small.open();
  CHECK(gguf.config().rope_pairs == RopePairs::interleaved);
  CHECK(gguf.config().head_dim == small.source().config().head_dim);
  CHECK(gguf.config().max_positions == small.source().config().max_positions);
  Reference<double> expected(small.source()), computed(gguf);
  for (const std::int64_t token : {1, 7, 299, 42, 7}) {
    const auto a = expected.forward(token), b = computed.forward(token);
    // The elements of a head are added in another order, and epsilon went through FP32 (1e-5 to 7 digits).
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) < 1e-10);
  }
}

TEST_CASE("Q8_0, F16 and BF16 tensors are read as what their bytes say", "[gguf]") {
  SmallGguf small;
  auto& q = small.gguf.tensor("blk.1.attn_q.weight");
  q.type = 8;
  q.bytes.clear();
  for (int row = 0; row < 32; ++row) {
    q.bytes += bytes_of(f32_to_f16(0.25F * static_cast<float>(row)));
    for (int i = 0; i < 32; ++i) q.bytes += static_cast<char>(i - row);
  }
  auto& up = small.gguf.tensor("blk.0.ffn_up.weight");
  up.type = 30;
  auto& gate = small.gguf.tensor("blk.0.ffn_gate.weight");
  gate.type = 1;
  for (auto* tensor : {&up, &gate}) {
    tensor->bytes.clear();
    for (int i = 0; i < 64 * 32; ++i)
      tensor->bytes +=
          bytes_of(tensor == &up ? f32_to_bf16(static_cast<float>(i)) : f32_to_f16(static_cast<float>(i) / 8));
  }
  const auto checkpoint = small.open();
  const auto& read_q = checkpoint.tensor(Role::q, 1);
  CHECK(read_q.type == ElementType::q8_0);
  for (int row = 0; row < 32; ++row) {
    const auto values = test::row(read_q, row);
    for (int i = 0; i < 32; ++i)
      CHECK(values[static_cast<std::size_t>(i)] == 0.25F * static_cast<float>(row) * static_cast<float>(i - row));
  }
  CHECK(test::row(checkpoint.tensor(Role::up, 0), 7)[3] == 227);  // 7 * 32 + 3 has 8 bits
  CHECK(test::row(checkpoint.tensor(Role::gate, 0), 7)[3] == 227.0F / 8);
}

TEST_CASE("the metadata decides, with llama.cpp's defaults", "[gguf]") {
  SmallGguf small;
  CHECK(small.open().config().rope_theta == 10000);
  small.gguf.number("llama.rope.freq_base", 5e5F);
  small.gguf.integer("tokenizer.ggml.bos_token_id", 1);
  small.gguf.integer("tokenizer.ggml.eos_token_id", 2);
  const auto config = small.open().config();
  CHECK(config.rope_theta == 5e5);
  CHECK(config.bos_id == 1);
  CHECK(config.eos_ids == std::vector<std::int64_t>{2});
  std::erase_if(small.gguf.tensors, [](const auto& tensor) { return tensor.name == "output.weight"; });
  CHECK(small.open().config().tie_word_embeddings);
}

TEST_CASE("metadata that is missing, mistyped or not implemented is named", "[gguf]") {
  const auto error = [](const auto& change) {
    SmallGguf small;
    change(small.gguf);
    return small.short_error();
  };
  CHECK(error([](auto& g) { g.remove("general.architecture"); }) ==
        "m.gguf: 'general.architecture' is missing; the metadata of a model has it");
  CHECK(error([](auto& g) {
          g.remove("general.architecture");
          g.text("general.architecture", "gpt2");
        }) == "m.gguf: 'general.architecture' is 'gpt2'; llama and qwen2 are implemented");
  CHECK(error([](auto& g) {
          g.remove("general.architecture");
          g.text("general.architecture", "\xFFllama");
        }) == "m.gguf: 'general.architecture' is '\\xFFllama', which is not UTF-8");
  CHECK(error([](auto& g) { g.remove("llama.context_length"); }) ==
        "m.gguf: 'llama.context_length' is missing; the metadata of a model has it");
  CHECK(error([](auto& g) {
          g.remove("llama.context_length");
          g.text("llama.context_length", "64");
        }) == "m.gguf: 'llama.context_length' is not a whole number");
  CHECK(error([](auto& g) { g.text("llama.rope.scaling.type", "yarn"); }) ==
        "m.gguf: 'llama.rope.scaling.type' is 'yarn'; scaled RoPE is not implemented");
  CHECK(error([](auto& g) { g.integer("llama.expert_count", 8); }) ==
        "m.gguf: 'llama.expert_count' is 8; mixtures of experts are not implemented");
  CHECK(error([](auto& g) { g.integer("llama.rope.dimension_count", 4); }) ==
        "m.gguf: 'llama.rope.dimension_count' is 4; only RoPE on whole heads is implemented");
  CHECK(contains(error([](auto& g) { g.integer("llama.context_length", 64); }),
                 "the value of 'llama.context_length', at byte"));
  CHECK(contains(error([](auto& g) { g.integer("\xC3(", 64); }), "the key '\\xC3(' is not UTF-8"));
  CHECK(error([](auto& g) { g.integer("general.alignment", 24); }) ==
        "m.gguf: 'general.alignment' is 24, not a power of two");
}

TEST_CASE("a damaged GGUF gives one error that names the tensor", "[gguf]") {
  const auto error = [](const auto& change) {
    SmallGguf small;
    change(small.gguf);
    return small.short_error();
  };
  CHECK(error([](auto& g) {
          g.tensor("blk.1.ffn_up.weight").shape = {64, 32};
        }) == "m.gguf: tensor 'blk.1.ffn_up.weight': has shape [32, 64]; the configuration asks for [64, 32]");
  CHECK(error([](auto& g) { g.tensor("blk.1.ffn_up.weight").type = 2; }) ==
        "m.gguf: tensor 'blk.1.ffn_up.weight': has type Q4_0; F32, F16, BF16 and Q8_0 are read, convert the file to "
        "one of them");
  CHECK(contains(error([](auto& g) { g.tensor("blk.1.ffn_up.weight").type = 99; }), "has type number 99;"));
  CHECK(error([](auto& g) { g.tensors[3].name = g.tensors[2].name; }) ==
        "m.gguf: tensor 'blk.0.attn_k.weight': is there twice; the file is damaged");
  CHECK(error([](auto& g) { g.tensor("blk.1.ffn_up.weight").name = "blk.2.ffn_up.weight"; }) ==
        "m.gguf: tensor 'blk.2.ffn_up.weight': belongs to layer 2, but the configuration has 2 layers");
  CHECK(
      error([](auto& g) { g.tensor("blk.1.ffn_up.weight").name = "blk.1.ffn_up.scale"; }) ==
      "m.gguf: tensor 'blk.1.ffn_up.scale': is none of a Llama's; a model that needs it would give other results here");
  CHECK(error([](auto& g) {
          std::erase_if(g.tensors, [](const auto& t) { return t.name == "blk.1.ffn_up.weight"; });
        }) == "m.gguf: tensor 'blk.1.ffn_up.weight': is missing; the checkpoint is incomplete");
  CHECK(contains(error([](auto& g) { g.tensor("blk.1.ffn_up.weight").offset = 32; }),
                 "inside tensor 'blk.0.attn_norm.weight'"));
  CHECK(contains(error([](auto& g) { g.tensor("blk.1.ffn_up.weight").offset = 1 << 30; }),
                 "m.gguf: tensor 'blk.1.ffn_up.weight': its 8192 bytes from byte 107374"));
  CHECK(contains(error([](auto& g) { g.tensor("blk.1.ffn_up.weight").offset = ~std::uint64_t{31}; }),
                 "m.gguf: tensor 'blk.1.ffn_up.weight': its offset"));
  CHECK(contains(error([](auto& g) {
                   g.tensor("blk.1.ffn_up.weight").shape = {std::uint64_t{1} << 40, std::uint64_t{1} << 40};
                 }),
                 "m.gguf: tensor 'blk.1.ffn_up.weight', at byte"));
  CHECK(contains(error([](auto& g) { g.tensor("blk.1.ffn_up.weight").name = "blk.\xFF"; }),
                 "the tensor name 'blk.\\xFF' is not UTF-8"));
}

TEST_CASE("a GGUF that is cut anywhere is refused", "[gguf]") {
  const SmallGguf small;
  const std::string bytes = small.gguf.build();
  CHECK(small.error_of_bytes(bytes).empty());
  for (std::size_t length = 0; length < bytes.size(); length += 1 + length / 16) {
    INFO(length);
    const auto error = small.error_of_bytes(bytes.substr(0, length));
    CHECK(error.starts_with("m.gguf: "));
  }
  const auto cut = small.error_of_bytes(bytes.substr(0, bytes.size() - 4096));
  CHECK(contains(cut, "m.gguf: tensor '"));
  CHECK(contains(cut, "reach past the file's end"));
  CHECK(small.error_of_bytes("GGUF" + bytes_of(std::uint32_t{0x03000000}) + bytes.substr(8)) ==
        "m.gguf: the header, at byte 8: the file is big-endian; convert it to little-endian");
  CHECK(contains(small.error_of_bytes("GGUF" + bytes_of(std::uint32_t{1}) + bytes.substr(8)), "version 1 is not read"));
}
