// SPDX-License-Identifier: Apache-2.0
// What a command writes is complete or not there, and never lies over what it reads.
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "tests/scenarios/command.h"

using Catch::Matchers::Contains;
using mtsim::test::CommandResult;
using mtsim::test::Folder;

namespace {

constexpr const char* k_endless = "loop: SBR loop\nSNOP 6\n";
constexpr const char* k_return = "SBR R63\nSNOP 6\n";

/// A small size limit stands for a full disk: the shell's file blocks are 512 bytes.
CommandResult with_little_space(const Folder& folder, const std::string& arguments) {
  folder.write("limited.sh", "ulimit -f 1\ntrap '' XFSZ\nexec " MTSIM_COMMAND " " + arguments + "\n");
  const int status = std::system(("cd " + folder.path(".") + " && sh limited.sh >/dev/null 2>command.err").c_str());
  return {WEXITSTATUS(status), "", folder.read("command.err")};
}

}  // namespace

TEST_CASE("an output that does not fit leaves the old file and nothing else", "[output]") {
  const Folder folder;
  folder.write("k.s", k_return);
  folder.write("old.json", "old");
  folder.write("old.bin", "old");
  folder.write("k.yaml", "program: k.s\ndump:\n  - {space: am, address: 0, bytes: 65536, file: old.bin}\n");
  const auto files = [&] {
    return std::distance(std::filesystem::directory_iterator(folder.path(".")), std::filesystem::directory_iterator());
  };
  folder.write("limited.sh", "");
  folder.write("command.err", "");
  const auto before = files();
  for (const char* command : {"describe --json old.json", "exec k.yaml"}) {
    const CommandResult result = with_little_space(folder, command);
    INFO(command << ": " << result.err);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, Contains("old.") && Contains("cannot be written"));
  }
  CHECK(folder.read("old.json") == "old");
  CHECK(folder.read("old.bin") == "old");
  CHECK(files() == before);
}

TEST_CASE("a replaced file keeps its mode, and a link stays a link", "[output]") {
  namespace fs = std::filesystem;
  const Folder folder;
  folder.write("real.json", "old");
  fs::permissions(folder.path("real.json"), fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("real.json", folder.path("link.json"));
  REQUIRE(folder.mtsim("describe --json link.json").exit_code == 0);
  CHECK(fs::is_symlink(folder.path("link.json")));
  CHECK(nlohmann::json::parse(folder.read("real.json")).at("name") == "mt3000");
  CHECK(fs::status(folder.path("real.json")).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(folder.mtsim("describe --json /dev/null").exit_code == 0);
}

TEST_CASE("a full stdout or stderr is an error, not a crash", "[output]") {
  const Folder folder;
  folder.write("k.s", k_return);
  for (const char* command : {"--help", "--version", "describe", "fmt k.s", "report isa", "describe --json -"}) {
    INFO(command);
    folder.write("run.sh", std::string(MTSIM_COMMAND " ") + command + " >/dev/full 2>message\nexit $?\n");
    const int status = std::system(("cd " + folder.path(".") + " && sh run.sh").c_str());
    CHECK(WEXITSTATUS(status) == 2);
    CHECK_THAT(folder.read("message"), Contains("stdout") || Contains("write"));
    CHECK_THAT(folder.read("message"), !Contains("internal error"));
  }
  CHECK(WEXITSTATUS(std::system(MTSIM_COMMAND " exce 2>/dev/full")) == 2);
}

TEST_CASE("no output may overwrite an input or another output", "[output]") {
  const Folder folder;
  folder.write("k.s", k_return);
  folder.write("a.bin", "abcd");
  folder.write("m.yaml", "extends: mt3000\nname: m\n");
  const std::string memory = "program: k.s\nmemory:\n  - {space: sm, address: 0, file: a.bin}\ndump:\n";
  const auto dump = [](const std::string& file) {
    return "  - {space: sm, address: 0, bytes: 4, file: " + file + "}\n";
  };
  for (const std::string file : {"a.bin", "k.s", "k.yaml", "./a.bin", "m.yaml"}) {
    INFO(file);
    folder.write("k.yaml", memory + dump(file));
    const CommandResult result = folder.mtsim("exec k.yaml --machine m.yaml");
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, Contains("overwrite") && Contains("k.yaml"));
  }
  folder.write("k.yaml", memory + dump("o.bin") + dump("./o.bin"));
  CHECK_THAT(folder.mtsim("exec k.yaml").err, Contains("k.yaml:6:") && Contains("would overwrite what k.yaml:5:"));
  folder.write("k.yaml", memory + dump("o.bin"));
  for (const char* command :
       {"exec k.yaml --json k.s", "exec k.yaml --json a.bin", "exec k.yaml --json o.bin", "exec k.yaml --json k.yaml",
        "check k.s --json k.s", "schedule k.s --json k.s", "describe m.yaml --json m.yaml"}) {
    INFO(command);
    const CommandResult result = folder.mtsim(command);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, Contains("would overwrite"));
  }
  CHECK(folder.read("k.s") == k_return);
  CHECK(folder.read("a.bin") == "abcd");
  CHECK_FALSE(folder.has("o.bin"));
  REQUIRE(folder.mtsim("exec k.yaml --json result.json").exit_code == 0);
  CHECK(folder.read("o.bin") == "abcd");
}

TEST_CASE("import does not overwrite its source", "[output]") {
  const Folder folder;
  const std::string source = "void f(void) { asm volatile(\"SBR R63\\n\\tSNOP 6\\n\\t\" : : : ); }\n";
  folder.write("f.s", source);
  const CommandResult result = folder.mtsim("import f.s -o .");
  INFO(result.err);
  CHECK(result.exit_code == 2);
  CHECK(folder.read("f.s") == source);
}

TEST_CASE("names that are no UTF-8 do not break the JSON", "[output]") {
  const Folder folder;
  folder.write("k\xff.s", k_return);
  const CommandResult result = folder.mtsim("check k\xff.s --json -");
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.json().at("file").get<std::string>(), Contains("\xEF\xBF\xBD"));
}

TEST_CASE("a runaway program is a fault with its place", "[output]") {
  const Folder folder;
  folder.write("k.s", k_endless);
  folder.write("k.yaml", "program: k.s\nmax_cycles: 100\n");
  const CommandResult result = folder.mtsim("exec k.yaml --json result.json");
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.out, Contains("fault: "));
  const auto json = nlohmann::json::parse(folder.read("result.json"));
  CHECK(json.at("status") == "max_cycles");
  CHECK(json.at("fault").at("kind") == "runaway");
  CHECK_FALSE(json.at("fault").at("packet").get<std::string>().empty());
}

TEST_CASE("a result names the kernels that were called and no others", "[output]") {
  const Folder folder;
  const auto called = [&](const std::string& shape) {
    return folder.mtsim("op gemm --json - " + shape).json().at("kernels").at("programs");
  };
  const auto whole = called("--m 144 --n 128 --k 256"), padded = called("--m 144 --n 100 --k 255");
  CHECK(whole.size() == 1);
  CHECK(whole.at("gemm_f32_6x128").get<int>() > 0);
  CHECK(padded.size() > 1);
}

TEST_CASE("every result says what is not modelled", "[output]") {
  const Folder folder;
  folder.write("k.s", k_return);
  folder.write("k.yaml", "program: k.s\n");
  folder.write("s.yaml",
               "name: s\ntitle: s\nmachine: mt3000\noperator: gemm\ndtype: f32\ngrid: {m: 96, n: 128, k: 256}\n");
  for (const std::string command : {"exec k.yaml", "op gemm --m 6 --n 128 --k 4", "run s.yaml"}) {
    INFO(command);
    CHECK_THAT(folder.mtsim(command + " --json -").json().at("notes").dump(), Contains("not modelled: L1 caches"));
    CHECK_THAT(folder.mtsim(command).out, Contains("note: not modelled: L1 caches"));
  }
}
