// SPDX-License-Identifier: Apache-2.0
// mtsim explore attention, and sweeps of its block sizes by mtsim run: through the machinery of explore gemm.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "tests/scenarios/command.h"

using Catch::Matchers::Contains;
using mtsim::test::CommandResult;
using mtsim::test::Folder;
using nlohmann::json;

namespace {

const std::string k_small =
    "explore attention --batch 2 --heads 8 --kv-heads 4 --seq 700 --head-dim 64 --only mr=16:32:48 --only mc=128:256 ";

json explored(const Folder& folder, const std::string& arguments) {
  const CommandResult result = folder.mtsim(arguments + " --json out.json");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return json::parse(folder.read("out.json"));
}

}  // namespace

TEST_CASE("no attention is faster than its bound, and the bound is near", "[explore]") {
  const Folder folder;
  for (const auto& [kind, machine] : std::vector<std::pair<std::string, std::string>>{{"--dtype f32", "mt3000"},
                                                                                      {"--dtype f32", "mt3000-exposed"},
                                                                                      {"--dtype f32", "mt3000-rowcost"},
                                                                                      {"--dtype f16", "mt3000"},
                                                                                      {"--causal", "mt3000"}}) {
    CAPTURE(kind, machine);
    const json result = explored(folder, k_small + kind + " --machine " + machine);
    CHECK(result.at("bound").at("faster_than_bound") == 0);
    CHECK(result.at("bound").at("least_ratio") >= 1);
    CHECK(result.at("bound").at("median_ratio") < 1.5);
    CHECK(result.at("skip_pieces") == true);
  }
}

TEST_CASE("an attention point's command gives its latency and bytes again, of all heads too", "[explore]") {
  const Folder folder;
  const json result = explored(folder, k_small + "--machine mt3000 --set ddr.bandwidth_gb_s=60");
  const json& points = result.at("points");
  REQUIRE(points.size() >= 12);
  std::vector<json> rows = {points.front(), points.back()};
  for (const auto& [name, row] : result.at("named").items()) rows.push_back(row);
  CHECK(result.at("named").size() == 4);
  for (const json& row : rows) {
    std::string command = row.at("command");
    INFO(command);
    REQUIRE(command.starts_with("mtsim op attention --batch 2 --heads 8 --kv-heads 4 --seq 700 --head-dim 64 "));
    const CommandResult again = folder.mtsim(command.substr(6) + " --json -");
    INFO(again.err);
    REQUIRE(again.exit_code == 0);
    CHECK(again.json().at("latency_ms").get<double>() == Approx(row.at("latency_ms").get<double>()).epsilon(1e-9));
    CHECK(again.json().at("memory").at("am_bytes") == row.at("memory").at("am_bytes"));
    command.erase(command.find(" --skip-pieces"), std::string(" --skip-pieces").size());
    CHECK(folder.mtsim(command.substr(6) + " --json -").json().at("cycles") == again.json().at("cycles"));
  }
  for (const json& neighbour : result.at("neighbours")) {
    CHECK(neighbour.contains("variant"));
    CHECK(neighbour.contains("command") != neighbour.contains("why_not"));
  }
}

TEST_CASE("attentions that do not fit are counted by memory with the bytes that op complains of", "[explore]") {
  const Folder folder;
  const std::string shape = "attention --heads 4 --seq 4096 ";
  const json result = explored(folder, "explore " + shape + "--machine mt3000 --top 1");
  std::set<std::string> memories;
  for (const json& killed : result.at("killed")) {
    memories.insert(killed.at("memory"));
    CHECK(killed.at("needed_bytes") > killed.at("available_bytes"));
    const CommandResult refused = folder.mtsim("op " + shape + "--variant " + killed.at("variant").get<std::string>() +
                                               " --tile " + killed.at("nearest").get<std::string>());
    CHECK(refused.exit_code == 2);
    CHECK_THAT(refused.err,
               Contains(fmt::format("needs {} bytes of {}, {} available", killed.at("needed_bytes").get<std::int64_t>(),
                                    killed.at("memory").get<std::string>(),
                                    killed.at("available_bytes").get<std::int64_t>())));
  }
  CHECK(memories == std::set<std::string>{"SM", "AM", "GSM"});
}

TEST_CASE("attention is explored on the calibrated machines, by ranks, and refuses what it cannot do",
          "[explore][mpi]") {
  const Folder folder;
  const std::string command = k_small + "--jobs 1 --top 6 ";
  const json alone = explored(folder, command + "--csv alone.csv");
  CHECK(alone.at("machines").size() == 3);
  REQUIRE_FALSE(alone.at("compared").empty());
  for (const json& point : alone.at("compared"))
    CHECK_THAT(point.at("command").get<std::string>(), Contains("--variant " + point.at("variant").get<std::string>()));
  const CommandResult ranks = folder.mpirun(2, command + "--csv ranks.csv --json out.json");
  INFO(ranks.err);
  REQUIRE(ranks.exit_code == 0);
  CHECK(folder.read("ranks.csv") == folder.read("alone.csv"));
  CHECK(json::parse(folder.read("out.json")).at("computed_points") == alone.at("computed_points"));
  for (const auto& [arguments, message] : std::vector<std::pair<std::string, std::string>>{
           {"explore attention --seq 70", "--heads"},
           {k_small + "--only k2=5", "no such dimension; known: mr, mc, pass"},
           {k_small + "--only mc=100", "multiple of 128"},
           {k_small + "--variant unfused", "no such variant"},
           {k_small + "--shortest-context 5", "decode"},
           {"explore attention --heads 3 --kv-heads 2 --seq 64", "must divide heads"},
           {"explore attention --heads 3 --seq 64 --head-dim 40", "no multiple of 16"}}) {
    const CommandResult result = folder.mtsim(arguments);
    INFO(arguments);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, Contains(message));
  }
}

TEST_CASE("a scenario sweeps a block size over its capacity cliffs", "[run]") {
  const Folder folder;
  folder.write("mr.yaml",
               "name: mr\ntitle: Rows\nmachine: mt3000\noperator: attention\ndtype: f32\nskip_pieces: true\n"
               "grid: {heads: 2, seq: [300, 2048]}\ntile: {mr: [48, 64, 96], mc: 512, pass: 1}\n"
               "rows: mr\ncolumns: seq\n");
  const json result = explored(folder, "run mr.yaml");
  REQUIRE(result.at("cases").size() == 6);
  for (const json& cell : result.at("cases")) {
    const std::int64_t mr = cell.at("case").at("mr"), seq = cell.at("case").at("seq");
    const std::string tile =
        fmt::format("op attention --heads 2 --seq {} --skip-pieces --tile mr={},mc=512,pass=1 --json -", seq, mr);
    const CommandResult alone = folder.mtsim(tile);
    CHECK((cell.at("status") == "does_not_fit") == (alone.exit_code == 2));
    CHECK((mr == 96) == (cell.at("status") == "does_not_fit"));
    if (mr == 96) {
      CHECK(cell.at("metrics").empty());
      CHECK_THAT(alone.err, Contains(cell.at("why_not").get<std::string>()));
      CHECK(cell.at("memory").at("sm_bytes") == 73728);
    } else {
      CHECK(cell.at("metrics").at("cycles") == alone.json().at("cycles"));
      for (const char* memory : {"sm_bytes", "am_bytes", "gsm_bytes"})
        CHECK(cell.at("memory").at(memory) == alone.json().at("memory").at(memory));
    }
  }
  const CommandResult text = folder.mtsim("run mr.yaml --set \"mr=[64, 80, 128]\" --set seq=2048");
  REQUIRE(text.exit_code == 0);
  CHECK_THAT(text.out, Contains("SM by 32,768"));
  CHECK_THAT(text.out, Contains("of 65,536 (SM) and 786,432 (AM) of a core and 6,291,456 of GSM"));
  CHECK_THAT(folder.mtsim("run mr.yaml --set mc=100").err, Contains("no multiple of 128"));
  folder.write("wrong.yaml",
               "name: mr\ntitle: Rows\nmachine: mt3000\noperator: attention\ndtype: f32\n"
               "grid: {heads: 2, seq: 300}\ntile: {rows: [48]}\nrows: heads\ncolumns: seq\n");
  const CommandResult wrong = folder.mtsim("run wrong.yaml");
  CHECK(wrong.exit_code == 2);
  CHECK_THAT(wrong.err, Contains("wrong.yaml:7:") && Contains("unknown key 'rows'"));
}
