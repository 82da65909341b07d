// SPDX-License-Identifier: Apache-2.0
// mtsim report: the generated pages.
#include <catch2/catch.hpp>

#include "tests/scenarios/command.h"

using Catch::Matchers::Contains;
using mtsim::test::CommandResult;
using mtsim::test::Folder;

TEST_CASE("report isa lists every instruction with unit, cycles and grade", "[report]") {
  const CommandResult result = Folder().mtsim("report isa");
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.out, Contains("| `VFMULAS32` | VMAC1/2/3 | VRa, VRb, VRc, VRd | 6 | fma_f32 | paper |"));
  CHECK_THAT(result.out, Contains("| `SBR` | SBR | label or R | 7 | branch | published |"));
  CHECK_THAT(result.out, Contains("| `VLDDW` | 256 | 16 |"));
}

TEST_CASE("report fidelity shows paper, simulated and error of each cell, and the fitted numbers", "[report]") {
  const Folder folder;
  folder.write("one.yaml", R"(name: one
title: A table of one cell
machine: mt3000
operator: gemm
dtype: f32
grid: {m: 96, n: 128, k: 256}
paper:
  source: a table
  latency_ms: {96: [0.05]}
notes:
  - {note: the reason}
)");
  REQUIRE(folder.mtsim("run one.yaml --json run.json").exit_code == 0);
  const CommandResult result = folder.mtsim("report fidelity run.json");
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.out, Contains("## A table of one cell"));
  CHECK_THAT(result.out, Contains("0.05 / "));
  CHECK_THAT(result.out, Contains("mean absolute error **"));
  CHECK_THAT(result.out, Contains("all cells: the reason"));
  CHECK_THAT(result.out, Contains("`ddr.bandwidth_gb_s`"));
  CHECK_THAT(result.out, Contains("## Assumed"));
}

TEST_CASE("report fidelity refuses what is no result", "[report]") {
  const Folder folder;
  folder.write("a.json", "{");
  CHECK_THAT(folder.mtsim("report fidelity a.json").err, Contains("a.json: is no JSON"));
  folder.write("b.json", "{\"x\": 1}");
  CHECK_THAT(folder.mtsim("report fidelity b.json").err, Contains("b.json: is no result"));
  folder.write("c.json", "{\"cases\": [{\"case\": 3}]}");
  const CommandResult result = folder.mtsim("report fidelity c.json");
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Contains("c.json: is no complete result"));
}
