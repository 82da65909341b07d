// SPDX-License-Identifier: Apache-2.0
// Profiles that outlive the process, in a file.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "isa/assembler.h"
#include "sim/memo.h"
#include "zone_bench.h"

using namespace mtsim;
using namespace mtsim::sim;

namespace {

namespace fs = std::filesystem;

/// A folder that goes with its object.
class Folder {
 public:
  Folder() : m_path(fs::temp_directory_path() / ("mtsim_memo_" + std::to_string(::getpid()))) {
    fs::remove_all(m_path);
  }
  ~Folder() { fs::remove_all(m_path); }
  std::string memo() const { return (m_path / "new" / "memo.json").string(); }

 private:
  fs::path m_path;
};

const std::vector<std::uint64_t> k_five{0, 0, 0, 5}, k_six{0, 0, 0, 6};

KernelProfile profile_in(KernelMemo& memo, const std::string& text, const std::vector<std::uint64_t>& arguments) {
  const Kernel kernel = memo.load(isa::assemble(text, "bench.s"), "");
  return memo.profile(memo.record(kernel), arguments, 1'000'000, true);
}
/// As a process with this memo file would have it.
KernelProfile profile_with(const std::string& file, const std::string& text,
                           const std::vector<std::uint64_t>& arguments, const isa::Pipeline& pipeline = {}) {
  KernelMemo memo(pipeline, file);
  return profile_in(memo, text, arguments);
}

/// Runs `body` in another process.
template <class Body>
void in_child(Body body) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    try {
      body();
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
}

std::string contents(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}
void put(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

/// Makes the file say that copying with `arguments` takes `cycles`, which nobody would work out.
void plant(const std::string& file, const std::vector<std::uint64_t>& arguments, std::int64_t cycles) {
  KernelProfile profile = profile_with("", k_copy_kernel, arguments);
  profile.result.cycles = cycles;
  MemoFile(file).add(profile_key(isa::assemble(k_copy_kernel, "bench.s"), {}, "", arguments), profile);
}

void check_same(const KernelProfile& a, const KernelProfile& b) {
  CHECK(a.result.cycles == b.result.cycles);
  CHECK(a.result.packets == b.result.packets);
  CHECK(a.result.idles == b.result.idles);
  CHECK(a.result.instructions == b.result.instructions);
  CHECK(a.result.units == b.result.units);
  REQUIRE(a.pointers.size() == b.pointers.size());
  for (std::size_t i = 0; i < a.pointers.size(); ++i) {
    const auto &p = a.pointers[i], &q = b.pointers[i];
    CHECK(std::vector{p.read.lo, p.read.hi, p.write.lo, p.write.hi, p.alignment} ==
          std::vector{q.read.lo, q.read.hi, q.write.lo, q.write.hi, q.alignment});
  }
}

}  // namespace

TEST_CASE("a second process has the same profile, from the file of the first", "[memo]") {
  const Folder folder;
  in_child([&] { profile_with(folder.memo(), k_copy_kernel, k_five); });
  REQUIRE(fs::exists(folder.memo()));
  const auto written = fs::last_write_time(folder.memo());
  const KernelProfile fresh = profile_with("", k_copy_kernel, k_five);
  CHECK(fresh.result.cycles == copy_cycles(5));
  check_same(profile_with(folder.memo(), k_copy_kernel, k_five), fresh);
  CHECK(fs::last_write_time(folder.memo()) == written);  // nothing new was learnt
}

TEST_CASE("a profile in the file is not worked out again", "[memo]") {
  const Folder folder;
  plant(folder.memo(), k_five, 1234);
  CHECK(profile_with(folder.memo(), k_copy_kernel, k_five).result.cycles == 1234);
}

TEST_CASE("a profile of another program, machine or count is not used", "[memo]") {
  const Folder folder;
  plant(folder.memo(), k_five, 1234);
  std::string longer = k_copy_kernel;
  longer.replace(longer.rfind("SNOP 6"), 6, "SNOP 7");
  CHECK(profile_with(folder.memo(), longer, k_five).result.cycles == copy_cycles(5));  // the return cuts the idle
  CHECK(profile_with(folder.memo(), k_copy_kernel, k_six).result.cycles == copy_cycles(6));
  isa::Pipeline pipeline;
  pipeline.override(isa::Mnemonic::VLDW, 8);
  CHECK(profile_with(folder.memo(), k_copy_kernel, k_five, pipeline).result.cycles == copy_cycles(5));
}

TEST_CASE("a damaged file is survived and replaced", "[memo]") {
  const Folder folder;
  plant(folder.memo(), k_five, 1234);
  const std::string good = contents(folder.memo());
  std::string flipped = good;
  flipped.replace(flipped.find("1234"), 4, "1235");
  const std::string damaged =
      GENERATE_COPY(good.substr(0, good.size() / 2), flipped, std::string(), std::string(4096, '\0'));
  put(folder.memo(), damaged);
  CHECK(profile_with(folder.memo(), k_copy_kernel, k_five).result.cycles == copy_cycles(5));
  CHECK(contents(folder.memo()).size() > good.size() / 2);
  CHECK(contents(folder.memo()) != damaged);
  CHECK(profile_with(folder.memo(), k_copy_kernel, k_five).result.cycles == copy_cycles(5));
}

TEST_CASE("a file that is no memo stays as it is", "[memo]") {
  const Folder folder;
  const std::string other = GENERATE("[]", "{\"format\": 1}", "precious\n");
  plant(folder.memo(), k_five, 1234);
  put(folder.memo(), other);
  CHECK(profile_with(folder.memo(), k_copy_kernel, k_five).result.cycles == copy_cycles(5));
  CHECK(contents(folder.memo()) == other);
}

TEST_CASE("a file of another instruction table or format is not used", "[memo]") {
  const Folder folder;
  plant(folder.memo(), k_five, 1234);
  std::string other = contents(folder.memo());
  const auto [name, value] =
      GENERATE(table<std::string, std::string>({{"\"instructions\":\"", "0"}, {"\"format\":", "9"}}));
  const std::size_t at = other.find(name) + name.size();
  other.replace(at, 1, other[at] == value[0] ? "1" : value);
  put(folder.memo(), other);
  CHECK(profile_with(folder.memo(), k_copy_kernel, k_five).result.cycles == copy_cycles(5));
}

TEST_CASE("processes that learn at the same time lose nothing", "[memo]") {
  const Folder folder;
  {
    KernelMemo early({}, folder.memo());
    profile_in(early, k_copy_kernel, k_six);  // read the file, which is not there
    in_child([&] { plant(folder.memo(), k_five, 1234); });
  }
  CHECK(profile_with(folder.memo(), k_copy_kernel, k_five).result.cycles == 1234);
  const auto entries = fs::directory_iterator(fs::path(folder.memo()).parent_path());
  CHECK(std::distance(begin(entries), end(entries)) == 1);  // no temporary file stays
}

TEST_CASE("the memo file is bounded", "[memo]") {
  const Folder folder;
  const KernelProfile profile = profile_with("", k_copy_kernel, k_five);
  for (int round = 0; round < 2; ++round) {
    MemoFile file(folder.memo());
    for (std::size_t i = 0; i < MemoFile::k_max_profiles - 10; ++i)
      file.add(std::to_string(round) + "-" + std::to_string(i), profile);
  }
  MemoFile file(folder.memo());
  int kept = 0;
  for (std::size_t i = 0; i < MemoFile::k_max_profiles; ++i) kept += file.find("0-" + std::to_string(i)) != nullptr;
  CHECK(kept == 10);
  CHECK(file.find("1-0") != nullptr);
}

TEST_CASE("a call longer than the limit faults whatever the memo knows", "[memo]") {
  const Folder folder;
  plant(folder.memo(), k_five, 60);
  KernelMemo memo({}, folder.memo());
  const Kernel kernel = memo.load(isa::assemble(k_copy_kernel, "bench.s"), "");
  CHECK(memo.profile(memo.record(kernel), k_five, 50, true).result.status == RunStatus::max_cycles);
  CHECK(memo.profile(memo.record(kernel), k_five, 100, true).result.cycles == 60);
  CHECK(memo.profile(memo.record(kernel), k_five, 50, true).result.status == RunStatus::max_cycles);
}

TEST_CASE("a memo file that cannot be written costs a warning", "[memo]") {
  CHECK(profile_with("/dev/null/memo.json", k_copy_kernel, k_five).result.cycles == copy_cycles(5));
}

TEST_CASE("the environment says where the memo is", "[memo]") {
  class Variable {
   public:
    Variable(const char* name, const char* value) : m_name(name) {
      if (const char* before = std::getenv(name)) m_before = before;
      value != nullptr ? ::setenv(name, value, 1) : ::unsetenv(name);
    }
    ~Variable() { m_before ? ::setenv(m_name, m_before->c_str(), 1) : ::unsetenv(m_name); }

   private:
    const char* m_name;
    std::optional<std::string> m_before;
  };
  const auto path = [](const char* memo, const char* cache, const char* home) {
    const Variable a("MTSIM_MEMO", memo), b("XDG_CACHE_HOME", cache), c("HOME", home);
    return MemoFile::default_path();
  };
  CHECK(path("/m.json", "/c", "/h") == "/m.json");
  CHECK(path("", "/c", "/h").empty());
  CHECK(path("off", "/c", "/h").empty());
  CHECK(path(nullptr, "/c", "/h") == "/c/mtsim/memo-v1.json");
  CHECK(path(nullptr, nullptr, "/") == "/.cache/mtsim/memo-v1.json");
  CHECK(path(nullptr, nullptr, "/no/such/home").empty());  // not ours to make
  CHECK(path(nullptr, nullptr, nullptr).empty());
}
