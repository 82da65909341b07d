// SPDX-License-Identifier: Apache-2.0
// What one gets for typing it right, nearly right, and wrong.
#include <catch2/catch.hpp>

#include "tests/scenarios/command.h"

using Catch::Matchers::Contains;
using mtsim::test::CommandResult;
using mtsim::test::Folder;

TEST_CASE("without arguments the command prints its help", "[usage]") {
  const CommandResult result = Folder().mtsim("");
  CHECK(result.exit_code == 0);
  for (const char* word : {"Usage:", "exec", "import", "schedule", "describe", "Examples:"})
    CHECK_THAT(result.out, Contains(word));
  CHECK(result.err.empty());
}

TEST_CASE("every subcommand has help with an example", "[usage]") {
  const Folder folder;
  for (const std::string name :
       {"exec", "import", "check", "fmt", "schedule", "op", "op gemm", "run", "fit", "describe", "report"}) {
    INFO(name);
    const CommandResult result = folder.mtsim(name + " --help");
    CHECK(result.exit_code == 0);
    CHECK_THAT(result.out, Contains("Usage:"));
    CHECK_THAT(result.out, Contains("\n  mtsim " + name.substr(0, name.find(' '))));
  }
}

TEST_CASE("--version prints name and version", "[usage]") {
  const CommandResult result = Folder().mtsim("--version");
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out, Catch::Matchers::Matches("mtsim [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST_CASE("a misspelt command, option or word too many exits 2 with the near one", "[usage]") {
  struct Case {
    std::string arguments;
    std::string message;
  };
  const auto [arguments, message] = GENERATE(values<Case>({
      {"exce k.yaml", "unknown command 'exce'; did you mean 'exec'?"},
      {"op gem --m 1", "unknown command 'gem'; did you mean 'gemm'?"},
      {"exec k.yaml --anotate", "unknown option '--anotate' of 'exec'; did you mean '--annotate'?"},
      {"op gemm --m 1 --n 1 --k 1 --verfy", "did you mean '--verify'?"},
      {"op gemm --n 1 --k 1", "--m is required"},
      {"op gemm --m two --n 1 --k 1", "--m"},
      {"exec", "SPEC is required"},
      {"exec a.yaml b.yaml", "'b.yaml' is one word too many for 'exec'"},
      {"--json - fmt k.s", "'fmt' has no option --json"},
      {"describe --json no/such/folder/x.json", "there is no folder 'no/such/folder'"},
      {"op gemm --m 1 --n 1 --k 1 --set x", "key=value"},
  }));
  INFO(arguments);
  const CommandResult result = Folder().mtsim(arguments);
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  CHECK_THAT(result.err, Contains(message));
}

TEST_CASE("common options stand in front of the subcommand or behind it", "[usage]") {
  const Folder folder;
  const CommandResult behind = folder.mtsim("describe --json -");
  const CommandResult front = folder.mtsim("--json - describe");
  CHECK(behind.exit_code == 0);
  CHECK(front.out == behind.out);
  CHECK(behind.json().at("name") == "mt3000");
}

TEST_CASE("describe shows the source of every number and what was overridden", "[usage]") {
  const Folder folder;
  const auto numbers = folder.mtsim("describe --set ddr.bandwidth_gb_s=60 --json -").json().at("numbers");
  CHECK(numbers.at("ddr.bandwidth_gb_s").at("value") == 60);
  CHECK(numbers.at("ddr.bandwidth_gb_s").at("unit") == "GB/s");
  CHECK(numbers.at("ddr.bandwidth_gb_s").at("overridden") == true);
  CHECK(numbers.at("cluster.cores").at("provenance") == "paper");
  for (const auto& [key, number] : numbers.items()) {
    INFO(key);
    CHECK(number.at("source").get<std::string>().size() > 10);
  }
  const CommandResult text = folder.mtsim("describe");
  CHECK_THAT(text.out, Contains("cluster.gsm_bytes"));
  CHECK_THAT(text.out, Contains("plausible"));
}
