// SPDX-License-Identifier: Apache-2.0
// The reviewed file: what an entry meets, and what is refused.
#include "sim/suppression.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "sim/config/yaml.h"

using namespace mtsim::sim;

namespace {

struct File {
  std::string path = std::filesystem::temp_directory_path() / ("mtsim_suppression_" + std::to_string(::getpid()));
  explicit File(const std::string& text) { std::ofstream(path) << text; }
  ~File() { std::remove(path.c_str()); }
};

Suppressions loaded(const std::string& text) { return Suppressions::load(File(text).path); }

LaunchResult with_finding() {
  Finding finding;
  finding.kind = "overwrite-in-use";
  FindingEnd first, second;
  first.file = "gemm/gemm.cpp";
  first.line = 12;
  first.function = "void run(Dsp&)";
  first.buffer = "reads am[0]+0x100 (64 bytes)";
  second.file = "gemm/other.cpp";
  second.line = 7;
  second.buffer = "writes am[0]+0x100 (64 bytes)";
  finding.ends = {first, second};
  LaunchResult result;
  result.findings = {finding};
  return result;
}

bool meets(const std::string& entry) {
  Suppressions suppressions = loaded("suppressions:\n  - {reason: looked at, " + entry + "}\n");
  LaunchResult result = with_finding();
  suppressions.apply(result);
  CHECK(result.findings.size() + result.suppressed.size() == 1);
  CHECK(suppressions.unused().size() == result.findings.size());
  if (!result.suppressed.empty()) CHECK(result.suppressed[0].reason == "looked at");
  return result.findings.empty();
}

}  // namespace

TEST_CASE("an entry meets a finding by kind, source and buffer", "[suppression]") {
  CHECK(meets("kind: overwrite-in-use, source: gemm/gemm.cpp"));
  CHECK(meets("kind: overwrite-in-use, source: gemm.cpp"));
  CHECK(meets("kind: overwrite-in-use, source: 'gemm.cpp:12'"));
  CHECK(meets("kind: overwrite-in-use, source: 'void run(*'"));
  CHECK(meets("kind: overwrite-in-use, source: other.cpp, buffer: 'writes am*'"));
  CHECK_FALSE(meets("kind: overwrite-in-use, source: 'gemm.cpp:13'"));
  CHECK_FALSE(meets("kind: overwrite-in-use, source: other.cpp, buffer: 'reads*'"));
  CHECK_FALSE(meets("kind: unordered-writes, source: gemm.cpp"));
}

TEST_CASE("a star stands for any text", "[suppression]") {
  CHECK(matches_pattern("a*c*", "abcd"));
  CHECK(matches_pattern("*", ""));
  CHECK(matches_pattern("a*b*b", "ab bb"));
  CHECK(matches_pattern("a\\*", "a*"));
  CHECK_FALSE(matches_pattern("a\\*", "ab"));
  CHECK_FALSE(matches_pattern("a*c", "abcd"));
  CHECK_FALSE(matches_pattern("", "a"));
}

TEST_CASE("an entry that met nothing says where it stands", "[suppression]") {
  Suppressions suppressions = loaded("suppressions:\n  - kind: never-written\n    source: a.cpp\n    reason: r\n");
  REQUIRE(suppressions.unused().size() == 1);
  CHECK_THAT(suppressions.unused()[0], Catch::Contains(":2:") && Catch::Contains("no never-written at a.cpp"));
}

TEST_CASE("an entry without a reason, an unknown kind or key is refused with its place", "[suppression]") {
  CHECK_THROWS_WITH(loaded("suppressions:\n  - {kind: never-written, source: a.cpp}\n"), Catch::Contains("reason"));
  CHECK_THROWS_WITH(loaded("suppressions:\n  - {kind: never-written, source: a.cpp, reason: ''}\n"),
                    Catch::Contains("empty reason"));
  CHECK_THROWS_WITH(loaded("suppressions:\n  - {kind: never-writen, source: a.cpp, reason: r}\n"),
                    Catch::Contains("'never-writen'") && Catch::Contains("never-written"));
  CHECK_THROWS_WITH(loaded("suppressions:\n  - {kind: never-written, source: a.cpp, reason: r, bufer: x}\n"),
                    Catch::Contains("bufer"));
  CHECK_THROWS_AS(loaded("suppressions: 5\n"), ConfigError);
  CHECK_THROWS_AS(loaded("a: 5\n"), ConfigError);
}
