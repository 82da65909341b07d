// SPDX-License-Identifier: Apache-2.0
// Third-party checkpoints with reference outputs of other programs, every operator as microcode.
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "runtime/generation.h"
#include "tests/runtime/support.h"

using namespace mtsim;
using namespace mtsim::runtime;
using namespace mtsim::runtime::test;

namespace {

struct Step {
  std::int64_t token = 0, next = 0;
  bool forced = false;  // the next token is the prompt's
};

std::vector<Step> read_steps(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);  // the names of the columns
  std::vector<Step> steps;
  while (std::getline(file, line)) {
    std::istringstream columns(line);
    std::int64_t position = 0;
    int forced = 0;
    Step step;
    columns >> position >> step.token >> step.next >> forced;
    REQUIRE(columns);
    step.forced = forced != 0;
    steps.push_back(step);
  }
  return steps;
}

std::map<std::int64_t, std::vector<float>> read_logits(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::map<std::int64_t, std::vector<float>> logits;
  while (std::getline(file, line)) {
    if (line.starts_with('#')) continue;
    std::istringstream numbers(line);
    std::int64_t position = 0;
    numbers >> position;
    for (double value = 0; numbers >> value;) logits[position].push_back(static_cast<float>(value));
  }
  return logits;
}

ClusterBackendOptions options_for(const models::LlamaConfig& config, kernels::DType dtype) {
  ClusterBackendOptions options;
  options.dtype = dtype;
  options.longest = config.max_positions;
  return options;
}

/// The reference run from its prompt on; returns the largest error of a logit where the file has them.
double follow(Backend& backend, const std::string& run, bool exact_ids) {
  const std::vector<Step> steps = read_steps(run + ".steps.tsv");
  const auto expected = read_logits(run + ".logits.txt");
  REQUIRE(steps.size() >= 200);
  std::vector<std::int64_t> prompt{steps.front().token};
  while (steps[prompt.size() - 1].forced) prompt.push_back(steps[prompt.size() - 1].next);
  const auto tokens = std::ssize(steps) - std::ssize(prompt) + 1;
  double most = 0;
  std::int64_t compared = 0, position = std::ssize(prompt) - 1;
  const Generation generation =
      generate(backend, prompt, {tokens, {}}, [&](std::span<const float> logits, std::span<const std::int64_t>) {
        if (const auto at = expected.find(position); at != expected.end()) {
          most = std::max(most, largest_difference(logits, at->second));
          ++compared;
        }
        ++position;
      });
  REQUIRE(compared >= 4);
  if (exact_ids) {
    for (std::size_t i = 0; i < steps.size() && i + 1 < generation.ids.size(); ++i) {
      INFO("position " << i);
      REQUIRE(generation.ids[i + 1] == steps[i].next);
    }
  }
  return most;
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
    CHECK(follow(backend, *folder + "/" + run, true) < 1e-4);
  }
}
