// SPDX-License-Identifier: Apache-2.0
// No output destroys what a run reads or writes otherwise, however it is named; a run that is killed leaves nothing.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <map>
#include <thread>

#include "tests/scenarios/command.h"

using Catch::Matchers::Contains;
using mtsim::test::CommandResult;
using mtsim::test::Folder;

namespace {

namespace fs = std::filesystem;

constexpr const char* k_return = "SBR R63\nSNOP 6\n";
const std::string k_add = "op add --m 3 --n 3 ";
/// Many seconds of work.
const std::string k_long = "op gemm --m 2880 --n 2048 --k 2048 --depth functional ";

std::map<std::string, std::string> all_files(const Folder& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder.path("."))) {
    const std::string name = entry.path().filename();
    if (entry.is_regular_file() && !name.starts_with("command.") && name != "memo.json")
      files[name] = folder.read(name);
  }
  return files;
}

bool has_temporary(const Folder& folder) {
  const auto files = all_files(folder);
  return std::any_of(files.begin(), files.end(), [](const auto& file) { return file.first.ends_with(".tmp"); });
}

/// Waits up to half a minute.
bool happens(const std::function<bool()>& condition) {
  for (int i = 0; i < 3000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

/// `mtsim ARGUMENTS` in the background.
pid_t start(const Folder& folder, const std::string& arguments) {
  const std::string line =
      "cd " + folder.path(".") + " && MTSIM_MEMO=off exec " MTSIM_COMMAND " " + arguments + " >/dev/null 2>&1";
  const pid_t pid = ::fork();
  if (pid == 0) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP})
      std::signal(signal, SIG_DFL);  // a shell's background ignores some
    ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    ::_exit(127);
  }
  return pid;
}

/// The signal that ended it, 0 when it ended by itself.
int ended_by(pid_t pid) {
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

std::vector<pid_t> children_of(pid_t pid) {
  std::ifstream list("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; list >> child;) children.push_back(child);
  return children;
}

/// Gone, or a zombie that nobody has asked for.
bool is_over(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(stat, text)) return true;
  return text.substr(text.rfind(')') + 2, 1) == "Z";
}

}  // namespace

TEST_CASE("no output replaces an input, named or taken in on the way, nor another output", "[files]") {
  const Folder folder;
  folder.write("sup.yaml", "suppressions:\n  - {kind: never-written, source: gemm.cpp, reason: looked at}\n");
  folder.write("mine.yaml", "extends: mt3000\nname: mine\n");
  folder.write("m2.yaml", "extends: mine.yaml\nname: m2\n");
  folder.write("sc.s", k_return);
  folder.write("inc.s", ".include \"sc.s\"\n");
  folder.write("k.yaml", "program: inc.s\ndump:\n  - {space: am, address: 0, bytes: 4, file: sc.s}\n");
  folder.write("r1.yaml",
               "machine: mine.yaml\ncases:\n  - {name: a, program: add, entry: add_f32, arguments: {bytes: 512}}\n");
  folder.write("grid.yaml", "name: s\ntitle: s\nmachine: mine.yaml\noperator: add\ndtype: f32\ngrid: {m: 3, n: 3}\n");
  fs::create_symlink("mine.yaml", folder.path("link.yaml"));
  fs::create_hard_link(folder.path("mine.yaml"), folder.path("hard.yaml"));
  fs::create_directory(folder.path("sub"));
  REQUIRE(folder.mtsim("regress r1.yaml --update").exit_code == 0);
  const auto before = all_files(folder);
  for (const std::string& command : {
           k_add + "--suppress sup.yaml --trace sup.yaml",
           k_add + "--suppress sup.yaml --dram-trace sup.yaml",
           k_add + "--suppress sup.yaml --json sup.yaml",
           k_add + "--machine mine.yaml --trace mine.yaml",
           k_add + "--machine mine.yaml --dram-trace mine.yaml",
           k_add + "--machine mine.yaml --trace link.yaml",
           k_add + "--machine link.yaml --trace mine.yaml",
           k_add + "--machine mine.yaml --trace hard.yaml",
           k_add + "--machine mine.yaml --trace sub/../mine.yaml",
           k_add + "--machine m2.yaml --trace mine.yaml",
           k_add + "--trace t.json --dram-trace t.json",
           k_add + "--trace t.json --json ./t.json",
           k_add + "--dram-trace sub/t --json sub/../sub/t",
           k_add + "--json memo.json",  // what the command remembers in MTSIM_MEMO
           std::string("schedule --reschedule sc.s -o mine.yaml --machine mine.yaml"),
           std::string("schedule --reschedule inc.s -o sc.s"),
           std::string("schedule --reschedule sc.s -o sc.s"),
           std::string("schedule --reschedule sc.s -o o.s --json o.s"),
           std::string("check inc.s --json sc.s"),
           std::string("exec k.yaml"),
           std::string("describe --machine m2.yaml --json mine.yaml"),
           std::string("describe m2.yaml --json link.yaml"),
           std::string("regress r1.yaml --json r1.golden.yaml"),
           std::string("regress r1.yaml --update --json r1.golden.yaml"),
           std::string("regress r1.yaml --json mine.yaml"),
           std::string("run grid.yaml --json mine.yaml"),
       }) {
    INFO(command);
    const CommandResult result = folder.mtsim(command);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, Contains("would overwrite") && Contains("name another file"));
  }
  CHECK((all_files(folder) == before));
  CHECK_FALSE(has_temporary(folder));
  // What is written back is meant to be.
  CHECK(folder.mtsim("fmt -i inc.s sc.s").exit_code == 0);
  CHECK(folder.mtsim("check sc.s --json /dev/null").exit_code == 0);
  CHECK(folder.mtsim(k_add + "--machine m2.yaml --trace t.json --dram-trace d.csv --json j.json").exit_code == 0);
}

TEST_CASE("an import to one file twice, or over another output, is refused before anything is written", "[files]") {
  const Folder folder;
  const std::string source =
      "void f(void) { asm volatile(\"SBR R63\\n\\tSNOP 6\\n\\t\" : : : ); }\n"
      "void g(void) { asm volatile(\"SBR R63\\n\\tSNOP 6\\n\\t\" : : : ); }\n";
  folder.write("g.s", source);
  const CommandResult result = folder.mtsim("import g.s -o .");
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Contains("would overwrite 'g.s', which this run reads"));
  CHECK(folder.read("g.s") == source);
  CHECK_FALSE(folder.has("f.s"));
  fs::create_directory(folder.path("out"));
  CHECK_THAT(folder.mtsim("import g.s -o out --json out/f.s").err, Contains("would overwrite what --json writes"));
  CHECK_FALSE(folder.has("out/g.s"));
}

TEST_CASE("what cannot be written is said at once, with the reason and what to do", "[files]") {
  const Folder folder;
  REQUIRE(::mkfifo(folder.path("fifo").c_str(), 0600) == 0);
  struct Case {
    std::string file, message;
  };
  const auto [file, message] = GENERATE(values<Case>({
      {"/nonexist/x.json", "/nonexist/x.json: cannot be written: there is no folder '/nonexist'; make it first"},
      {"/tmp", "'/tmp': is no file name; name a file to write"},
      {"-", "does not go to stdout; name a file to write"},
      {"fifo", "fifo: cannot be written: nobody reads this pipe; start its reader first, or name a file"},
  }));
  for (const std::string option : {"--trace ", "--dram-trace "}) {
    const CommandResult result = folder.mtsim(k_add + option + file);
    INFO(option << file << ": " << result.err);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, Contains(message));
    CHECK(result.out.empty());
  }
  CHECK_FALSE(folder.has("-"));
}

TEST_CASE("a named pipe is no input", "[files]") {
  const Folder folder;
  REQUIRE(::mkfifo(folder.path("fifo").c_str(), 0600) == 0);
  for (const std::string& command :
       {k_add + "--suppress fifo", k_add + "--machine ./fifo", std::string("check fifo")}) {
    INFO(command);
    const CommandResult result = folder.mtsim(command);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.out + result.err, Contains("it is a named pipe; name a file"));
  }
}

TEST_CASE("a full disk costs the trace, not the numbers of the run", "[files]") {
  const CommandResult result = Folder().mtsim(k_add + "--trace /dev/full");
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.out, Contains("cycles"));
  CHECK_THAT(result.err, Contains("/dev/full: cannot be written: No space left on device"));
}

TEST_CASE("a run that is killed removes what it has half written", "[files]") {
  const Folder folder;
  const int signal = GENERATE(SIGINT, SIGTERM, SIGHUP);
  const pid_t run = start(folder, k_long + "--trace t.json");
  REQUIRE(happens([&] { return has_temporary(folder); }));
  REQUIRE(::kill(run, signal) == 0);
  CHECK(ended_by(run) == signal);
  CHECK_FALSE(has_temporary(folder));
  CHECK_FALSE(folder.has("t.json"));
}

TEST_CASE("the next run removes what kill -9 left, and nothing else", "[files]") {
  const Folder folder;
  const pid_t run = start(folder, k_long + "--trace t.json");
  REQUIRE(happens([&] { return has_temporary(folder); }));
  REQUIRE(::kill(run, SIGKILL) == 0);
  CHECK(ended_by(run) == SIGKILL);
  REQUIRE(has_temporary(folder));
  const std::string of_this_process = "t.json." + std::to_string(::getpid()) + ".tmp";
  for (const std::string& name : {of_this_process, std::string("t.json.x.tmp"), std::string("u.json.999999999.tmp")})
    folder.write(name, "kept");
  CHECK(folder.mtsim(k_add + "--trace t.json").exit_code == 0);
  CHECK_FALSE(folder.has("t.json." + std::to_string(run) + ".tmp"));
  for (const std::string& name : {of_this_process, std::string("t.json.x.tmp"), std::string("u.json.999999999.tmp")})
    CHECK(folder.has(name));
}

TEST_CASE("the workers of a regress end with it, however it ends", "[files]") {
  const Folder folder;
  folder.write("slow.yaml",
               "machine: mt3000\ncases:\n  - name: slow\n    operator: gemm\n    shape: {m: 2880, n: 2048, k: 2048}\n"
               "    verify: true\n");
  const int signal = GENERATE(SIGKILL, SIGTERM);
  const pid_t run = start(folder, "regress slow.yaml --update");
  std::vector<pid_t> workers;
  REQUIRE(happens([&] { return !(workers = children_of(run)).empty(); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // it works
  REQUIRE_FALSE(is_over(workers[0]));
  REQUIRE(::kill(run, signal) == 0);
  CHECK(ended_by(run) == signal);
  CHECK(happens([&] { return is_over(workers[0]); }));
  CHECK_FALSE(folder.has("slow.golden.yaml"));
}
