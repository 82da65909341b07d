// SPDX-License-Identifier: Apache-2.0
// Third-party checkpoints with reference outputs of other programs, every operator as microcode.
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "runtime/backend/parallel_backend.h"
#include "runtime/generation.h"
#include "tests/runtime/support.h"
#include "tests/support/third_party.h"

using namespace mtsim;
using namespace mtsim::runtime;
using namespace mtsim::runtime::test;
using namespace mtsim::test;

namespace {

std::map<std::int64_t, std::vector<float>> fp32_logits(const std::string& path) {
  std::map<std::int64_t, std::vector<float>> logits;
  for (const auto& [position, values] : read_logits(path)) logits[position].assign(values.begin(), values.end());
  return logits;
}

ClusterBackendOptions options_for(const models::LlamaConfig& config, kernels::DType dtype) {
  ClusterBackendOptions options;
  options.dtype = dtype;
  options.longest = config.max_positions;
  return options;
}

/// The ids a reference run took, and the next of its last one.
std::vector<std::int64_t> ids_of(const std::vector<ReferenceStep>& steps) {
  std::vector<std::int64_t> ids{steps.front().token};
  for (const ReferenceStep& step : steps) ids.push_back(step.next);
  return ids;
}

/// What a run on the backend was.
struct Followed {
  double largest_error = 0;  // of a logit where the file has them
  Generation generation;
};

/// The reference run from its prompt on, every id as it is there; further tokens, if more are asked for.
Followed follow(Backend& backend, const std::string& run, std::int64_t most = 0) {
  const std::vector<ReferenceStep> steps = read_steps(run + ".steps.tsv");
  const auto expected = fp32_logits(run + ".logits.txt");
  REQUIRE(steps.size() >= 200);
  std::vector<std::int64_t> prompt{steps.front().token};
  while (steps[prompt.size() - 1].forced) prompt.push_back(steps[prompt.size() - 1].next);
  const auto tokens = std::max(most, std::ssize(steps) - std::ssize(prompt) + 1);
  Followed followed;
  std::int64_t position = std::ssize(prompt) - 1;
  std::size_t compared = 0, behind = 0;  // logits within the prompt are not asked for
  for (const auto& [at, values] : expected) behind += at >= position ? 1 : 0;
  followed.generation =
      generate(backend, prompt, {tokens, {}}, [&](std::span<const float> logits, std::span<const std::int64_t>) {
        if (const auto at = expected.find(position); at != expected.end()) {
          followed.largest_error = std::max(followed.largest_error, largest_difference(logits, at->second));
          ++compared;
        }
        ++position;
      });
  REQUIRE(compared == behind);
  REQUIRE(compared >= 4);
  const std::vector<std::int64_t> ids = ids_of(steps), &got = followed.generation.ids;
  REQUIRE(got.size() >= ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    INFO("position " << i);
    REQUIRE(got[i] == ids[i]);
  }
  return followed;
}

}  // namespace

TEST_CASE("stories260K in FP32 gives the ids of llama2.c, and its logits within 1e-4", "[data]") {
  const auto folder = test_data("stories260K");
  if (!folder) return;
  const models::Checkpoint checkpoint = models::Checkpoint::open(*folder + "/stories260K.gguf");
  ClusterBackend backend(fresh({.hazards = false}), checkpoint.config(), &checkpoint,
                         options_for(checkpoint.config(), kernels::DType::f32));
  for (const char* run : {"p0_empty", "p1_once", "p2_lily"}) {
    INFO(run);
    const Followed followed = follow(backend, *folder + "/" + run);
    CHECK(followed.largest_error < 1e-4);
    CHECK(followed.generation.stop == StopReason::tokens);
  }
}

TEST_CASE("the .bin of stories260K gives the same, and tells on until its context is full", "[data]") {
  const auto folder = test_data("stories260K");
  if (!folder) return;
  const models::Checkpoint checkpoint = models::Checkpoint::open(*folder + "/stories260K.bin");
  ClusterBackend backend(fresh({.hazards = false}), checkpoint.config(), &checkpoint,
                         options_for(checkpoint.config(), kernels::DType::f32));
  CHECK(follow(backend, *folder + "/p1_once").largest_error < 1e-4);
  const Followed whole = follow(backend, *folder + "/p0_empty", 600);
  CHECK(whole.largest_error < 1e-4);
  CHECK(whole.generation.stop == StopReason::context);
  CHECK(whole.generation.ids.size() == 513);  // 512 tokens and what they gave at last
  CHECK(whole.generation.generated == 512);
}

TEST_CASE("stories260K over two stages of two clusters gives the same ids", "[data]") {
  const auto folder = test_data("stories260K");
  if (!folder) return;
  const models::Checkpoint checkpoint = models::Checkpoint::open(*folder + "/stories260K.gguf");
  Transport transport(4);
  ParallelBackend backend(fresh_clusters(4, {.hazards = false}), checkpoint.config(), &checkpoint,
                          options_for(checkpoint.config(), kernels::DType::f32), {2, 2}, transport);
  // Sums over the group have another order, which is one rounding more a layer: the limit of one cluster.
  for (const char* run : {"p1_once", "p2_lily"}) CHECK(follow(backend, *folder + "/" + run).largest_error < 1e-4);
}

TEST_CASE("stories260K in FP16 has the logits of FP32 within what its roundings allow", "[data]") {
  const auto folder = test_data("stories260K");
  if (!folder) return;
  const models::Checkpoint checkpoint = models::Checkpoint::open(*folder + "/stories260K.gguf");
  ClusterBackend backend(fresh({}), checkpoint.config(), &checkpoint,
                         options_for(checkpoint.config(), kernels::DType::f16));
  const std::string run = *folder + "/p1_once";
  std::vector<std::int64_t> ids = ids_of(read_steps(run + ".steps.tsv"));
  ids.pop_back();  // it gave no logits
  const auto vocab = static_cast<std::size_t>(checkpoint.config().vocab_size);
  const std::vector<float> logits = logits_of(backend, ids, 67);  // the ids of FP32, whatever FP16 would choose
  std::size_t compared = 0;
  for (const auto& [position, expected] : fp32_logits(run + ".logits.txt")) {
    INFO("position " << position);
    const std::span<const float> its = std::span(logits).subspan(static_cast<std::size_t>(position) * vocab, vocab);
    const double difference = largest_difference(its, expected);
    const double bound = rounding_bound(checkpoint.config(), kernels::DType::f16, expected);
    CAPTURE(difference, bound, largest(expected));
    CHECK(difference < bound);
    CHECK(bound < 0.05 * largest(expected));
    ++compared;
  }
  CHECK(compared >= 7);
}

TEST_CASE("a BF16 folder with grouped heads has its golden logits within 1e-4 in FP32", "[data]") {
  const auto folder = test_data("tiny_llama_bf16");
  if (!folder) return;
  const models::Checkpoint checkpoint = models::Checkpoint::open(*folder);
  std::ifstream meta(*folder + "/tiny_llama_meta.txt");
  std::vector<std::int64_t> ids;
  for (std::string line; std::getline(meta, line);) {
    if (!line.starts_with("tokens=")) continue;
    std::istringstream list(line.substr(7));
    for (std::string id; std::getline(list, id, ',');) ids.push_back(std::stoll(id));
  }
  REQUIRE(ids.size() == 40);
  std::ifstream file(*folder + "/tiny_llama_golden.bin", std::ios::binary);
  std::vector<float> golden(40 * 112);
  file.read(reinterpret_cast<char*>(golden.data()), 40 * 112 * 4);
  REQUIRE(file.gcount() == 40 * 112 * 4);
  for (const std::int64_t chunk : {40, 9, 1}) {
    INFO("chunks of " << chunk);
    ClusterBackend backend(fresh({}), checkpoint.config(), &checkpoint,
                           options_for(checkpoint.config(), kernels::DType::f32));
    CHECK(largest_difference(logits_of(backend, ids, chunk), golden) < 1e-4);
  }
}
