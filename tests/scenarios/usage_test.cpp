// SPDX-License-Identifier: Apache-2.0
// What one gets for typing it right, nearly right, and wrong.
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstdlib>

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
       {"exec", "debug", "import", "check", "fmt", "schedule", "op", "op gemm", "run", "fit", "describe", "report"}) {
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
      {"op gemm --m 010 --n 1 --k 1", "--m: expected an integer, found '010'"},
      {"op gemm --m 0x10 --n 1 --k 1", "write it in decimal, 16; see mtsim op gemm --help"},
      {"op gemm --m 0 --n 1 --k 1", "0 is too small; at least 1"},
      {"op gemm --m 99999999999999999999 --n 1 --k 1", "64 bits"},
      {"op gemm --m 1 --n 1 --k 1 --seed -1", "-1 is too small"},
      {"op gemm --m 1 --n 1 --k 1 --variant best,paper", "'best' and 'paper' exclude each other"},
      {"op gemm --m 1 --n 1 --k 1 --variant small_m,small_m", "exclude each other"},
      {"op gemm --m 1 --n 1 --k 1 --tile mg=6,mg=12", "mg is given twice"},
      {"op gemm --m 1 --n 1 --k 1 --tile mg=6,", "unknown key ''"},
      {"op gemm --m 1 --n 96 --k 4096 --set ddr.bytes=1000", "has 1000 (ddr.bytes)"},
      {"describe --json ''", "--json: is empty"},
      {"schedule k.s ''", "PART: is empty"},
      {"check k.s --entry ''", "--entry: is empty"},
      {"describe --set ddr.memory_model=bandwith", "did you mean 'bandwidth'?"},
      {"check k.s --set ddr.memory_model=foo", "unknown DDR model 'foo'"},
      {"report fidelity", "see mtsim report fidelity --help"},
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

TEST_CASE("a host level this host does not know exits 2 with those it knows", "[usage]") {
  const Folder folder;
  folder.write("run.sh", "MTSIM_HOST_LEVEL=foo " MTSIM_COMMAND " describe >out 2>err\nexit $?\n");
  CHECK(WEXITSTATUS(std::system(("cd " + folder.path(".") + " && sh run.sh").c_str())) == 2);
  CHECK_THAT(folder.read("err"), Contains("MTSIM_HOST_LEVEL=foo") && Contains("baseline") && !Contains("internal"));
}

TEST_CASE("report fidelity says what a wrong file lacks and what makes a right one", "[usage]") {
  const Folder folder;
  folder.write("a.json", "{}");
  CHECK_THAT(folder.mtsim("report fidelity a.json").err, Contains("a.json") && Contains("mtsim run SCENARIO --json"));
  folder.write("a.json", "{\"cases\": []}");
  const CommandResult result = folder.mtsim("report fidelity a.json");
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err,
             Contains("key 'rows' not found") && Contains("mtsim run SCENARIO --json") && !Contains("json.exception"));
}

TEST_CASE("a define that the program has no .equ for is refused", "[usage]") {
  struct Case {
    std::string defines, message;
  };
  const auto [defines, message] = GENERATE(values<Case>({
      {"--define halff=1", "no .equ 'halff'; it has block_bytes, half; did you mean 'half'?"},
      {"--define 1half=1", "no .equ '1half'"},
      {"--define R10=1", "no .equ 'R10'"},
      {"--define VLDW=1", "no .equ 'VLDW'"},
      {"--define half=1 --define half=0", "--define: 'half' is given twice; keep one"},
  }));
  const Folder folder;
  folder.write("equ.inc.s", ".equ half, 0\n");
  folder.write("k.s", ".include \"equ.inc.s\"\n.equ block_bytes, 512\nSBR R63\nSNOP 6\n");
  CHECK(folder.mtsim("check k.s --define half=1 --define block_bytes=256").exit_code == 0);
  for (const std::string command : {"check k.s ", "schedule k.s "}) {
    const CommandResult result = folder.mtsim(command + defines);
    INFO(command << defines << ": " << result.out << result.err);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.out + result.err, Contains(message));
  }
}

TEST_CASE("a size that is not to be had is refused in the user's words", "[usage]") {
  struct Case {
    std::string arguments, message;
  };
  const auto [arguments, message] = GENERATE(values<Case>({
      {"op rope --rows 2 --heads 1 --first 1000003",
       "rope: first = 1000003: sine and cosine are computed for the positions 1 to 131073; with 2 rows first is at "
       "most "
       "131072"},
      {"op rope --rows 24 --heads 100000", "cut it to 0.51 % of its length"},
      {"op gemm --m 6 --n 128 --k 8 --tile k_promote=64",
       "tile 'k_promote=64': k_promote is about FP16 products that are summed in FP16 and added in FP32, and these are "
       "not; known here: mg, kg, k2, n2"},
  }));
  const CommandResult result = Folder().mtsim(arguments);
  INFO(result.err);
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Contains(message));
}

TEST_CASE("a tile longer than what a core has is cut, and says so", "[usage]") {
  CHECK_THAT(Folder().mtsim("op add --m 24 --n 384 --tile elements=1000000000").out,
             Contains("tile elements=384 (all a core has; 1000000000 asked)"));
  CHECK_THAT(Folder().mtsim("op rope --rows 24 --heads 1 --tile rows=2").out,
             Contains("tile rows=1 (all a core has; 2 asked)"));
}
