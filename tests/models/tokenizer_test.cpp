// SPDX-License-Identifier: Apache-2.0
#include "models/tokenizer.h"

#include <sentencepiece_processor.h>

#include <catch2/catch.hpp>

#include "models/gguf.h"
#include "models/sampler.h"
#include "models/utf8.h"
#include "tests/models/support.h"

using namespace mtsim::models;
using namespace mtsim::models::test;

namespace {

const std::vector<std::string> k_texts = {"Once upon a time",
                                          "",
                                          " two  spaces ",
                                          "line\nbreak\ttab",
                                          "gr\u00FC\u00DFe \u65E5\u672C \U0001F600",
                                          "a\u2581b",
                                          "<s> is no token</s>"};

/// The vocabulary of a made tokenizer, as GGUF has it.
GgufBuilder vocabulary(std::int64_t size) {
  sentencepiece::SentencePieceProcessor processor;
  REQUIRE(processor.LoadFromSerializedProto(made_tokenizer(size)).ok());
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<std::int32_t> types;
  for (int id = 0; id < processor.GetPieceSize(); ++id) {
    tokens.push_back(processor.IdToPiece(id));
    scores.push_back(processor.GetScore(id));
    types.push_back(processor.IsUnknown(id) ? 2 : processor.IsControl(id) ? 3 : processor.IsByte(id) ? 6 : 1);
  }
  GgufBuilder gguf;
  gguf.text("tokenizer.ggml.model", "llama");
  gguf.texts("tokenizer.ggml.tokens", tokens);
  gguf.numbers("tokenizer.ggml.scores", scores);
  gguf.integers("tokenizer.ggml.token_type", types);
  gguf.integer("tokenizer.ggml.bos_token_id", 1);
  gguf.integer("tokenizer.ggml.eos_token_id", 2);
  return gguf;
}

Tokenizer from(const GgufBuilder& gguf) {
  const std::string bytes = gguf.build();
  return Tokenizer::from_gguf(GgufFile(bytes, "v.gguf"));
}

}  // namespace

TEST_CASE("text comes back from its ids, whatever it is", "[tokenizer]") {
  const auto tokenizer = Tokenizer::parse(made_tokenizer(512), "made");
  CHECK(tokenizer.size() == 512);
  CHECK(tokenizer.bos_id() == 1);
  CHECK(tokenizer.eos_id() == 2);
  for (const auto& text : k_texts) {
    const auto ids = tokenizer.encode(text);
    REQUIRE_FALSE(ids.empty());
    CHECK(ids.front() == 1);
    // U+2581 is how the vocabulary writes a space, and comes back as one.
    CHECK(tokenizer.decode(ids) == (text == k_texts[5] ? "a b" : text));
    CHECK(tokenizer.encode(text, false) == std::vector<std::int64_t>(ids.begin() + 1, ids.end()));
  }
  CHECK(error_of([&] { tokenizer.encode("a\xFF"); }) ==
        "the text 'a\\xFF' is not UTF-8 or has a zero byte; it cannot be tokenised");
}

TEST_CASE("a stream of ids gives the library's text, in pieces that are UTF-8", "[tokenizer]") {
  sentencepiece::SentencePieceProcessor processor;
  REQUIRE(processor.LoadFromSerializedProto(made_tokenizer(600)).ok());
  const auto tokenizer = Tokenizer::parse(made_tokenizer(600), "made");
  RandomSequence random(5);
  for (int round = 0; round < 300; ++round) {
    // Half of the ids are bytes, among them whole characters now and then.
    std::vector<int> ids;
    while (ids.size() < 20) {
      const auto number = random.next();
      const std::string character = number % 5 == 0 ? "\u65E5" : number % 5 == 1 ? "\U0001F600" : "";
      for (const char byte : character) ids.push_back(3 + static_cast<unsigned char>(byte));
      if (character.empty()) ids.push_back(static_cast<int>(number / 5 % (number % 5 == 2 ? 259 : 600)));
    }
    TextStream stream(tokenizer);
    std::string text;
    for (const int id : ids) {
      const auto piece = stream.push(id);
      if (piece.find('\0') == std::string::npos) CHECK(is_utf8(piece));
      text += piece;
    }
    text += stream.finish();
    CHECK(text == processor.DecodeIds(ids));
  }
}

TEST_CASE("a character waits until its last byte is there", "[tokenizer]") {
  const auto tokenizer = Tokenizer::parse(made_tokenizer(512), "made");
  const auto byte = [](int value) { return std::int64_t{3 + value}; };
  TextStream stream(tokenizer);
  CHECK(stream.push(byte(0xE6)).empty());
  CHECK(stream.push(byte(0x97)).empty());
  CHECK(stream.push(byte(0xA5)) == "\u65E5");
  CHECK(stream.push(byte(0xE6)).empty());
  CHECK(stream.push(byte('a')) == "\uFFFDa");  // no character begins so
  CHECK(stream.push(byte(0xF0)).empty());
  CHECK(stream.push(byte(0x9F)).empty());
  CHECK(stream.finish() == "\uFFFD\uFFFD");
  CHECK(stream.push(99999) == " \u2047 ");
  CHECK(stream.push(-1) == " \u2047 ");
}

TEST_CASE("a vocabulary in a GGUF tokenises as the model it comes from", "[tokenizer]") {
  const auto model = Tokenizer::parse(made_tokenizer(700), "made");
  const auto gguf = from(vocabulary(700));
  CHECK(gguf.bos_id() == 1);
  CHECK(gguf.eos_id() == 2);
  for (const auto& text : k_texts) {
    CHECK(gguf.encode(text) == model.encode(text));
    CHECK(gguf.decode(model.encode(text)) == model.decode(model.encode(text)));
  }
  auto no_bos = vocabulary(700);
  no_bos.metadata.emplace_back("tokenizer.ggml.add_bos_token", bytes_of(std::uint32_t{7}) + std::string(1, '\0'));
  CHECK(from(no_bos).encode("ba") == model.encode("ba", false));
  auto without = vocabulary(700);
  without.metadata.emplace_back("tokenizer.ggml.add_space_prefix", bytes_of(std::uint32_t{7}) + std::string(1, '\0'));
  CHECK(from(without).encode("ba", false) != model.encode("ba", false));
  CHECK(from(without).decode(from(without).encode(" ba")) == " ba");
}

TEST_CASE("a vocabulary that is damaged or of another kind is refused", "[tokenizer]") {
  const auto error = [](const auto& change) {
    auto gguf = vocabulary(300);
    change(gguf);
    return error_of([&] { from(gguf); });
  };
  CHECK(error([](auto& g) {
          g.remove("tokenizer.ggml.model");
          g.text("tokenizer.ggml.model", "gpt2");
        }) ==
        "v.gguf: 'tokenizer.ggml.model' is 'gpt2'; only SentencePiece vocabularies ('llama') are read. Give a .model "
        "with --tokenizer or token "
        "ids with --prompt-ids");
  CHECK(error([](auto& g) { g.remove("tokenizer.ggml.model"); }) ==
        "v.gguf: 'tokenizer.ggml.model' is missing; give token ids with --prompt-ids");
  CHECK(error([](auto& g) { g.remove("tokenizer.ggml.scores"); }) ==
        "v.gguf: 'tokenizer.ggml.scores' does not have one score a token");
  CHECK(error([](auto& g) {
          g.remove("tokenizer.ggml.tokens");
          g.texts("tokenizer.ggml.tokens", std::vector<std::string>(300, "\xFF"));
        }) == "v.gguf: 'tokenizer.ggml.tokens' token 0 is '\\xFF', which is not UTF-8");
  CHECK(error([](auto& g) {
          g.remove("tokenizer.ggml.bos_token_id");
          g.integer("tokenizer.ggml.bos_token_id", 300);
        }) == "v.gguf: 'tokenizer.ggml.bos_token_id' is 300; the vocabulary has 300 tokens");
  CHECK(error([](auto& g) {
          g.remove("tokenizer.ggml.tokens");
          g.texts("tokenizer.ggml.tokens", std::vector<std::string>(300, "same"));
        }).starts_with("v.gguf: is no SentencePiece model: "));
}

TEST_CASE("a tokenizer is looked for beside the model, and what is missing is said", "[tokenizer]") {
  const Folder folder;
  const std::string model = make_small_model(folder);
  CHECK(Tokenizer::load(model).size() == 300);
  CHECK(Tokenizer::load(model + "/tokenizer.model").size() == 300);
  CHECK(Tokenizer::load(model + "/m.bin").size() == 300);
  folder.write("model/tokenizer.model", "not a protocol buffer");
  CHECK(error_of([&] { Tokenizer::load(model); }).starts_with(model + "/tokenizer.model: is no SentencePiece model: "));
  std::filesystem::remove(model + "/tokenizer.model");
  CHECK(error_of([&] { Tokenizer::load(model); }) == model +
                                                         "/tokenizer.model: is not there; give a SentencePiece .model "
                                                         "with --tokenizer or token ids with --prompt-ids");
  folder.write("model/tokenizer.json", "{}");
  CHECK(error_of([&] { Tokenizer::load(model); }) ==
        model +
            "/tokenizer.model: is not there, only a tokenizer.json, which is not read; give a "
            "SentencePiece .model with --tokenizer or token ids with --prompt-ids");
  CHECK(error_of([&] {
          Tokenizer::load(model + "/tokenizer.json");
        }).starts_with(model + "/tokenizer.json: is not read; give"));
}
