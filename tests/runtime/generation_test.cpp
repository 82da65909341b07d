// SPDX-License-Identifier: Apache-2.0
// When a generation ends, what it hands to the backend, and prompts that are none; on a backend that says what it is
// told to.
#include "runtime/generation.h"

#include <limits>

#include "tests/runtime/support.h"

using namespace mtsim;
using namespace mtsim::runtime;
using namespace mtsim::runtime::test;

namespace {

/// The likeliest token behind n tokens is (7 n) % vocabulary.
class Script final : public Backend {
 public:
  explicit Script(bool has_values = true) : m_has_values(has_values) {
    m_config = small_model().config;
    m_config.name = "script";
    m_config.vocab_size = 50;
    m_config.max_positions = 8;
    m_config.eos_ids = {};
  }
  const models::LlamaConfig& config() const override { return m_config; }
  models::LlamaConfig& config() { return m_config; }
  bool has_values() const override { return m_has_values; }
  double clock_hz() const override { return 1e9; }
  bool begin(std::int64_t sequence, std::int64_t most) override {
    begun += 1;
    reserved = most;
    CHECK(sequence == 0);
    return has_room;
  }
  void end(std::int64_t) override { ended += 1; }
  std::int64_t length(std::int64_t) const override { return m_length; }
  IterationResult run(const Iteration& iteration) override {
    REQUIRE(iteration.sequences.size() == 1);
    CHECK_FALSE(iteration.all_logits);
    const std::vector<std::int32_t>& ids = iteration.sequences.front().ids;
    given.push_back(ids);
    if (std::ssize(given) == fails_at) throw RuntimeError("no luck");
    m_length += std::ssize(ids);
    IterationResult result;
    result.cycles = 10 * std::ssize(ids);
    if (std::ssize(given) == faults_at) {
      result.fault = sim::Fault{};
      result.fault->message = "load outside AM";
      return result;
    }
    if (!m_has_values) return result;
    result.logits.assign(static_cast<std::size_t>(m_config.vocab_size), 0);
    result.logits[static_cast<std::size_t>(7 * m_length % m_config.vocab_size)] = 1;
    if (std::ssize(given) == spoilt_at) result.logits[3] = std::numeric_limits<float>::quiet_NaN();
    result.logits_rows = 1;
    return result;
  }

  std::vector<std::vector<std::int32_t>> given;
  std::int64_t reserved = 0, begun = 0, ended = 0, fails_at = -1, faults_at = -1, spoilt_at = -1;
  bool has_room = true;

 private:
  models::LlamaConfig m_config;
  bool m_has_values;
  std::int64_t m_length = 0;
};

using Ids = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("a generation is a prefill and then a token at a time, as many as were asked for", "[generation]") {
  Script script;
  std::vector<std::pair<std::size_t, Ids>> heard;
  const Generation generation =
      generate(script, Ids{1, 2, 3}, {4, {}}, [&](std::span<const float> logits, std::span<const std::int64_t> token) {
        heard.emplace_back(logits.size(), Ids(token.begin(), token.end()));
      });
  CHECK(generation.ids == Ids{1, 2, 3, 21, 28, 35, 42});
  CHECK(generation.generated == 4);
  CHECK(generation.stop == StopReason::tokens);
  CHECK(to_string(generation.stop) == "tokens");
  CHECK(script.given == std::vector<std::vector<std::int32_t>>{{1, 2, 3}, {21}, {28}, {35}});  // 42 is not needed
  CHECK(script.reserved == 6);
  CHECK(script.begun == 1);
  CHECK(script.ended == 1);
  CHECK(heard == std::vector<std::pair<std::size_t, Ids>>{{50, {21}}, {50, {28}}, {50, {35}}, {50, {42}}});
  REQUIRE(generation.steps.size() == 4);
  CHECK(generation.steps[0].tokens == 3);
  CHECK(generation.steps[3].tokens == 1);
  CHECK(generation.steps[0].result.cycles == 30);
  CHECK(generation.steps[0].result.logits.empty());  // they would add up
  CHECK(generation.steps[0].host_s >= 0);
}

TEST_CASE("an end-of-text token ends a generation and is in its ids", "[generation]") {
  Script script;
  script.config().eos_ids = {3, 35};
  const Generation generation = generate(script, Ids{1, 3, 3}, {5, {}});  // those of the prompt do not count
  CHECK(generation.ids == Ids{1, 3, 3, 21, 28, 35});
  CHECK(generation.stop == StopReason::end_of_text);
  CHECK(to_string(generation.stop) == "end_of_text");
  CHECK(generation.generated == 3);
  CHECK(script.ended == 1);
  Script last;  // also as the last one asked for
  last.config().eos_ids = {35};
  CHECK(generate(last, Ids{1, 3, 3}, {3, {}}).stop == StopReason::end_of_text);
}

TEST_CASE("a full context ends a generation", "[generation]") {
  Script script;
  const Generation generation = generate(script, Ids{1, 2, 3, 4, 5}, {100, {}});
  CHECK(generation.stop == StopReason::context);
  CHECK(to_string(generation.stop) == "context");
  CHECK(generation.generated == 4);  // of 5, 6, 7 and 8 tokens
  CHECK(script.reserved == 8);
  Script full;
  const Generation one = generate(full, Ids(8, 1), {2, {}});
  CHECK(one.generated == 1);
  CHECK(one.stop == StopReason::context);
  Script enough;  // no more was asked for
  CHECK(generate(enough, Ids(8, 1), {1, {}}).stop == StopReason::tokens);
}

TEST_CASE("without values a generation has its time and no tokens", "[generation]") {
  Script script(false);
  int heard = 0;
  const Generation generation =
      generate(script, Ids{1, 2, 3}, {4, {}}, [&](std::span<const float> logits, std::span<const std::int64_t> token) {
        heard += logits.empty() && token.empty() ? 1 : 0;
      });
  CHECK(generation.ids == Ids{1, 2, 3});
  CHECK(generation.generated == 4);
  CHECK(heard == 4);
  CHECK(generation.steps.size() == 4);
}

TEST_CASE("prompts that are none are refused before anything runs", "[generation]") {
  const auto complaint = [](const Ids& prompt, bool has_room = true) {
    Script script;
    script.has_room = has_room;
    const std::string text = error_of([&] { generate(script, prompt, {4, {}}); });
    CHECK(script.given.empty() == !text.empty());
    return text;
  };
  CHECK(complaint({49}) == "");
  CHECK(complaint({}) == "the prompt has no tokens; give some text, or ids");
  CHECK(complaint(Ids(8, 1)) == "");
  CHECK(complaint(Ids(9, 1)) == "the prompt has 9 tokens, the context of script holds 8");
  CHECK(complaint({1, 50}) == "the prompt has token 50, the vocabulary ids 0 to 49");
  CHECK(complaint({-1}) == "the prompt has token -1, the vocabulary ids 0 to 49");
  CHECK(complaint({1}, false) == "the KV cache has no room for the prompt");
}

TEST_CASE("a generation that fails gives its room back", "[generation]") {
  Script script;
  script.fails_at = 1;
  CHECK(error_of([&] { generate(script, Ids{1, 2}, {4, {}}); }) == "no luck");
  CHECK(script.ended == 1);
}

TEST_CASE("the longest context is the prompt and all tokens but the last, within the model's", "[generation]") {
  models::LlamaConfig config = small_model().config;
  config.max_positions = 100;
  CHECK(longest_context(config, 10, 1) == 10);
  CHECK(longest_context(config, 10, 0) == 10);
  CHECK(longest_context(config, 10, 20) == 29);
  CHECK(longest_context(config, 10, 91) == 100);
  CHECK(longest_context(config, 10, 92) == 100);
}

TEST_CASE("what goes wrong behind the first iteration keeps what was done", "[generation]") {
  const auto failed = [](auto change, std::size_t steps, std::string_view why) {
    Script script;
    change(script);
    const Generation generation = generate(script, Ids{1, 2}, {5, {}});
    CHECK(generation.stop == StopReason::failure);
    CHECK(generation.generated == 2);
    CHECK(generation.ids.size() == 4);
    CHECK(generation.steps.size() == steps);
    CHECK(generation.failure.find(why) != std::string::npos);
    CHECK(script.ended == 1);
  };
  failed([](Script& s) { s.fails_at = 3; }, 2, "no luck");
  failed([](Script& s) { s.faults_at = 3; }, 3, "load outside AM");
  failed([](Script& s) { s.spoilt_at = 3; }, 3, "logit");
}
