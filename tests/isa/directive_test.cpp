// SPDX-License-Identifier: Apache-2.0
#include "support.h"

#include <map>

using namespace mtsim::isa;
using Catch::Matchers::Contains;

TEST_CASE(".param declares name, register and kind in order", "[isa][directive]") {
  const Program program = assemble(
      ".param a, R10, pointer sm\n.param b, r12, Pointer AM\n.param n, R14, count\n.param alpha, R16, value\n SNOP 1",
      "k.s");
  REQUIRE(program.parameters.size() == 4);
  CHECK(program.parameters[0].kind == ParameterKind::pointer_sm);
  CHECK(program.parameters[1].kind == ParameterKind::pointer_am);
  CHECK(program.parameters[1].reg == Register{RegisterFile::R, 12});
  CHECK(program.parameters[2].kind == ParameterKind::count);
  CHECK(program.parameters[3].name == "alpha");
}

TEST_CASE(".param errors", "[isa][directive]") {
  CHECK_THAT(errors_of(".param a, R1, count\n.param a, R2, count\nSNOP 1"),
             Contains("k.s:2:8: error: .param a is declared twice"));
  CHECK_THAT(errors_of(".param a, R1, count\n.param b, R1, count\nSNOP 1"), Contains(".param a and .param b share R1"));
  CHECK_THAT(errors_of(".param a, R1\nSNOP 1"), Contains("takes 3 operands, got 2"));
  CHECK_THAT(errors_of(".param a, Q1, count\nSNOP 1"), Contains("k.s:1:11: error: 'Q1' is not a register"));
  CHECK_THAT(errors_of(".param a, VR1, value\nSNOP 1"), Contains("cannot live in VR1"));
  CHECK_THAT(errors_of(".param a, R1, cuont\nSNOP 1"), Contains("k.s:1:15") && Contains("did you mean 'count'?"));
  CHECK_THAT(errors_of("SNOP 1\n.param a, R1, count"), Contains("k.s:2:1") && Contains("behind the first packet"));
}

TEST_CASE(".equ names a value and may be redefined", "[isa][directive]") {
  CHECK(packets_of(".equ N, 2\n SADD N, R1, R1\n.equ N, N+1\n SADD N, R1, R1") ==
        std::vector<std::string>{"SADD 2, R1, R1", "SADD 3, R1, R1"});
  CHECK_THAT(errors_of(".equ R1, 2\nSNOP 1"), Contains("k.s:1:6") && Contains("name of a register"));
  CHECK_THAT(errors_of(".equ N\nSNOP 1"), Contains(".equ takes a name and a value"));
}

TEST_CASE(".rept repeats, nests and counts with .equ", "[isa][directive]") {
  const auto packets = packets_of(
      ".equ i, 0\n"
      ".rept 2\n"
      ".rept 3 ; inner\n"
      "  SADD i, R1, R1\n"
      ".equ i, i+1\n"
      ".endr\n"
      "  SNOP 1\n"
      ".endr\n");
  REQUIRE(packets.size() == 8);
  CHECK(packets[2] == "SADD 2, R1, R1");
  CHECK(packets[3] == "SNOP 1");
  CHECK(packets[6] == "SADD 5, R1, R1");
  CHECK(packets_of("SNOP 1\n.rept 0\nFOO\n.endr\n").size() == 1);
}

TEST_CASE("a macro substitutes its arguments and may join a packet", "[isa][directive]") {
  const auto packets = packets_of(
      ".macro fma unit, a, b\n"
      " | VFMULAS32.M\\unit \\a, VR\\()5, VR\\b, VR\\b\n"
      ".endm\n"
      "  SVBCAST.M1 R1, VR1\n"
      "  fma 1, VR0, 10\n"
      "  fma 2, VR0, 11 ; comment\n");
  CHECK(packets == std::vector<std::string>{"SVBCAST.M1 R1, VR1 | VFMULAS32.M1 VR0, VR5, VR10, VR10 | "
                                            "VFMULAS32.M2 VR0, VR5, VR11, VR11"});
}

TEST_CASE("\\@ makes the labels of a macro unique", "[isa][directive]") {
  const Program program = assemble(
      ".macro wait\nspot\\@: SNOP 1\n.endm\n"
      "wait\nwait\nhere: wait\n",
      "k.s");
  CHECK(program.labels == std::map<std::string, int>{{"here", 2}, {"spot0", 0}, {"spot1", 1}, {"spot2", 2}});
}

TEST_CASE("macro errors name the macro and its caller", "[isa][directive]") {
  CHECK_THAT(errors_of(".macro m a\n SADD \\a, R1, R1\n.endm\n\n  m VR1\n"),
             Contains("k.s:2:7") && Contains("(in macro m called at line 5)"));
  CHECK_THAT(errors_of(".macro m a\n SNOP \\a\n.endm\n  m 1, 2\n"),
             Contains("k.s:4:5: error: macro 'm' takes 1 arguments (a), got 2"));
  CHECK_THAT(errors_of(".macro m abc\n SNOP \\abd\n.endm\n  m 1\n"), Contains("did you mean 'abc'?"));
  CHECK_THAT(errors_of(".macro m\n SNOP 1\n.endm\n.macro m\n.endm\nm\n"),
             Contains("k.s:4:8") && Contains("defined twice"));
  CHECK_THAT(errors_of(".macro SADD\n.endm\nSNOP 1"), Contains("name of an instruction"));
  CHECK_THAT(errors_of(".macro m\n.endm\nSNOP 1 | m"), Contains("macro 'm' must stand alone"));
  CHECK_THAT(errors_of(".macro add2\n.endm\n ad2\n"), Contains("did you mean 'add2'?"));
}

TEST_CASE("blocks that do not close or open", "[isa][directive]") {
  CHECK_THAT(errors_of("SNOP 1\n  .rept 3\n SNOP 1\n"), Contains("k.s:2:3: error: .rept without .endr"));
  CHECK_THAT(errors_of(".macro m\n SNOP 1\n"), Contains("k.s:1:1: error: .macro without .endm"));
  CHECK_THAT(errors_of("SNOP 1\n.endr\n"), Contains("k.s:2:1: error: .endr without .rept"));
  CHECK_THAT(errors_of("SNOP 1\n.endm\n"), Contains(".endm without .macro"));
  CHECK_THAT(errors_of(".region a\nSNOP 1\n"), Contains("k.s:1:9: error: .region a is not closed"));
  CHECK_THAT(errors_of("SNOP 1\n.endregion\n"), Contains("k.s:2:1: error: .endregion without .region"));
  CHECK_THAT(errors_of(".rept -1\n.endr\nSNOP 1"), Contains("k.s:1:7") && Contains("count -1 is negative"));
}

TEST_CASE("expansion without end stops with a clear error", "[isa][directive]") {
  CHECK_THAT(errors_of(".rept 1000000000\n.endr\nSNOP 1"), Contains("expands to more than"));
  CHECK_THAT(errors_of(".rept 1000000000\n SNOP 1\n.endr\n"), Contains("k.s:2:1") && Contains("expands to more than"));
  CHECK_THAT(errors_of(".macro m\n m\n.endm\n m\n"), Contains("nest deeper than 64"));
  CHECK_THAT(errors_of(".macro m a\n m \\a\\a\n.endm\n m xxxxxxxx\n"), Contains("expands to more than 4096 bytes"));
  CHECK_THAT(errors_of(".macro m\n m\n m\n.endm\n m\n"), Contains("error"));
  std::string deep;
  for (int i = 0; i < 70; ++i) deep += ".rept 2\n";
  deep += "SNOP 1\n";
  for (int i = 0; i < 70; ++i) deep += ".endr\n";
  CHECK_THAT(errors_of(deep), Contains("nest deeper than 64"));
}

TEST_CASE(".region names a range of packets and nests", "[isa][directive]") {
  const Program program =
      assemble("SNOP 1\n.region outer\nSNOP 2\n.region inner\nSNOP 3\n.endregion\nSNOP 4\n.endregion\nSNOP 5\n", "k.s");
  REQUIRE(program.regions.size() == 2);
  CHECK(program.regions[0].name == "outer");
  CHECK(program.regions[0].first == 1);
  CHECK(program.regions[0].last == 4);
  CHECK(program.regions[1].first == 2);
  CHECK(program.regions[1].last == 3);
  CHECK_THAT(errors_of(".region a\nSNOP 1\n.endregion\n.region a\nSNOP 1\n.endregion"),
             Contains("k.s:4:9: error: region 'a' is defined twice, first at line 1"));
}

TEST_CASE(".scheduled_for sets the latencies a schedule assumes", "[isa][directive]") {
  const Program program =
      assemble(".scheduled_for VFMULAS32=5, vldw = 4+4\n.scheduled_for SADDA_AR8_15=3\n SNOP 1", "k.s");
  CHECK(program.scheduled_for.of(row(Mnemonic::VFMULAS32)) == 5);
  CHECK(program.scheduled_for.of(row(Mnemonic::VLDW)) == 8);
  CHECK(program.scheduled_for.of(row(Mnemonic::VLDDW)) == 9);
  CHECK(program.scheduled_for.of(row(Mnemonic::SADDA), {RegisterFile::AR, 9}) == 3);
  CHECK(assemble(".scheduled_for VLDW=8, -vmac3\n SNOP 1", "k.s").scheduled_for.str() == "VLDW=8 -VMAC3");
  CHECK_THAT(errors_of(".scheduled_for -VMAC4\n SNOP 1"),
             Catch::Matchers::Contains("k.s:1:17: error: unknown unit 'VMAC4'; did you mean 'VMAC1'?"));
  CHECK_THAT(errors_of(".scheduled_for -SIEU\n SNOP 1"), Catch::Matchers::Contains("SIEU cannot be taken away"));
  CHECK_THAT(errors_of(".scheduled_for VLWD=9\nSNOP 1"), Contains("k.s:1:16") && Contains("did you mean 'VLDW'?"));
  CHECK_THAT(errors_of(".scheduled_for VLDW=99\nSNOP 1"), Contains("k.s:1:21") && Contains("outside 1..63"));
  CHECK_THAT(errors_of(".scheduled_for SNOP=2\nSNOP 1"), Contains("SNOP has no latency to change"));
  CHECK_THAT(errors_of(".scheduled_for VLDW\nSNOP 1"), Contains("'VLDW' is neither MNEMONIC=CYCLES nor -UNIT"));
}

namespace {

/// Assembles folder/k.s with what it includes from a map of paths to texts.
Program with_files(const std::string& text, const std::map<std::string, std::string>& files) {
  AssembleOptions options;
  options.include = [&files](const std::string& path) {
    const auto found = files.find(path);
    if (found == files.end()) throw IsaError({{Severity::fatal, {}, "cannot read '" + path + "'", "look", ""}});
    return found->second;
  };
  return assemble(text, "folder/k.s", options);
}

std::string message_with_files(const std::string& text, const std::map<std::string, std::string>& files) {
  try {
    with_files(text, files);
  } catch (const IsaError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE(".include takes the lines of another file, once, by a path from the file it stands in", "[isa][directive]") {
  const std::map<std::string, std::string> files = {
      {"shared/add.inc.s", ".include \"../shared/one.inc.s\"\n.macro add r\n SADD ONE, \\r, \\r\n.endm\n"},
      {"shared/one.inc.s", ".equ ONE, 1\n.include \"add.inc.s\"\n"}};
  const Program program = with_files(
      ".include \"../shared/add.inc.s\" ; macros\n.include \"../shared/one.inc.s\"\n.include \"k.s\"\n add R3\n SBR "
      "R63\n",
      files);
  REQUIRE(program.packets.size() == 2);
  CHECK(print(program.packets[0].instructions[0]) == "SADD 1, R3, R3");
  CHECK(program.packets[0].instructions[0].place.str() == "shared/add.inc.s:3:2");
  CHECK(program.packets[1].instructions[0].place.str() == "folder/k.s:5:2");
}

TEST_CASE("mistakes in and of an .include say where", "[isa][directive]") {
  CHECK_THAT(message_with_files(".include \"bad.inc.s\"\nSNOP 1", {{"folder/bad.inc.s", "\n SADDD R1"}}),
             Contains("folder/bad.inc.s:2:2: error: unknown mnemonic 'SADDD'"));
  CHECK_THAT(message_with_files("SNOP 1\n .include \"none.s\"", {}),
             Contains("folder/k.s:2:11: error: cannot read 'folder/none.s'; look"));
  CHECK_THAT(message_with_files(".include none.s", {}),
             Contains("folder/k.s:1:10: error: .include takes a file name in quotes; write .include \"macros.inc.s\""));
  CHECK_THAT(errors_of(".include \"a.s\"\nSNOP 1"), Contains("cannot include 'a.s': this text is not a file"));
}
