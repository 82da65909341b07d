// SPDX-License-Identifier: Apache-2.0
#include "models/random_model.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <set>

#include "models/reference.h"
#include "models/sampler.h"
#include "models/tokenizer.h"
#include "tests/models/support.h"

using namespace mtsim::models;
using namespace mtsim::models::test;

namespace {

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

}  // namespace

TEST_CASE("a made model is read back with its shape, in every type", "[random]") {
  for (const auto type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    for (const bool variant : {false, true}) {
      const Folder folder;
      RandomModel model = small_model();
      model.type = type;
      model.config.tie_word_embeddings = model.config.qkv_bias = variant;
      const auto written = write_random_model(folder.path("made"), model, false);
      CHECK(written.files == std::vector<std::string>{"config.json", "model.safetensors", "tokenizer.model"});
      const auto checkpoint = Checkpoint::open(folder.path("made"));
      const auto& config = checkpoint.config();
      CHECK(config.name == "made");
      CHECK(config.hidden_size == 32);
      CHECK(config.kv_heads == 2);
      CHECK(config.max_positions == 64);
      CHECK(config.tie_word_embeddings == variant);
      CHECK(config.qkv_bias == variant);
      CHECK(config.rms_norm_eps == 1e-5);
      CHECK(written.weight_bytes == static_cast<std::uint64_t>(config.parameters() * row_bytes(type, 1)));
      CHECK(checkpoint.tensor(Role::q, 0).type == type);
      CHECK(Tokenizer::load(folder.path("made")).size() == config.vocab_size);
    }
  }
}

TEST_CASE("the seed decides every weight, the number of files none", "[random]") {
  const Folder folder;
  RandomModel model = small_model();
  write_random_model(folder.path("a"), model, false);
  write_random_model(folder.path("b"), model, false);
  CHECK(read_file(folder.path("a/model.safetensors")) == read_file(folder.path("b/model.safetensors")));
  model.seed = 2;
  write_random_model(folder.path("c"), model, false);
  CHECK(read_file(folder.path("a/model.safetensors")) != read_file(folder.path("c/model.safetensors")));
  // The same bytes on every host, and as long as this line stands.
  const auto first = row(Checkpoint::open(folder.path("a")).tensor(Role::q, 0), 0);
  CHECK(std::vector<float>(first.begin(), first.begin() + 4) ==
        std::vector<float>{0.0849609375F, 0.1494140625F, 0.10595703125F, 0.19140625F});
  model.seed = 1;
  model.shard_bytes = 20000;
  const auto written = write_random_model(folder.path("d"), model, false);
  CHECK(written.files.size() > 5);
  for (const auto& name : written.files)
    if (name.ends_with(".safetensors")) CHECK(std::filesystem::file_size(folder.path("d/" + name)) < 22000);
  CHECK(row(Checkpoint::open(folder.path("d")).tensor(Role::q, 0), 0) == first);
}

TEST_CASE("values of a made model stay near 1 through its layers, and its text goes on", "[random]") {
  const Folder folder;
  const auto checkpoint =
      Checkpoint::open(make_small_model(folder, [](RandomModel& model) { model.config.layers = 12; }));
  double sum = 0, squares = 0;
  const auto& q = checkpoint.tensor(Role::q, 3);
  for (std::int64_t i = 0; i < q.rows; ++i)
    for (const float value : row(q, i)) sum += value, squares += static_cast<double>(value) * value;
  const double count = static_cast<double>(q.rows * q.columns);
  // 1024 draws of deviation 1/sqrt(32): the mean within 5 of its own deviations, the variance within 25 %.
  CHECK(std::abs(sum / count) < 5 / std::sqrt(32.0 * count));
  CHECK(squares / count == Approx(1.0 / 32).epsilon(0.25));
  Reference<float> reference(checkpoint);
  Sampler sampler({1.0, 1.0, 1});
  std::set<std::int64_t> seen;
  std::int64_t token = 1;
  for (int i = 0; i < 30; ++i) {
    const auto logits = reference.forward(token);
    double spread = 0;
    for (const float logit : logits) spread += static_cast<double>(logit) * logit;
    spread = std::sqrt(spread / static_cast<double>(logits.size()));
    CHECK((spread > 0.3 && spread < 3));
    token = sampler.sample(logits);
    seen.insert(token);
  }
  CHECK(seen.size() > 15);
}

TEST_CASE("a folder appears whole or not at all", "[random]") {
  const Folder folder;
  const std::string path = folder.path("made");
  struct Stop {};
  CHECK_THROWS_AS(write_random_model(path, small_model(), false, [](std::uint64_t, std::uint64_t) { throw Stop(); }),
                  Stop);
  CHECK(names_in(folder.path()).empty());
  write_random_model(path + "/", small_model(), false);
  CHECK(names_in(folder.path()) == std::set<std::string>{"made"});
  const std::string before = read_file(path + "/model.safetensors");
  CHECK(error_of([&] { write_random_model(path, small_model(), false); }) ==
        path + ": exists; choose another folder or replace it with --force");
  RandomModel other = small_model();
  other.seed = 9;
  CHECK_THROWS_AS(write_random_model(path, other, true, [](std::uint64_t, std::uint64_t) { throw Stop(); }), Stop);
  CHECK(read_file(path + "/model.safetensors") == before);
  write_random_model(path, other, true);
  CHECK(read_file(path + "/model.safetensors") != before);
  CHECK(names_in(folder.path()) == std::set<std::string>{"made"});
  // What is no model is not replaced.
  folder.write("made/thesis.tex", "x");
  CHECK(error_of([&] { write_random_model(path, other, true); }) ==
        path + ": holds 'thesis.tex', which is no part of a model; remove it yourself or choose another folder");
  CHECK(error_of([&] { write_random_model(folder.path("no/made"), other, false); }) ==
        folder.path("no/made") + ": there is no folder '" + folder.path("no") + "'; make it first");
}

TEST_CASE("what no model can be is refused", "[random]") {
  const Folder folder;
  const auto error = [&](const auto& change) {
    RandomModel model = small_model();
    change(model);
    return error_of([&] { write_random_model(folder.path("made"), model, false); });
  };
  CHECK(error([](auto& model) { model.config.kv_heads = 3; }) ==
        "the model to make: 4 heads do not share 3 KV heads evenly; the first must be a multiple of the second");
  CHECK(error([](auto& model) { model.config.vocab_size = 259; }) ==
        "a vocabulary of 259: its tokenizer has 3 special tokens, 256 bytes and the space; take at least 260");
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("a made vocabulary has any size, its pieces all different and used", "[random]") {
  for (const std::int64_t size : {260, 300, 32000}) {
    const auto tokenizer = Tokenizer::parse(made_tokenizer(size), "made");
    CHECK(tokenizer.size() == size);
    const std::string text = "tene ta\u00DF 12";
    CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
  }
  // The longer the vocabulary, the shorter the text.
  CHECK(Tokenizer::parse(made_tokenizer(260), "made").encode("tene").size() >
        Tokenizer::parse(made_tokenizer(32000), "made").encode("tene").size());
  CHECK(Tokenizer::parse(made_tokenizer(32000), "made").encode("tene", false).size() == 1);
}
