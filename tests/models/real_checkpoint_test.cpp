// SPDX-License-Identifier: Apache-2.0
// Real third-party checkpoints with reference outputs of other programs.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "models/reference.h"
#include "models/sampler.h"
#include "models/tokenizer.h"
#include "tests/models/support.h"
#include "tests/support/third_party.h"

using namespace mtsim::models;
using namespace mtsim::models::test;
using namespace mtsim::test;

namespace {

/// A whole run from its prompt on: every id it takes, and the largest difference of a logit.
template <class Real>
double largest_error(const Checkpoint& checkpoint, const std::string& run, const std::string& logits_file) {
  const auto steps = read_steps(run + ".steps.tsv");
  const auto expected = read_logits(run + logits_file);
  REQUIRE(steps.size() >= 200);
  REQUIRE(expected.size() >= 7);
  Reference<Real> reference(checkpoint);
  Sampler greedy({});
  double largest = 0;
  std::int64_t token = steps.front().token;
  std::size_t compared = 0;
  for (const ReferenceStep& step : steps) {
    REQUIRE(token == step.token);
    const auto logits = reference.forward(token);
    const std::vector<float> narrow(logits.begin(), logits.end());
    token = step.forced ? step.next : greedy.sample(narrow);
    if (const auto found = expected.find(step.position); found != expected.end()) {
      REQUIRE(found->second.size() == logits.size());
      for (std::size_t i = 0; i < logits.size(); ++i)
        largest = std::max(largest, std::abs(static_cast<double>(logits[i]) - found->second[i]));
      ++compared;
    }
  }
  REQUIRE(token == steps.back().next);
  REQUIRE(compared == expected.size());
  return largest;
}

std::string without_last_newline(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

TEST_CASE("stories260K tells its stories, from .bin and .gguf", "[data]") {
  const auto folder = test_data("stories260K");
  if (!folder) return;
  for (const char* name : {"/stories260K.bin", "/stories260K.gguf"}) {
    const auto checkpoint = Checkpoint::open(*folder + name);
    for (const char* run : {"/p0_empty", "/p1_once", "/p2_lily"}) {
      INFO(name << run);
      // llama2.c computes in FP32 and the angles of RoPE too: 5 layers of sums of up to 172 products whose logits are
      // up to 20 leave 2^-24 * 20 * sqrt(5 * 172) = 3.5e-5 if the roundings are random. The smallest margin between two
      // ids is 8.8e-4.
      CHECK(largest_error<float>(checkpoint, *folder + run, ".logits.txt") < 5e-5);
    }
  }
}

TEST_CASE("in FP64 stories260K agrees with another FP64 forward", "[data]") {
  const auto folder = test_data("stories260K");
  if (!folder) return;
  const auto checkpoint = Checkpoint::open(*folder + "/stories260K.bin");
  // The file has 12 digits of numbers below 20: 5e-11 a rounding.
  CHECK(largest_error<double>(checkpoint, *folder + "/p1_once", ".logits64.txt") < 1e-10);
}

TEST_CASE("both files of stories260K have the same weights and, where they say it, the same configuration", "[data]") {
  const auto folder = test_data("stories260K");
  if (!folder) return;
  const auto bin = Checkpoint::open(*folder + "/stories260K.bin"),
             gguf = Checkpoint::open(*folder + "/stories260K.gguf");
  for (int number = 0; number < k_roles; ++number) {
    const auto role = static_cast<Role>(number);
    if (!is_present(role, bin.config()) && role != Role::head) continue;
    for (std::int64_t layer = 0; layer < (number < k_layer_roles ? 5 : 1); ++layer) {
      INFO(to_string(role) << layer);
      CHECK(bin.tensor(role, layer).bytes == gguf.tensor(role, layer).bytes);
    }
  }
  CHECK(bin.config().max_positions == 512);
  CHECK(gguf.config().max_positions == 2048);  // what the file says, though the model was trained on 512
  CHECK(gguf.config().rope_theta == 10000);    // which the file leaves out
  CHECK(gguf.config().rope_pairs == RopePairs::interleaved);
  CHECK(gguf.config().kv_heads == 4);
}

TEST_CASE("its tokenizers give the ids and texts of the reference runs", "[data]") {
  const auto folder = test_data("stories260K");
  if (!folder) return;
  for (const char* name : {"/tok512.model", "/stories260K.gguf"}) {
    const auto tokenizer = Tokenizer::load(*folder + name);
    CHECK(tokenizer.size() == 512);
    CHECK(tokenizer.bos_id() == 1);
    for (const char* run : {"/p0_empty", "/p1_once", "/p2_lily"}) {
      INFO(name << run);
      std::istringstream numbers(read_file(*folder + run + ".prompt_ids.txt"));
      std::vector<std::int64_t> ids;
      for (std::int64_t id = 0; numbers >> id;) ids.push_back(id);
      const std::string prompt = without_last_newline(read_file(*folder + run + ".prompt.txt"));
      CHECK(tokenizer.encode(prompt) == ids);
      ids = {1};
      for (const ReferenceStep& step : read_steps(*folder + run + ".steps.tsv")) ids.push_back(step.next);
      CHECK(tokenizer.decode(ids) == without_last_newline(read_file(*folder + run + ".text.txt")));
    }
  }
}

TEST_CASE("a BF16 folder with grouped heads and a head of its own has its golden logits", "[data]") {
  const auto folder = test_data("tiny_llama_bf16");
  if (!folder) return;
  const auto checkpoint = Checkpoint::open(*folder);
  const std::string meta = read_file(*folder + "/tiny_llama_meta.txt"),
                    golden = read_file(*folder + "/tiny_llama_golden.bin");
  std::vector<std::int64_t> tokens;
  std::istringstream list(meta.substr(meta.find("tokens=") + 7));
  for (std::string token; std::getline(list, token, ',');) tokens.push_back(std::stoll(token));
  REQUIRE(tokens.size() == 40);
  REQUIRE(golden.size() == 40 * 112 * sizeof(float));
  Reference<float> in_f32(checkpoint);
  Reference<double> in_f64(checkpoint);
  double largest_f32 = 0, largest_f64 = 0;
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    const auto f32 = in_f32.forward(tokens[t]);
    const auto f64 = in_f64.forward(tokens[t]);
    for (std::size_t i = 0; i < 112; ++i) {
      float expected = 0;
      std::memcpy(&expected, golden.data() + (t * 112 + i) * sizeof expected, sizeof expected);
      largest_f32 = std::max(largest_f32, std::abs(static_cast<double>(f32[i]) - static_cast<double>(expected)));
      largest_f64 = std::max(largest_f64, std::abs(f64[i] - static_cast<double>(expected)));
    }
  }
  // The golden file is FP32 of another program; it is known to agree with FP64 to 2.7e-6.
  CHECK(largest_f64 < 3e-6);
  CHECK(largest_f32 < 1e-5);
}
