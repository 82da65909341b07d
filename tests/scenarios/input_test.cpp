// SPDX-License-Identifier: Apache-2.0
// Every bad input gets one clear message with its place, and exit 2.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/scenarios/command.h"

using Catch::Matchers::Contains;
using mtsim::test::CommandResult;
using mtsim::test::Folder;

namespace {

/// exec of a program and a spec with these lines behind `program: k.s`.
CommandResult exec(const Folder& folder, const std::string& packets, const std::string& spec = "") {
  folder.write("k.s", packets);
  folder.write("k.yaml", "program: k.s\n" + spec);
  return folder.mtsim("exec k.yaml");
}

}  // namespace

TEST_CASE("a program that does not assemble exits 2 with line, column and what to do", "[input]") {
  struct Case {
    std::string line;  // the second of the file
    std::string message;
  };
  const auto [line, message] = GENERATE(values<Case>({
      {"VFMULAS23.M1 VR0, VR1, VR2, VR3", "did you mean 'VFMULAS32'?"},
      {"VFMULAS32.M4 VR0, VR1, VR2, VR3", "M4"},
      {"SADD.M3 R0, R1, R2", "M3"},
      {"SADD.M1 R0, R64, R2", "R64"},
      {"VLDW *AR9, VR0", "AR9"},
      {"SBR lop", "did you mean 'loop'?"},
      {"VLDDW *AR0, VR2:VR1", "VR"},
      {"SADD.M1 R0, R1, R2 | SADD.M1 R3, R4, R5", "SMAC1"},
      {"SNOP 1 | SADD.M1 R0, R1, R2", "SNOP"},
      {"SADD.M1 R0, R1", "operand"},
  }));
  INFO(line);
  const Folder folder;
  const CommandResult result = exec(folder, "loop: SNOP 1\n" + line + "\nSBR R63\nSNOP 6\n");
  INFO(result.err);
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Contains("k.s:2:"));
  CHECK_THAT(result.err, Contains(message));
  CHECK(folder.mtsim("check k.s").exit_code == 2);
  CHECK(folder.mtsim("fmt k.s").exit_code == 2);
  CHECK(folder.mtsim("schedule k.s").exit_code == 2);
}

TEST_CASE("every mistake of a spec is listed with its place", "[input]") {
  struct Case {
    std::string spec;
    std::vector<std::string> messages;
  };
  const auto [spec, messages] = GENERATE(values<Case>({
      {"registrs: {R1: 5}\n", {"k.yaml:2:1", "unknown key 'registrs'", "did you mean 'registers'?"}},
      {"registers: {R1: 5}\nregisters: {R2: 5}\n", {"k.yaml:3:1", "duplicate"}},
      {"registers: {R64: 5}\n", {"k.yaml:2:13", "'R64' is not a register"}},
      {"registers: {R1: 5, r1: 6}\n", {"given twice"}},
      {"registers: {R63: 5}\n", {"R63 holds the return address"}},
      {"registers: {R1: five}\n", {"k.yaml:2:17", "'five' is not a register value", "f32:1.5"}},
      {"registers: {R1: 010}\n", {"'010' is not a register value"}},
      {"registers: {R1: \"f32:x\"}\n", {"'f32:x' is not a register value"}},
      {"registers: {VR1: [1, 2]}\n", {"1, 16 or 32 values, not 2"}},
      {"operands: [R10, X2]\n", {"k.yaml:2:17", "'X2' is not a register"}},
      {"entry: lop\n", {"k.yaml:2:8", "no label 'lop'", "did you mean 'loop'?"}},
      {"max_cycles: many\n", {"k.yaml:2:13", "many"}},
      {"max_cycles: 0\n", {"at least 1"}},
      {"memory:\n  - {space: sm, address: 0, file: none.bin}\n", {"k.yaml:3:35", "none.bin", "No such file"}},
      {"memory:\n  - {space: sm, address: 0, file: short.bin, bytes: 100}\n", {"too short: 3 bytes, 100 asked"}},
      {"memory:\n  - {space: sm, address: 0, file: empty.bin}\n", {"'empty.bin' is empty"}},
      {"memory:\n  - {space: gsm, address: 0, file: short.bin}\n", {"unknown memory 'gsm'", "sm"}},
      {"memory:\n  - {space: sm, address: 0x10000, file: short.bin}\n", {"0x10000 is outside sm", "65536"}},
      {"memory:\n  - {space: sm, address: 0xffff, file: short.bin}\n", {"end outside sm"}},
      {"memory:\n  - {space: sm, address: 0, fill: 300, bytes: 4}\n", {"300 is not a byte"}},
      {"memory:\n  - {space: sm, address: 0, fill: 3}\n", {"'fill' needs 'bytes'"}},
      {"memory:\n  - {space: sm, address: 0}\n", {"either 'file' or 'fill'"}},
      {"memory: {space: sm}\n", {"must be a list"}},
      {"dump:\n  - {space: am, address: 0, bytes: 0, file: o.bin}\n", {"0 bytes", "at least 1"}},
      {"dump:\n  - {space: am, address: 0, bytes: 4}\n", {"missing key 'file'"}},
      {"dump:\n  - {space: am, address: 0, bytes: 4, file: no/such/o.bin}\n", {"no folder"}},
      {"registers: {R99: 1}\nmax_cycles: -1\n", {"k.yaml:2:13", "k.yaml:3:13"}},
  }));
  INFO(spec);
  const Folder folder;
  folder.write("short.bin", "abc");
  folder.write("empty.bin", "");
  const CommandResult result = exec(folder, "loop: SBR R63\nSNOP 6\n", spec);
  INFO(result.err);
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  for (const auto& message : messages) CHECK_THAT(result.err, Contains(message));
}

TEST_CASE("a missing, unreadable or empty spec or program exits 2", "[input]") {
  const Folder folder;
  CHECK(folder.mtsim("exec none.yaml").exit_code == 2);
  CHECK(folder.mtsim("exec .").exit_code == 2);
  folder.write("k.yaml", "program: none.s\n");
  const CommandResult result = folder.mtsim("exec k.yaml");
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Contains("k.yaml:1:10") && Contains("none.s"));
  folder.write("empty.yaml", "");
  CHECK(folder.mtsim("exec empty.yaml").exit_code == 2);
  folder.write("list.yaml", "- a\n- b\n");
  CHECK(folder.mtsim("exec list.yaml").exit_code == 2);
  folder.write("broken.yaml", "program: [k.s\n");
  CHECK_THAT(folder.mtsim("exec broken.yaml").err, Contains("broken.yaml:"));
  for (const char* command : {"check none.s", "fmt none.s", "schedule none.s", "import none.c -o out", "run none.yaml",
                              "describe none.yaml", "report fidelity none.json"}) {
    INFO(command);
    const CommandResult missing = folder.mtsim(command);
    CHECK(missing.exit_code == 2);
    CHECK_THAT(missing.err + missing.out, Contains("none."));
  }
}

TEST_CASE("a machine with a wrong key or value is refused with a suggestion", "[input]") {
  const Folder folder;
  folder.write("m.yaml", "extends: mt3000\nname: m\nddr: {bandwith_gb_s: 64}\n");
  const CommandResult file = folder.mtsim("describe m.yaml");
  CHECK(file.exit_code == 2);
  CHECK_THAT(file.err, Contains("m.yaml:3:7") && Contains("did you mean 'bandwidth_gb_s'?"));
  const CommandResult set = folder.mtsim("describe --set ddr.bandwith_gb_s=60");
  CHECK(set.exit_code == 2);
  CHECK_THAT(set.err, Contains("ddr.bandwidth_gb_s"));
  CHECK(folder.mtsim("describe --set ddr.bandwidth_gb_s=fast").exit_code == 2);
  CHECK(folder.mtsim("describe mt30000").exit_code == 2);
}

TEST_CASE("check exits 1 for a wrong schedule, 0 for remarks", "[input]") {
  const Folder folder;
  folder.write("bad.s", "VMOVI.M1 0, VR1\nVFMULAS32.M1 VR1, VR1, VR1, VR2\nSNOP 1\nVMULAS: SBVC\n");
  CHECK(folder.mtsim("check bad.s").exit_code == 2);
  // SVBCAST (4 cycles) and VMOVI (1 cycle) land in VR0 together.
  folder.write("clash.s", ".param x, R0, value\nSVBCAST.M1 R0, VR0\nSNOP 2\nVMOVI.M1 0, VR0\nSBR R63\nSNOP 6\n");
  const CommandResult clash = folder.mtsim("check clash.s --json -");
  CHECK(clash.exit_code == 1);
  const auto report = clash.json();
  CHECK(report.at("errors") == 1);
  const auto& finding = report.at("diagnostics").at(0);
  CHECK(finding.at("place").at("line").get<int>() > 0);
  CHECK_THAT(finding.at("message").get<std::string>(), Contains("VR0"));
  folder.write("remark.s", "VLDW *AR0, VR0 | VSTW VR1, *AR1\nSNOP 8\nSBR R63\nSNOP 6\n");
  const CommandResult remark = folder.mtsim("check remark.s --json -");
  CHECK(remark.exit_code == 0);
  CHECK(remark.json().at("notes").get<int>() >= 1);
  // A wrong schedule still runs.
  folder.write("clash.yaml", "program: clash.s\n");
  CHECK(folder.mtsim("exec clash.yaml").exit_code == 0);
}

TEST_CASE("fmt round-trips, rewrites in place and checks", "[input]") {
  const Folder folder;
  const std::string original = "loop: VLDW *AR0, VR0 | SADD.M1 1,R0,R0 ; note\n SNOP 3\nSBR R63\nSNOP 6\n";
  folder.write("k.s", original);
  CHECK(folder.mtsim("fmt --check k.s").exit_code == 1);
  const CommandResult printed = folder.mtsim("fmt k.s");
  CHECK(printed.exit_code == 0);
  CHECK_THAT(printed.out, Contains("note"));
  CHECK(folder.read("k.s") == original);
  CHECK(folder.mtsim("fmt -i k.s").exit_code == 0);
  CHECK(folder.read("k.s") == printed.out);
  CHECK(folder.mtsim("fmt --check k.s").exit_code == 0);
  CHECK(folder.mtsim("fmt k.s").out == printed.out);
  CHECK(folder.mtsim("fmt -i --check k.s").exit_code == 2);
}

TEST_CASE("schedule shows a loop and its initiation interval", "[input]") {
  const Folder folder;
  folder.write("k.s",
               "SMOVI24 4, R0\nloop: VLDW *AR0, VR1 | SADD.M1 -1, R0, R0\n[R0] SBR loop\nSNOP 6\nSBR R63\nSNOP 6\n");
  const auto json = folder.mtsim("schedule k.s --json -").json();
  REQUIRE(json.at("loops").size() == 1);
  CHECK(json.at("loops").at(0).at("label") == "loop");
  CHECK(json.at("loops").at(0).at("initiation_interval") == 8);
  const CommandResult text = folder.mtsim("schedule k.s loop");
  CHECK(text.exit_code == 0);
  CHECK_THAT(text.out, Contains("VLDW") && Contains("initiation interval"));
  CHECK(folder.mtsim("schedule k.s lop").exit_code == 2);
}

TEST_CASE("a value that cannot be read gets one message and no other follows from it", "[input]") {
  struct Case {
    std::string spec;
    int messages;
  };
  const auto [spec, messages] = GENERATE(values<Case>({
      {"program: k.s\nmax_cycles: 1e6\n", 1},
      {"program: [k.s]\n", 1},
      {"program: k.s\nmemory: {space: sm}\n", 1},
      {"program: k.s\ndump:\n  - {space: sm, address: 0x10000, bytes: 384, file: o.bin}\n", 1},
      {"program: k.s\ndump:\n  - {space: xm, address: 0x10000, bytes: 384, file: o.bin}\n", 1},
      {"program: k.s\nmemory:\n  - {space: sm, address: abc, fill: 0, bytes: 1.5}\n", 2},
      {"program: k.s\nentry: foo\n", 1},
      {"program: k.s\nentry: ''\n", 1},
      {"program: \"k.s\\0x\"\n", 1},
      {"program: /dev/zero\n", 1},
      {"program: k.s\nmemory:\n  - {space: sm, address: 0, file: /dev/zero}\n", 1},
  }));
  INFO(spec);
  const Folder folder;
  folder.write("k.s", "SBR R63\nSNOP 6\n");
  folder.write("k.yaml", spec);
  const CommandResult result = folder.mtsim("exec k.yaml");
  INFO(result.err);
  CHECK(result.exit_code == 2);
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == messages);
}

TEST_CASE("a wrong scenario lists each mistake once, the machine's too", "[input]") {
  struct Case {
    std::string lines;  // behind the head
    std::vector<std::string> messages;
  };
  const std::string grid = "grid: {m: 96, n: 128, k: 256}\n";
  const auto [lines, messages] = GENERATE_COPY(values<Case>({
      {"machine: mt3000\ngrid: {m: 96, n: [1.5, abc], k: 256}\n", {"'1.5'", "'abc'"}},
      {"machine: mt3000\n" + grid + "rows: x\ncolumns: 5\n", {"'x'", "'5'"}},
      {"machine: mt3000\n" + grid + "paper: {source: s, latency_ms: {96: [nan]}}\n", {"'nan'"}},
      {"machine: mt3000\n" + grid + "tile: mg=6,mg=7\n", {"given twice"}},
      {"machine: mt3000\ngrid: {m: 96, n: 128, k: 4096}\ntile: mg=100000,k2=100000\n",
       {"s.yaml:7:7: cell m=96 n=128 k=4096"}},
  }));
  INFO(lines);
  const Folder folder;
  folder.write("s.yaml", "name: s\ntitle: s\noperator: gemm\ndtype: f32\nvariant: paper\n" + lines);
  const CommandResult result = folder.mtsim("run s.yaml");
  INFO(result.err);
  CHECK(result.exit_code == 2);
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == static_cast<std::ptrdiff_t>(messages.size()));
  for (const auto& message : messages) CHECK_THAT(result.err, Contains(message));
  folder.write("s.yaml", "name: s\ntitle: s\nmachine: nope\noperator: gemm\ndtype: f64\n" + grid);
  CHECK_THAT(folder.mtsim("run s.yaml").err, Contains("nope") && Contains("f64"));
}
