// SPDX-License-Identifier: Apache-2.0
// Traces and reviewed findings on the command line.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <sstream>

#include "tests/scenarios/command.h"

using Catch::Matchers::Contains;
using mtsim::test::CommandResult;
using mtsim::test::Folder;

namespace {
const std::string k_gemm = "op gemm --m 24 --n 128 --k 64 ";
}

TEST_CASE("--trace writes a track for each core and channel, and counters for DDR and GSM", "[watch]") {
  const Folder folder;
  const CommandResult result = folder.mtsim(k_gemm + "--trace t.json --json -");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.err, Contains("no packets"));
  const auto trace = nlohmann::json::parse(folder.read("t.json"));
  std::set<int> processes;
  std::set<std::string> counters;
  double end = 0;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == "C") counters.insert(event.at("name"));
    if (event.at("ph") != "X") continue;
    processes.insert(event.at("pid").get<int>());
    end = std::max(end, event.at("ts").get<double>() + event.at("dur").get<double>());
  }
  CHECK(processes.size() == 24);
  CHECK(counters == std::set<std::string>{"DDR busy", "DMA port", "GSM"});
  CHECK(std::llround(1000 * end) == result.json().at("cycles").get<std::int64_t>());
}

TEST_CASE("a small window has the packets of its calls", "[watch]") {
  const Folder folder;
  REQUIRE(folder.mtsim(k_gemm + "--trace t.json --trace-window 30us:41us").exit_code == 0);  // behind the launch
  const auto events = nlohmann::json::parse(folder.read("t.json")).at("traceEvents");
  CHECK(std::any_of(events.begin(), events.end(), [](const auto& event) {
    return event.at("args").contains("text") &&
           event.at("args").at("text").template get<std::string>().find("VFMULAS32") != std::string::npos;
  }));
}

TEST_CASE("--dram-trace writes the requests that reach the DDR", "[watch]") {
  const Folder folder;
  const auto bytes = folder.mtsim(k_gemm + "--dram-trace d.csv --json -").json().at("bytes");
  std::istringstream lines(folder.read("d.csv"));
  std::string line;
  std::getline(lines, line);
  double read = 0;
  while (std::getline(lines, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream fields(line);
    std::string cycle, core, channel, kind, address;
    double rows = 0, row_bytes = 0;
    fields >> cycle >> core >> channel >> kind >> address >> rows >> row_bytes;
    if (kind == "R") read += rows * row_bytes;
  }
  CHECK(read == bytes.at("ddr->gsm").at("read").get<double>() + bytes.at("ddr->am").at("read").get<double>());
}

TEST_CASE("a suppression that meets nothing is reported, a wrong one refused", "[watch]") {
  const Folder folder;
  folder.write("s.yaml", "suppressions:\n  - {kind: never-written, source: gemm.cpp, reason: looked at}\n");
  const CommandResult unused = folder.mtsim(k_gemm + "--suppress s.yaml --json -");
  CHECK(unused.exit_code == 0);
  CHECK_THAT(unused.err, Contains("s.yaml:2") && Contains("no never-written at gemm.cpp"));
  CHECK(unused.json().at("suppressed").empty());
  folder.write("s.yaml", "suppressions:\n  - {kind: never-written, source: gemm.cpp}\n");
  const CommandResult refused = folder.mtsim(k_gemm + "--suppress s.yaml");
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err, Contains("s.yaml:2") && Contains("reason"));
}

TEST_CASE("--omit-wait shows what a missing wait leads to", "[watch]") {
  const Folder folder;
  const CommandResult found = folder.mtsim(k_gemm + "--omit-wait 1 --json -");
  CHECK(found.exit_code == 1);
  const auto findings = found.json().at("findings");
  REQUIRE_FALSE(findings.empty());
  CHECK(std::any_of(findings.begin(), findings.end(),
                    [](const auto& finding) { return finding.at("kind") == "read-before-complete"; }));
  const CommandResult none = folder.mtsim(k_gemm + "--omit-wait 100000");
  CHECK(none.exit_code == 0);
  CHECK_THAT(none.err, Contains("nothing was left out"));
}

TEST_CASE("watch options that make no sense are refused", "[watch]") {
  const Folder folder;
  for (const auto& [options, complaint] : std::vector<std::pair<std::string, std::string>>{
           {"--trace-window 0:5", "without --trace"},
           {"--trace t.json --trace-window 5", "no ':'"},
           {"--trace /no/such/folder/t.json", "/no/such/folder/t.json"},
           {"--dram-trace /no/such/folder/d.csv", "/no/such/folder/d.csv"},
           {"--suppress s.yaml --no-hazards", "nothing is found"},
           {"--omit-wait 1 --no-hazards", "nobody looks"},
           {"--omit-wait 0", "--omit-wait"},
       }) {
    const CommandResult result = folder.mtsim(k_gemm + options);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, Contains(complaint));
  }
}
