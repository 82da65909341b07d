// SPDX-License-Identifier: Apache-2.0
// mtsim regress: measures beside golden files, and limits.
#include <catch2/catch.hpp>

#include <filesystem>

#include "tests/scenarios/command.h"

using Catch::Matchers::Contains;
using mtsim::test::CommandResult;
using mtsim::test::Folder;

namespace {

constexpr const char* k_cases = R"(machine: mt3000
set: {ddr.bandwidth_gb_s: 32}
cases:
  - name: block
    program: add
    entry: add_f32
    arguments: {bytes: 512}
  - name: odd shape
    operator: add
    shape: {m: 7, n: 129}
    dtype: f16
    verify: true
)";

std::string changed_text(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

/// The file with one change.
std::string changed(const std::string& from, const std::string& to) { return changed_text(k_cases, from, to); }

}  // namespace

TEST_CASE("what is as recorded passes; what moved is named, old and new, and fails", "[regress]") {
  const Folder folder;
  folder.write("add.yaml", k_cases);
  CHECK(folder.mtsim("regress add.yaml").exit_code == 1);  // nothing recorded yet
  REQUIRE(folder.mtsim("regress add.yaml --update").exit_code == 0);
  const std::string golden = folder.read("add.golden.yaml");
  CHECK_THAT(golden, Contains("block:\n  cycles: 22\n") && Contains("odd shape:") && Contains("stall.dma_wait: ") &&
                         Contains("am_bytes: ") && Contains("bytes.ddr->am: 3612\n"));
  const CommandResult same = folder.mtsim("regress add.yaml");
  INFO(same.out << same.err);
  CHECK(same.exit_code == 0);
  CHECK_THAT(same.out, Contains("add.yaml: 2 cases, all as recorded"));

  folder.write("add.yaml", changed("bandwidth_gb_s: 32", "bandwidth_gb_s: 1"));
  const auto slower = folder.mtsim("regress add.yaml --json -");
  CHECK(slower.exit_code == 1);
  const auto json = slower.json();
  CHECK(json.at("passed") == false);
  CHECK(json.at("files")[0].at("cases")[0].at("changes").empty());
  const auto& changes = json.at("files")[0].at("cases")[1].at("changes");
  CHECK(changes[0].at("measure") == "cycles");
  CHECK(changes[0].at("delta").get<int>() == changes[0].at("now").get<int>() - changes[0].at("golden").get<int>());
  CHECK(changes[0].at("percent").get<double>() > 0);
  bool waits_longer = false;
  for (const auto& change : changes)
    waits_longer |= change.at("measure") == "stall.dma_wait" && change.at("delta").get<int>() > 0;
  CHECK(waits_longer);
  CHECK_THAT(folder.mtsim("regress .").out, Contains("odd shape\n    cycles ") && Contains(" -> ") && Contains("(+"));
}

TEST_CASE("a tolerance lets times move, a limit holds whatever is recorded", "[regress]") {
  const Folder folder;
  folder.write("add.yaml", k_cases);
  REQUIRE(folder.mtsim("regress add.yaml --update").exit_code == 0);
  folder.write("add.yaml", changed("    verify: true", "    tolerance_percent: 5") + "    at_most: {am_bytes: 1024}\n");
  const CommandResult limit = folder.mtsim("regress add.yaml --set ignored=1");
  CHECK(limit.exit_code == 2);  // regress takes its machine from the file
  const CommandResult broken = folder.mtsim("regress add.yaml --update");
  CHECK(broken.exit_code == 1);
  CHECK_THAT(broken.out, Contains("FAILED: am_bytes is ") && Contains(", at most 1024 wanted"));
  std::string text = changed("    verify: true", "    tolerance_percent: 5");
  text.replace(text.find("32}"), 3, "31.9}");
  folder.write("add.yaml", text);
  const CommandResult near = folder.mtsim("regress add.yaml");
  INFO(near.out);
  CHECK(near.exit_code == 0);
  CHECK_THAT(near.out, Contains("within tolerance"));
}

TEST_CASE("a microkernel outside the library is measured where its file lies", "[regress]") {
  const Folder folder;
  // 1 + 8 n + 7 cycles.
  const std::string kernel =
      ".param n, R10, count\n  SMOV R10, R1\nloop: SSUB.M1 1, R1, R1\n  [R1] SBR loop\n  SNOP 6\n  SBR R63\n  SNOP 6\n";
  std::filesystem::create_directory(folder.path("cases"));
  folder.write("cases/loop.s", kernel);
  folder.write("cases/loop.yaml",
               "machine: mt3000\ncases:\n  - {name: three passes, program: loop.s, arguments: {n: 3}}\n");
  REQUIRE(folder.mtsim("regress cases/loop.yaml --update").exit_code == 0);
  CHECK_THAT(folder.read("cases/loop.golden.yaml"),
             Contains("three passes:\n  cycles: 32\n") && Contains("ii.loop: 8\n"));
  CHECK(folder.mtsim("regress cases/loop.yaml").exit_code == 0);

  folder.write("cases/loop.s", changed_text(kernel, "[R1] SBR loop", "SNOP 1\n  [R1] SBR loop"));
  const CommandResult slower = folder.mtsim("regress cases/loop.yaml");
  CHECK(slower.exit_code == 1);
  CHECK_THAT(slower.out, Contains("cycles 32 -> 35") && Contains("ii.loop 8 -> 9"));

  folder.write("cases/loop.yaml", "machine: mt3000\ncases:\n  - {name: gone, program: none.s}\n");
  const CommandResult gone = folder.mtsim("regress cases/loop.yaml");
  CHECK(gone.exit_code == 2);
  CHECK_THAT(gone.err, Contains("cases/loop.yaml:3:") && Contains("none.s"));
}

TEST_CASE("a limit on what is not measured is no reason to rewrite golden files", "[regress]") {
  const Folder folder;
  folder.write("add.yaml", k_cases);
  REQUIRE(folder.mtsim("regress add.yaml --update").exit_code == 0);
  folder.write("add.yaml", changed("arguments: {bytes: 512}", "arguments: {bytes: 512}\n    at_most: {cycls: 40}"));
  const CommandResult result = folder.mtsim("regress add.yaml");
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.out,
             Contains("cycls: not measured here, at most 40 wanted; did you mean 'cycles'?") && !Contains("--update"));
  folder.write("add.yaml", changed("bytes: 512", "bytes: 1024"));
  CHECK_THAT(folder.mtsim("regress add.yaml").out, Contains("mtsim regress --update"));
}

TEST_CASE("every mistake of a case file is listed with its place", "[regress]") {
  struct Case {
    std::string from, to, message;
  };
  const auto [from, to, message] = GENERATE(values<Case>({
      {"program: add", "program: ad",
       "add.yaml:5:14: error: 'cases[0].program': no microkernel 'ad'; did you mean 'add'?"},
      {"entry: add_f32", "entry: add_f23", "add_f23"},
      {"{bytes: 512}", "{bytes: 512}\n    defines: {FP16: 1}", "no .equ 'FP16'; it has none; leave the define out"},
      {"{bytes: 512}", "{bytes: 1000000000}",
       "add reaches 1000000000 bytes from 'x', AM has 786432; use smaller counts (bytes=1000000000)"},
      {"{bytes: 512}", "{bytes: 0}", "add did not end in 100000000 cycles"},
      {"{bytes: 512}", "{byts: 512}", "add.yaml:7:17: error: 'cases[0].arguments': add has no .param 'byts'"},
      {"operator: add", "operator: sub", "add.yaml:9:15: error: 'cases[1].operator': unknown operator 'sub'"},
      {"n: 129", "k: 129", "n"},
      {"n: 129", "n: 0", "at least 1"},
      {"dtype: f16", "dtype: f8", "unknown dtype 'f8'"},
      {"verify: true", "verify: maybe", "maybe"},
      {"name: odd shape", "name: block", "two cases are called 'block'"},
      {"    operator: add\n", "", "give it either 'program' or 'operator'"},
      {"machine: mt3000", "machine: mt4000", "add.yaml:1:10"},
      {"ddr.bandwidth_gb_s", "ddr.bandwith_gb_s", "did you mean 'ddr.bandwidth_gb_s'?"},
      {"cases:", "case:", "did you mean"},
  }));
  INFO(to);
  const Folder folder;
  folder.write("add.yaml", changed(from, to));
  const CommandResult result = folder.mtsim("regress add.yaml");
  INFO(result.err);
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Contains("add.yaml:") && Contains(message));
}

TEST_CASE("a golden case the file no longer has is a mistake until it is updated", "[regress]") {
  const Folder folder;
  folder.write("add.yaml", k_cases);
  REQUIRE(folder.mtsim("regress add.yaml --update").exit_code == 0);
  folder.write("add.yaml", changed("name: block", "name: blocks"));
  const CommandResult stale = folder.mtsim("regress add.yaml");
  CHECK(stale.exit_code == 2);
  CHECK_THAT(stale.err, Contains("add.golden.yaml:3:1: error: add.yaml has no case 'block'"));
  CHECK(folder.mtsim("regress add.yaml --update").exit_code == 0);
  CHECK(folder.mtsim("regress add.yaml").exit_code == 0);
  CHECK(folder.mtsim("regress none").exit_code == 2);
}
