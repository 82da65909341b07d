// SPDX-License-Identifier: Apache-2.0
// mtsim op attention.
#include <catch2/catch.hpp>

#include "tests/scenarios/command.h"

using Catch::Matchers::Contains;
using mtsim::test::CommandResult;
using mtsim::test::Folder;

TEST_CASE("attention is verified with causal as an option or a word of the variant", "[attention]") {
  const Folder folder;
  const std::string shape = "op attention --heads 4 --kv-heads 2 --seq 40 --context 90 --head-dim 32 --json - ";
  const CommandResult option = folder.mtsim(shape + "--causal --variant flash --verify --dtype f16");
  INFO(option.err);
  REQUIRE(option.exit_code == 0);
  const auto json = option.json();
  CHECK(json.at("verified") == true);
  CHECK(json.at("variant") == "flash");
  CHECK(json.at("causal") == true);
  CHECK(json.at("heads_at_once") == 2);
  const auto word = folder.mtsim(shape + "--variant flash,causal --dtype f16").json();
  CHECK(word.at("cycles") == json.at("cycles"));
  CHECK(folder.mtsim(shape).json().at("causal") == false);
}

TEST_CASE("attention counts how often it moves its matrices, beside Table III", "[attention]") {
  const Folder folder;
  const auto traffic = [&](const std::string& variant) {
    const CommandResult result =
        folder.mtsim("op attention --heads 2 --seq 2048 --json - --tile mc=512 --variant " + variant);
    REQUIRE(result.exit_code == 0);
    return result.json().at("traffic");
  };
  // Rounds of 24 x 64 rows: 1.33 of them, two broadcasts.
  for (const char* variant : {"mt", "mt,paper"}) {
    const auto mt = traffic(variant);
    for (const char* matrix : {"q", "o"}) CHECK(mt.at(matrix).at("times") == 1);
    for (const char* matrix : {"k", "v"}) CHECK(mt.at(matrix).at("times") == 2);
    for (const auto& [matrix, counts] : mt.items()) CHECK(counts.at("times") == counts.at("table_iii"));
  }
  // Four blocks of keys. The first one does not read O; the maxima and sums of the rows are 2 of 128 columns more.
  const auto flash = traffic("flash");
  CHECK(flash.at("q").at("times") == 4);
  CHECK(flash.at("o").at("table_iii") == 8);
  CHECK(flash.at("o").at("times").get<double>() >= 7);
  CHECK(flash.at("o").at("times").get<double>() <= 7 * 1.03);
  for (const char* matrix : {"k", "v"}) CHECK(flash.at(matrix).at("times") == 1);
  // Scores are written, read, written as weights and read.
  CHECK(traffic("unfused").at("scores").at("times") == 4);
}

TEST_CASE("unfused attention is launched three times a head", "[attention]") {
  const Folder folder;
  const auto launch_cycles = [&](const std::string& variant) {
    const auto json =
        folder.mtsim("op attention --heads 5 --seq 64 --head-dim 64 --json - --variant " + variant).json();
    return json.at("stalls").at("launch").at("cycles_mean").get<double>();
  };
  CHECK(launch_cycles("mt") == 54000);  // 30 us
  CHECK(launch_cycles("unfused") == 15 * 54000);
}

TEST_CASE("one token of each sequence is decoded against its context, of any length", "[attention]") {
  const Folder folder;
  const std::string shape = "op attention --batch 5 --heads 16 --kv-heads 2 --seq 1 --context 300 --head-dim 64 ";
  for (const std::string dtype : {"f32", "f16"}) {
    const CommandResult result =
        folder.mtsim(shape + "--shortest-context 1 --kv-block 64 --verify --json - --dtype " + dtype);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    const auto json = result.json();
    CHECK(json.at("variant") == "decode");
    CHECK(json.at("verified") == true);
    CHECK(json.at("heads_at_once") == 8);
    CHECK(json.at("lengths") == nlohmann::json({300, 226, 151, 76, 1}));
    CHECK(json.at("findings").empty());
    for (const char* matrix : {"q", "k", "v", "o"}) CHECK(json.at("traffic").at(matrix).at("times") == 1);
    const auto timing = folder.mtsim(shape + "--shortest-context 1 --kv-block 64 --json - --dtype " + dtype).json();
    CHECK(timing.at("cycles") == json.at("cycles"));
    CHECK(timing.at("bytes") == json.at("bytes"));
  }
  // Query heads read their KV head once.
  const auto traffic = folder.mtsim(shape + "--json -").json().at("traffic");
  for (const char* matrix : {"q", "k", "v", "o"}) CHECK(traffic.at(matrix).at("times") == 1);
  // A causal token sees all its keys; another variant is what was asked for; a broadcast for each head is slower.
  const auto decode = folder.mtsim(shape + "--causal --json -").json(),
             mt = folder.mtsim(shape + "--variant mt --json -").json();
  CHECK(decode.at("variant") == "decode");
  CHECK(mt.at("variant") == "mt");
  CHECK(decode.at("cycles") < mt.at("cycles"));
  for (const auto& [arguments, message] : std::vector<std::pair<std::string, std::string>>{
           {shape + "--shortest-context 1", "give kv_block"},
           {shape + "--shortest-context 301 --kv-block 64", "above context"},
           {shape + "--variant mt --shortest-context 5", "are of decode"},
           {shape + "--variant decode --tile mr=4", "give mc alone"},
           {"op attention --heads 2 --seq 5 --variant decode", "5 tokens a request"},
           {shape + "--variant decode,paper", "no sequence for it"}}) {
    const CommandResult refused = folder.mtsim(arguments);
    CHECK(refused.exit_code == 2);
    CHECK_THAT(refused.err, Contains(message));
  }
}

TEST_CASE("what attention cannot do is refused with exit 2 and the bytes", "[attention]") {
  const Folder folder;
  const auto complaint = [&](const std::string& arguments) {
    const CommandResult result = folder.mtsim("op attention " + arguments);
    CHECK(result.exit_code == 2);
    return result.err;
  };
  CHECK_THAT(complaint("--heads 1 --seq 4096 --tile mr=128"),
             Contains("needs 98304 bytes of SM, 65536 available") && Contains("use a smaller mr"));
  CHECK_THAT(complaint("--heads 1 --seq 4096 --tile mc=1024"), Contains("bytes of AM, 786432 available"));
  CHECK_THAT(complaint("--heads 1 --seq 4096 --tile mr=64,mc=512,pass=4"), Contains("bytes of GSM, 6291456 available"));
  CHECK_THAT(complaint("--heads 3 --kv-heads 2 --seq 64"), Contains("kv_heads must divide heads"));
  CHECK_THAT(complaint("--heads 1 --seq 64 --head-dim 40"), Contains("no multiple of 16"));
  CHECK_THAT(complaint("--heads 1 --seq 64 --variant flash,mt"), Contains("exclude each other"));
  CHECK_THAT(complaint("--heads 20 --seq 64 --skip-pieces --trace t.json"), Contains("--skip-pieces with a trace"));
}

TEST_CASE("heads that are left out are said to be", "[attention]") {
  const Folder folder;
  const std::string shape = "op attention --heads 20 --seq 300 --head-dim 64";
  const CommandResult text = folder.mtsim(shape + " --skip-pieces");
  CHECK_THAT(text.out, Contains("4 of 20 equal pieces were simulated"));
  const auto few = folder.mtsim(shape + " --skip-pieces --json -").json(),
             all = folder.mtsim(shape + " --json -").json();
  CHECK(few.at("pieces").at("simulated") == 4);
  CHECK_FALSE(all.contains("pieces"));
  CHECK(few.at("cycles") == all.at("cycles"));
  CHECK(few.at("bytes") == all.at("bytes"));
  CHECK(few.at("traffic") == all.at("traffic"));
}
