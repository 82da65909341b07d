// SPDX-License-Identifier: Apache-2.0
// The fit finds a machine it was shown, and writes all or nothing.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "tests/scenarios/command.h"

using Catch::Matchers::Contains;
using mtsim::test::CommandResult;
using mtsim::test::Folder;

namespace {

constexpr double k_bandwidth = 30, k_rendezvous = 5;

std::string scenario(const std::string& paper) {
  return "name: tiny\ntitle: Two cells\nmachine: mt3000\noperator: gemm\ndtype: f32\nvariant: paper\n"
         "grid: {m: [96, 4096], n: 256, k: 2048}\n" +
         paper;
}

/// tiny.yaml, whose paper is the simulation of another machine.
void write_scenario(const Folder& folder) {
  folder.write("tiny.yaml", scenario(""));
  const CommandResult run = folder.mtsim(
      fmt::format("run tiny.yaml --json - --set ddr.bandwidth_gb_s={} --set dma.broadcast_rendezvous_us={}",
                  k_bandwidth, k_rendezvous));
  REQUIRE(run.exit_code == 0);
  const auto json = run.json();
  std::string paper = "paper:\n  source: another machine\n  latency_ms:\n";
  for (const auto& cell : json.at("cases")) {
    paper += fmt::format("    {}: [{}]\n", cell.at("case").at("m").get<int>(),
                         cell.at("metrics").at("latency_ms").get<double>());
  }
  folder.write("tiny.yaml", scenario(paper));
}

}  // namespace

TEST_CASE("a fit recovers the numbers of the machine that made the values", "[fit]") {
  const Folder folder;
  write_scenario(folder);
  const CommandResult result = folder.mtsim("fit tiny.yaml --json -");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const auto fit = result.json();
  CHECK(fit.at("parameters").at("ddr.bandwidth_gb_s").at("value").get<double>() == Approx(k_bandwidth).epsilon(0.05));
  CHECK(fit.at("parameters").at("dma.broadcast_rendezvous_us").at("value").get<double>() ==
        Approx(k_rendezvous).epsilon(0.05));
}

TEST_CASE("a fit is never worse than the machine's own numbers", "[fit]") {
  const Folder folder;
  write_scenario(folder);
  for (const std::string set : {"--set ddr.bandwidth_gb_s=30 --set dma.broadcast_rendezvous_us=5", ""}) {
    const CommandResult start = folder.mtsim("run tiny.yaml --json - " + set);
    const double before = start.json().at("summary").at("latency_ms").at("mape_percent");
    const double after = folder.mtsim("fit tiny.yaml --json - " + set).json().at("mape_percent");
    INFO(set);
    CHECK(after <= before + 1e-9);
  }
}

TEST_CASE("fit --write refuses before the work what it could not write after it", "[fit]") {
  const Folder folder;
  write_scenario(folder);
  const std::string machine = "extends: mt3000\nname: m\nddr:\n  bandwidth_gb_s: 31\n";
  folder.write("m.yaml", machine);
  for (const char* command :
       {"fit tiny.yaml --write m.yaml", "fit tiny.yaml --write m.yaml --set core.call_cycles=9",
        "fit tiny.yaml --write m.yaml --machine mt3000", "fit tiny.yaml --write m.yaml --json m.yaml"}) {
    INFO(command);
    const CommandResult result = folder.mtsim(command);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, Contains("m.yaml") && !Contains("fitting"));
    CHECK(folder.read("m.yaml") == machine);
    CHECK_FALSE(folder.has("m.fit.json"));
  }
}
