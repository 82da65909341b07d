// SPDX-License-Identifier: Apache-2.0
// mtsim generate and mtsim plan.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "tests/scenarios/command.h"

using Catch::Matchers::Contains;
using mtsim::test::CommandResult;
using mtsim::test::Folder;

namespace {

/// With a model "tiny" in it: 64 wide, 1 layer, 512 tokens of vocabulary, 64 positions.
class Models : public Folder {
 public:
  Models() {
    const CommandResult made = mtsim(
        "make-model tiny --hidden 64 --layers 1 --heads 4 --kv-heads 2 --intermediate 96 --vocab 512 --positions 64 "
        "--dtype f32");
    INFO(made.err);
    REQUIRE(made.exit_code == 0);
  }
  CommandResult generate(const std::string& arguments) const { return mtsim("generate " + arguments); }
  CommandResult tiny(const std::string& arguments) const { return generate("--model tiny --dtype f32 " + arguments); }
};

/// Exit 2, one line on stderr that says it, nothing on stdout.
void check_refused(const CommandResult& result, const std::string& says) {
  INFO(result.err);
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  CHECK_THAT(result.err, Contains(says));
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') <= 2);
}

}  // namespace

TEST_CASE("generate writes text as it comes, and the same to JSON with ids and times", "[generate]") {
  const Models folder;
  const std::string what = "--prompt 'abc' --tokens 6 ";
  const CommandResult streamed = folder.tiny(what);
  INFO(streamed.err);
  REQUIRE(streamed.exit_code == 0);
  const CommandResult result = folder.tiny(what + "--json - --logits logits.bin");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const auto json = result.json();
  CHECK(json.at("command") == "generate");
  CHECK(json.at("stop") == "tokens");
  CHECK(json.at("text").get<std::string>() + "\n" == streamed.out);
  const auto ids = json.at("token_ids").get<std::vector<int>>();
  const auto prompt = json.at("prompt_tokens").get<std::size_t>();
  CHECK(json.at("generated") == 6);
  CHECK(ids.size() == prompt + 6);
  CHECK(ids.front() == 1);  // <s>
  const auto times = json.at("simulated_ms").get<std::vector<double>>();
  REQUIRE(times.size() == 6);  // the prefill and five tokens
  for (const double ms : times) CHECK(ms > 0);
  CHECK(json.contains("machine"));
  CHECK_FALSE(json.contains("findings"));

  // The logits of each step chose the ids.
  const std::vector<float> logits = folder.read_values<float>("logits.bin");
  REQUIRE(logits.size() == 6 * 512);
  for (std::size_t step = 0; step < 6; ++step) {
    const auto row = logits.begin() + static_cast<std::ptrdiff_t>(step * 512);
    CHECK(std::max_element(row, row + 512) - row == ids[prompt + step]);
  }
  // The reference has the same ids and no time.
  const auto reference = folder.tiny(what + "--json - --backend reference --logits reference.bin").json();
  CHECK(reference.at("token_ids") == json.at("token_ids"));
  CHECK(reference.at("text") == json.at("text"));
  CHECK_FALSE(reference.contains("simulated_ms"));
  const std::vector<float> others = folder.read_values<float>("reference.bin");
  REQUIRE(others.size() == logits.size());
  double most = 0, largest = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(logits[i]) - static_cast<double>(others[i])));
    largest = std::max(largest, std::abs(static_cast<double>(others[i])));
  }
  // 13 steps of sums of up to 96 terms, four deviations (tests/runtime/support.h).
  CHECK(most < 4 * std::sqrt(13.0 * 96) * 0x1p-24 * largest);
  // So has a run on the same ids, timing takes as long.
  folder.write("ids.txt", [&] {
    std::string text;
    for (std::size_t i = 0; i < prompt; ++i) text += fmt::format("{}{}", ids[i], i % 2 == 0 ? ",\n" : " ");
    return text;
  }());
  CHECK(folder.tiny("--prompt-ids ids.txt --tokens 6 --json -").json().at("token_ids") == json.at("token_ids"));
  const auto timing =
      folder.tiny(fmt::format("--backend timing --prompt-tokens {} --tokens 6 --json -", prompt)).json();
  CHECK(timing.at("simulated_ms") == json.at("simulated_ms"));
}

TEST_CASE("sampling depends on its seed alone", "[generate]") {
  const Models folder;
  const auto ids = [&](int seed) {
    const auto json = folder
                          .tiny(fmt::format("--backend reference --prompt a --tokens 20 --temperature 2 --top-p 0.9 "
                                            "--seed {} --json -",
                                            seed))
                          .json();
    return json.at("token_ids").get<std::vector<int>>();
  };
  CHECK(ids(3) == ids(3));
  CHECK(ids(3) != ids(4));
}

TEST_CASE("--stats sums operators and launches to all there is, and lists what runs on the host", "[generate]") {
  const Models folder;
  const auto json = folder.tiny("--prompt abc --tokens 3 --stats --json -").json();
  double milliseconds = 0;
  for (const double ms : json.at("simulated_ms")) milliseconds += ms;
  double sum = 0;
  for (const char* phase : {"prefill", "decode"}) {
    const auto& stats = json.at("stats").at(phase);
    std::int64_t cycles = stats.at("launch_cycles").get<std::int64_t>();
    for (const auto& op : stats.at("operators")) {
      cycles += op.at("cycles").get<std::int64_t>();
      CHECK(op.at("ddr_bytes").get<std::int64_t>() > 0);
    }
    CHECK(cycles == stats.at("cycles").get<std::int64_t>());
    sum += stats.at("simulated_ms").get<double>();
  }
  CHECK(sum == Approx(milliseconds));
  CHECK(json.at("stats").at("decode").at("iterations") == 2);
  CHECK(json.at("stats").at("on_host") == std::vector<std::string>{"tokenising", "sampling"});
}

TEST_CASE("what generate cannot do is refused before anything runs", "[generate]") {
  const Models folder;
  check_refused(folder.generate("--model nowhere --prompt a"), "nowhere");
  check_refused(folder.generate("--model Llama-9-7B --backend timing --prompt-tokens 3"), "Llama-9-7B");
  check_refused(folder.tiny("--prompt a --backend fast"), "--backend 'fast': reference, simulated or timing");
  check_refused(folder.generate("--model tiny --prompt a --dtype f8"), "--dtype 'f8': f32 or f16");
  check_refused(folder.tiny("--prompt a --plan a9"), "there is no execution plan 'a9'; there are a0, a1, a2");
  check_refused(folder.tiny("--prompt a --kv 'paged(7)'"), "KV cache 'paged(7)'");
  folder.write("ids.txt", "1 2 3");
  check_refused(folder.tiny("--prompt a --prompt-ids ids.txt"), "give one of --prompt, --prompt-ids");
  check_refused(folder.tiny(""), "give one of --prompt, --prompt-ids");
  check_refused(folder.tiny("--prompt-tokens 5"), "it is for --backend timing");
  check_refused(folder.tiny("--prompt-ids none.txt"), "none.txt");
  folder.write("nonsense.txt", "1 2\n3 four, 5\n");
  check_refused(folder.tiny("--prompt-ids nonsense.txt"), "nonsense.txt:2: 'four' is no token id");
  folder.write("negative.txt", "1 -2");
  check_refused(folder.tiny("--prompt-ids negative.txt"), "negative.txt:1: '-2' is no token id");
  folder.write("half.txt", "1 2.5");
  check_refused(folder.tiny("--prompt-ids half.txt"), "half.txt:1: '2.5' is no token id");
  folder.write("huge.txt", "1 99999999999999999999");
  check_refused(folder.tiny("--prompt-ids huge.txt"), "is no token id");
  folder.write("empty.txt", "\n");
  check_refused(folder.tiny("--prompt-ids empty.txt"), "the prompt has no tokens");
  folder.write("beyond.txt", "1 512");
  check_refused(folder.tiny("--prompt-ids beyond.txt"), "the prompt has token 512, the vocabulary ids 0 to 511");
  std::string many;
  for (int i = 0; i < 65; ++i) many += "5 ";
  folder.write("many.txt", many);
  check_refused(folder.tiny("--prompt-ids many.txt"), "the prompt has 65 tokens, the context of tiny holds 64");
  for (const char* backend : {"simulated", "reference"}) {
    const std::string with = fmt::format("--prompt a --backend {} ", backend);
    check_refused(folder.tiny(with + "--temperature -1"), "temperature");
    check_refused(folder.tiny(with + "--temperature nan"), "temperature");
    check_refused(folder.tiny(with + "--top-p 0"), "top-p");
    check_refused(folder.tiny(with + "--top-p 1.5"), "top-p");
  }
  check_refused(folder.tiny("--prompt a --tokens 0"), "--tokens");
  check_refused(folder.tiny("--prompt a --backend reference --layers 1"), "--layers is for a cluster");
  check_refused(folder.tiny("--prompt-tokens 4 --backend timing --logits x.bin"), "--logits: timing has no values");
  CHECK_FALSE(folder.has("x.bin"));
  check_refused(folder.tiny("--prompt a --logits none/x.bin"), "none/x.bin");
}

TEST_CASE("a weight that is no number is refused with its name, and leaves no logits", "[generate]") {
  const Models folder;
  std::string file = folder.read("tiny/model.safetensors");
  const std::string nan("\x00\x00\xC0\x7F", 4);
  file.replace(file.size() - 400, 4, nan);  // of the last tensor
  folder.write("tiny/model.safetensors", file);
  for (const char* backend : {"simulated", "reference"}) {
    INFO(backend);
    const CommandResult result = folder.tiny(fmt::format("--prompt a --backend {} --logits l.bin", backend));
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, Contains("model.safetensors"));
    CHECK_THAT(result.err, Contains("nan") || Contains("NaN"));
    CHECK_FALSE(folder.has("l.bin"));
  }
}

TEST_CASE("a full context ends the text and is said", "[generate]") {
  const Models folder;
  std::string many;
  for (int i = 0; i < 62; ++i) many += "5 ";
  folder.write("many.txt", many);
  const CommandResult result = folder.tiny("--prompt-ids many.txt --tokens 10 --json -");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.json().at("stop") == "context");
  CHECK(result.json().at("generated") == 3);
}

TEST_CASE("a shipped configuration is timed without weights", "[generate]") {
  const Folder folder;
  const CommandResult result = folder.mtsim(
      "generate --model TinyLlama-1.1B --backend timing --layers 1 --prompt-tokens 16 --tokens 2 --json - --stats");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const auto json = result.json();
  CHECK(json.at("layers") == 1);
  CHECK(json.at("simulated_ms").size() == 2);
  CHECK(json.at("text") == "");
  check_refused(folder.mtsim("generate --model TinyLlama-1.1B --prompt-tokens 16"),
                "'TinyLlama-1.1B' is a configuration without weights");
}

TEST_CASE("plan shows the units of a layer, their densities and why they end", "[plan]") {
  const Folder folder;
  const CommandResult result =
      folder.mtsim("plan --model Llama-2-7B --show-graph --tokens 1 --context 512 --batch 16 --json -");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const auto json = result.json();
  std::vector<std::set<std::string>> units;
  for (const auto& unit : json.at("units")) {
    auto& names = units.emplace_back();
    for (const auto& op : unit.at("operators")) names.insert(op.at("name").get<std::string>().substr(9));
    CHECK(unit.at("gsm_bytes").get<std::int64_t>() <= 6291456);
  }
  CHECK(units == std::vector<std::set<std::string>>{{"attention_norm", "q", "k", "v", "rope_q", "rope_k", "kv_append"},
                                                    {"scores", "scale", "mask", "softmax", "values"},
                                                    {"o", "add_attention", "ffn_norm"},
                                                    {"gate", "silu", "up", "mul"},
                                                    {"down", "add_ffn"}});
  const CommandResult text = folder.mtsim("plan --model Llama-2-7B --show-graph --tokens 2048");
  REQUIRE(text.exit_code == 0);
  CHECK_THAT(text.out, Contains("on-chip memory: "));
  CHECK_THAT(text.out, Contains("6291456 available"));
  CHECK_THAT(text.out, Contains("[high-low]"));
  const auto unfused = folder.mtsim("plan --model Llama-2-7B --show-graph --plan a1 --json -").json();
  for (const auto& unit : unfused.at("units")) CHECK(unit.at("operators").size() == 1);
}

TEST_CASE("plan refuses what there is not", "[plan]") {
  const Folder folder;
  check_refused(folder.mtsim("plan --model Llama-2-7B"), "--show-graph");
  check_refused(folder.mtsim("plan --model Llama-3-7B --show-graph"), "Llama-3-7B");
  check_refused(folder.mtsim("plan --model Llama-2-7B --show-graph --layer 32"),
                "--layer 32: Llama-2-7B has layers 0 to 31");
  check_refused(folder.mtsim("plan --model Llama-2-7B --show-graph --tokens 0"), "--tokens");
  check_refused(folder.mtsim("plan --model Llama-2-7B --show-graph --dtype bf16"), "--dtype 'bf16'");
  check_refused(folder.mtsim("plan --model Llama-2-7B --show-graph --plan b"), "there is no execution plan 'b'");
}

namespace {

/// A model that tensor-parallel groups of 2 and pipelines of 2 can have.
class TwoLayers : public Folder {
 public:
  TwoLayers() {
    const CommandResult made = mtsim(
        "make-model pair --hidden 64 --layers 2 --heads 4 --kv-heads 2 --intermediate 96 --vocab 512 --positions 64 "
        "--dtype f32");
    INFO(made.err);
    REQUIRE(made.exit_code == 0);
  }
};
const std::string k_pair = "generate --model pair --dtype f32 --prompt 'once upon' --tokens 5 ";

}  // namespace

TEST_CASE("any number of ranks gives the same ids, logits and times, and executes each packet once",
          "[generate][mpi]") {
  const TwoLayers folder;
  const std::string command = k_pair + "--plan tp=2,pp=2 --logits logits.bin --json out.json";
  const CommandResult alone = folder.mtsim(command);
  INFO(alone.err);
  REQUIRE(alone.exit_code == 0);
  const auto expected = nlohmann::json::parse(folder.read("out.json"));
  const std::string logits = folder.read("logits.bin");
  CHECK(expected.at("clusters") == 4);
  REQUIRE(expected.at("ranks").size() == 1);
  const auto packets = expected.at("ranks")[0].at("packets").get<std::int64_t>();
  CHECK(packets > 0);
  for (const int ranks : {1, 2, 4}) {
    INFO(ranks << " ranks");
    const CommandResult result = folder.mpirun(ranks, command);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    const auto json = nlohmann::json::parse(folder.read("out.json"));
    CHECK(json.at("token_ids") == expected.at("token_ids"));
    CHECK(json.at("simulated_ms") == expected.at("simulated_ms"));
    CHECK(folder.read("logits.bin") == logits);
    REQUIRE(json.at("ranks").size() == static_cast<std::size_t>(ranks));
    std::int64_t sum = 0;
    for (const auto& rank : json.at("ranks")) {
      const auto its = rank.at("packets").get<std::int64_t>();
      CHECK(its > 0);
      sum += its;
      CHECK_THAT(result.out, Contains(fmt::format("rank {}: {} packets executed", rank.at("rank").get<int>(), its)));
    }
    CHECK(sum == packets);
  }
  // One cluster: the same ids by another order of sums.
  REQUIRE(folder.mtsim(k_pair + "--json out.json").exit_code == 0);
  CHECK(nlohmann::json::parse(folder.read("out.json")).at("token_ids") == expected.at("token_ids"));
}

TEST_CASE("ranks that are given other inputs end, and say which", "[generate][mpi]") {
  const TwoLayers folder;
  const std::string program = mtsim::test::mpirun_command() + " -n 1 " MTSIM_COMMAND " ";
  const std::string plan = "--plan tp=2,pp=1 ";
  const CommandResult result = folder.shell(program + k_pair + plan + ": -n 1 " MTSIM_COMMAND " " + k_pair + plan +
                                            "--seed 7 --temperature 0.5");
  CHECK(result.exit_code != 0);
  CHECK_THAT(result.err, Contains("rank 1 has request") && Contains("seed 7"));
}

TEST_CASE("a rank that is killed ends the others", "[generate][mpi]") {
  const TwoLayers folder;
  // Long enough to be alive when one of them is killed.
  const CommandResult result = folder.shell(
      "timeout 60 " + mtsim::test::mpirun_command() +
      " -n 2 bash -c 'if [ $OMPI_COMM_WORLD_RANK = 1 ]; then (sleep 0.5; kill -9 $$) & fi; exec " MTSIM_COMMAND
      " generate --model pair --dtype f32 --prompt a --tokens 60 --plan tp=2,pp=1 --no-memo --logits l.bin'");
  CHECK(result.exit_code != 0);
  CHECK(result.exit_code != 124);  // of timeout
}

TEST_CASE("what goes with one cluster only is refused with more", "[generate]") {
  const TwoLayers folder;
  check_refused(folder.mtsim(k_pair + "--plan tp=2 --layers 1"), "--layers is for one cluster");
  check_refused(folder.mtsim(k_pair + "--plan tp=2 --trace t.json"), "--trace and --dram-trace follow one cluster");
  check_refused(folder.mtsim(k_pair + "--plan tp=4"), "2 KV heads, no multiple of it");
  check_refused(folder.mtsim(k_pair + "--plan pp=3"), "3 pipeline stages");
  check_refused(folder.mtsim(k_pair + "--plan tp=2,a7"), "no execution plan 'a7'");
}
