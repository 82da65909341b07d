// SPDX-License-Identifier: Apache-2.0
// Text that does not assemble: each error says where, what and what to do.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support.h"

using namespace mtsim::isa;
using Catch::Matchers::Contains;

namespace {

// Assembles `text` and expects one error that holds all of `parts`.
void check_error(const std::string& text, const std::vector<std::string>& parts) {
  const std::string errors = errors_of(text);
  INFO(text);
  INFO(errors);
  REQUIRE_FALSE(errors.empty());
  CHECK(std::count(errors.begin(), errors.end(), '\n') == 0);
  for (const std::string& part : parts) CHECK_THAT(errors, Contains(part));
}

}  // namespace

TEST_CASE("unknown names come with a suggestion", "[isa][assembler][error]") {
  check_error("  VFMULAS23.M1 VR0, VR1, VR2, VR3",
              {"k.s:1:3: error: unknown mnemonic 'VFMULAS23'", "did you mean 'VFMULAS32'?"});
  check_error("VFMULAS32.M1 VR0, VQ1, VR2, VR3", {"k.s:1:19", "unknown register 'VQ1'", "did you mean 'VR1'?"});
  check_error("SADD R64, R1, R1", {"k.s:1:6", "unknown register 'R64'", "R0..R63"});
  check_error("loop: SNOP 1\n  SBR lop", {"k.s:2:3", "unknown label 'lop'", "did you mean 'loop'?"});
  check_error("  .pram x, R1, count\n  SNOP 1", {"k.s:1:3", "unknown directive '.pram'", "did you mean '.param'?"});
  check_error(".equ LENGTH, 4\n SADD LENGHT, R1, R1", {"k.s:2:7", "got 'LENGHT'", "did you mean 'LENGTH'?"});
}

TEST_CASE("unit suffixes", "[isa][assembler][error]") {
  check_error("VFMULAS32.M4 VR0, VR1, VR2, VR3", {"k.s:1:10", "unknown unit suffix '.M4'", ".M1, .M2 or .M3"});
  check_error("SADD.M3 1, R1, R1", {"k.s:1:5", "'.M3'", "SADD.M1 or .M2", "no suffix for SIEU"});
  check_error("VBALE2.M1 VR0, VR1, VR2", {"k.s:1:7", "write VBALE2 without a suffix", "VIEU"});
  check_error("VFMULAS32 VR0, VR1, VR2, VR3", {"k.s:1:10", "VFMULAS32 needs a unit suffix", "write VFMULAS32.M1"});
  check_error("SVBCAST.M1 R1, VR1\n| SVBCAST R2, VR2", {"k.s:2:10", "write SVBCAST.M2 (SMAC2 is free"});
  check_error("SMVAGA R1, AR1", {"k.s:1:7", "SMVAGA.M1"});
  check_error("SADD. 1, R1, R1", {"k.s:1:5", "ends in '.'"});
}

TEST_CASE("two instructions on one unit name both lines and a way out", "[isa][assembler][error]") {
  check_error("  SADD.M1 1, R1, R2\n| SVBCAST.M1 R1, VR2",
              {"k.s:2:3", "SADD.M1 (line 1)", "SVBCAST.M1 (line 2)", "SMAC1", "write SVBCAST.M2"});
  check_error("SLT R1, R2, R0 | SMOVI24 1, R3", {"k.s:1:18", "SIEU", "another packet"});
  check_error("SLT R1, R2, R0 | SADD 1, R3, R3", {"SMAC1 is free: write SADD.M1"});
  check_error("VLDW *AR0, VR0\n|VLDW *AR0, VR1\n|VLDW *AR0, VR2", {"k.s:3:2", "VLDST2"});
  try {
    assemble("SBR R63 | SBR R63", "k.s");
    FAIL("assembled");
  } catch (const IsaError& error) {
    CHECK(error.diagnostics().at(0).code == "unit-clash");
    CHECK(error.diagnostics().at(0).severity == Severity::fatal);
  }
}

TEST_CASE("operand count and kind state the format", "[isa][assembler][error]") {
  check_error("VFMULAS32.M1 VR0, VR1, VR2", {"k.s:1:14", "takes 4 operands (VR, VR, VR, VR), got 3"});
  check_error("SNOP", {"k.s:1:5", "takes 1 operands (immediate), got 0"});
  check_error("VFMULAS32.M1 VR0, R1, VR2, VR3", {"k.s:1:19", "operand 2 of VFMULAS32 must be VR, got 'R1'"});
  check_error("SADD 1, 2, R3", {"k.s:1:9", "operand 2 of SADD must be R, got '2'", "R or immediate, R, R"});
  check_error("SSHFLL R1, R2, R3", {"k.s:1:8", "operand 1 of SSHFLL must be immediate, got 'R1'"});
  check_error("SMVAGA.M1 R1, R2", {"k.s:1:15", "must be AR or OR"});
  check_error("VLDW AR0, VR1", {"k.s:1:6", "must be *AR, got 'AR0'"});
  check_error("SADD 1,, R3", {"operand 2 of SADD must be R, got nothing"});
  check_error("SBR VR1", {"k.s:1:5", "must be label or R"});
}

TEST_CASE("immediates out of range", "[isa][assembler][error]") {
  check_error("VLDW *+AR0[512], VR0", {"k.s:1:12", "index 512 of VLDW is outside 0..511", "8 bytes"});
  check_error("VLDW *+AR0[-1], VR0", {"k.s:1:12", "index -1"});
  check_error("SADD 32768, R1, R1", {"k.s:1:6", "32768", "-32768..32767"});
  check_error("SADDA -32769, AR0, AR0", {"k.s:1:7", "-32768..32767"});
  check_error("SMOVI24 8388608, R1", {"k.s:1:9", "-8388608..8388607", "use SMOVI"});
  check_error("SSHFLR 64, R1, R1", {"k.s:1:8", "0..63"});
  check_error("SNOP 0", {"k.s:1:6", "immediate 0 of SNOP"});
  check_error("SMOVI 0x10000000000000000, R1", {"k.s:1:7", "does not fit in 64 bits"});
  check_error("SMOVI 12x, R1", {"k.s:1:7", "'12x' is not a number"});
  check_error("SMOVI 1/0, R1", {"k.s:1:8", "division by zero"});
  CHECK(
      errors_of("VLDW *+AR0[511], VR0\nSADD -32768, R1, R1\nSMOVI24 -8388608, R1\nSSHFLL 63, R1, R1\nSNOP 1").empty());
}

TEST_CASE("register pairs are even and high:low", "[isa][assembler][error]") {
  CHECK(errors_of("VLDDW *AR0, VR1:VR0").empty());
  check_error("VLDDW *AR0, VR2:VR1", {"k.s:1:13", "'VR2:VR1' is no register pair", "write VR1:VR0"});
  check_error("VLDDW *AR0, VR0:VR1", {"k.s:1:13", "write VR1:VR0"});
  check_error("SLDDW *AR8, R5:R2", {"k.s:1:13", "write R3:R2"});
  check_error("VLDDW *AR0, VR1", {"k.s:1:13", "must be VRhi:VRlo, got 'VR1'"});
  check_error("VLDDW *AR0, VR1:R0", {"must be VRhi:VRlo"});
}

TEST_CASE("vector operations use AR0-7 and OR0-7, scalar ones AR8-15 and OR8-15", "[isa][assembler][error]") {
  check_error("VLDW *AR8, VR0", {"k.s:1:7", "VLDW is on the vector side and cannot use AR8", "AR0..AR7"});
  check_error("SLDW *AR7, R0", {"k.s:1:7", "scalar side", "AR8..AR15"});
  check_error("VLDW *+AR0[OR8], VR0", {"k.s:1:12", "OR8", "OR0..OR7"});
  check_error("SLDH *AR8++[OR0], R0", {"k.s:1:13", "OR0", "OR8..OR15"});
}

TEST_CASE("addresses of a form the machine lacks", "[isa][assembler][error]") {
  check_error("VLDW *AR0[3], VR0", {"k.s:1:10", "write *+AR0[..]"});
  check_error("VLDW *AR0++, VR0", {"k.s:1:12", "'*AR0++' needs an index"});
  check_error("VLDW *+AR0, VR0", {"needs an index"});
  check_error("VLDW *+AR0++[1], VR0", {"k.s:1:11"});
  check_error("VLDW *+AR0[R1], VR0", {"k.s:1:12", "got R1", "SMVAGA"});
  check_error("VLDW *+AR0[1, VR0", {"takes 2 operands"});
}

TEST_CASE("SNOP is alone in its packet", "[isa][assembler][error]") {
  check_error("SADD 1, R1, R1\n| SNOP 2", {"k.s:2:3", "SNOP must be alone", "SADD (line 1)"});
  check_error("SNOP 2\n| SADD 1, R1, R1", {"k.s:2:3", "SNOP must be alone"});
  check_error("[R0] SNOP 2", {"k.s:1:1", "SNOP cannot be predicated"});
}

TEST_CASE("one packet modifies an address register once", "[isa][assembler][error]") {
  check_error("VLDW *AR0++[OR0], VR0\n| VLDW *AR0++[OR1], VR1",
              {"k.s:2:3", "(line 1)", "(line 2)", "both post-modify AR0"});
  CHECK(errors_of("VLDW *AR0++[OR0], VR0 | VLDW *+AR0[OR1], VR1").empty());
}

TEST_CASE("a predicate is one of R0 to R6", "[isa][assembler][error]") {
  check_error("[R7] SADD 1, R1, R1", {"k.s:1:1", "R7 cannot be a predicate", "R0..R6"});
  check_error("[AR0] SADD 1, R1, R1", {"k.s:1:1", "AR0 cannot be a predicate"});
  check_error("[R0 SADD 1, R1, R1", {"a predicate is [R0] or [!R0]"});
  check_error("[R0]", {"an instruction is missing"});
}

TEST_CASE("labels are unique and not registers", "[isa][assembler][error]") {
  check_error("a: SNOP 1\n  a: SNOP 1", {"k.s:2:3", "label 'a' is defined twice, first at line 1"});
  check_error("R1: SNOP 1", {"k.s:1:1", "name of a register"});
}

TEST_CASE("a bar needs a packet to join", "[isa][assembler][error]") {
  check_error("| SNOP 1", {"k.s:1:1", "'|' joins the packet of the line before"});
  check_error("SADD 1, R1, R1\nhere: | SADD.M1 1, R2, R2", {"k.s:2:7"});
  check_error("SADD 1, R1, R1 |", {"k.s:1:17", "an instruction is missing behind '|'"});
}

TEST_CASE("characters that mean nothing", "[isa][assembler][error]") {
  check_error("SADD 1, R1, R1 ?", {"k.s:1:16", "unexpected character '?'"});
  check_error("é", {"k.s:1:1", "outside ASCII", "comment"});
  check_error(std::string("SNOP 1 \x01"), {"unexpected character 0x01"});
}

TEST_CASE("an operand without a register", "[isa][assembler][error]") {
  check_error(".param x, R10, value\nSADD %1, R1, R1", {"k.s:2:6", "operand %1 is not declared", ".param"});
  check_error("SADD %26, R1, R1", {"k.s:1:6", "operand %26 has no register"});
}

TEST_CASE("an empty program is an error", "[isa][assembler][error]") {
  check_error("", {"k.s: error: the program has no instructions"});
  check_error("; nothing\n", {"no instructions"});
}

TEST_CASE("every problem is reported, in the order of the text", "[isa][assembler][error]") {
  const std::string errors = errors_of(
      "SBR nowhere\n"
      "FOO 1\n"
      "SADD R99, R1, VR1\n");
  CHECK_THAT(errors, Contains("k.s:1:1: error: unknown label 'nowhere'"));
  CHECK_THAT(errors, Contains("k.s:2:1: error: unknown mnemonic 'FOO'"));
  CHECK_THAT(errors, Contains("k.s:3:6: error: unknown register 'R99'"));
  CHECK_THAT(errors, Contains("k.s:3:15: error: operand 3 of SADD must be R"));
  CHECK(errors.find("k.s:1:") < errors.find("k.s:2:"));
}

TEST_CASE("a flood of errors is cut", "[isa][assembler][error]") {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "FOO\n";
  const std::string errors = errors_of(text);
  CHECK(std::count(errors.begin(), errors.end(), '\n') == 100);
  CHECK_THAT(errors, Contains("too many errors"));
}

TEST_CASE("the hints of one packet fit together", "[isa][assembler]") {
  const std::string errors = errors_of("SADD 1, R1, R1 | SADD 1, R2, R2 | SADD 1, R3, R3 | SADD 1, R4, R4");
  CHECK_THAT(errors, Contains("SMAC1 is free: write SADD.M1") && Contains("SMAC2 is free: write SADD.M2"));
  CHECK_THAT(errors, Contains("all of SMAC1, SMAC2, SIEU are taken"));
}

TEST_CASE("a mnemonic that was cut short is completed", "[isa][assembler]") {
  CHECK_THAT(errors_of("VFMULAS.M1 VR0, VR1, VR2, VR3"), Contains("did you mean 'VFMULAS32'?"));
  CHECK_THAT(errors_of("VFMULAS23.M1 VR0, VR1, VR2, VR3"), Contains("did you mean 'VFMULAS32'?"));
}

TEST_CASE("a second region of one name for .endregion is one mistake", "[isa][assembler]") {
  const std::string errors = errors_of(".region a\n SNOP 1\n.region a\n SNOP 1\n.endregion\n");
  CHECK_THAT(errors, Contains("defined twice") && !Contains("not closed"));
}

TEST_CASE("operands that share a register are refused", "[isa][assembler]") {
  const auto errors_with = [](const std::string& text, std::vector<Register> operands) {
    try {
      assemble(text, "k.s", {.operands = std::move(operands)});
    } catch (const IsaError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const Register r10{RegisterFile::R, 10}, r12{RegisterFile::R, 12};
  CHECK_THAT(errors_with("SADD %0, %1, R1", {r10, r10}), Contains("operands %0 and %1 share R10"));
  CHECK_THAT(errors_with(".param a, R10, value\n.param b, R12, value\nSADD %0, R1, R1", {r12}),
             Contains(".param a and .param b share R12"));
  CHECK(errors_with("SADD %0, %1, R1", {r12, r10}).empty());
}

TEST_CASE("devices, folders and huge files are no programs", "[isa][assembler]") {
  CHECK_THROWS_WITH(assemble_file("/dev/zero"), Contains("it is a device"));
  CHECK_THROWS_WITH(assemble_file("/tmp"), Contains("it is a folder"));
  const std::string path = std::filesystem::temp_directory_path() / fmt::format("mtsim_huge_{}.s", getpid());
  std::ofstream(path) << ';';
  std::filesystem::resize_file(path, 17 << 20);
  CHECK_THROWS_WITH(assemble_file(path), Contains("more than 16777216 bytes"));
  std::filesystem::remove(path);
}

TEST_CASE("operands from outside name a register for each %n, no fewer and no more", "[isa][assembler]") {
  const auto errors_with = [](const std::string& text, std::vector<Register> operands) -> std::string {
    try {
      assemble(text, "k.s", {.operands = std::move(operands)});
    } catch (const IsaError& error) {
      return error.what();
    }
    return "";
  };
  const Register r20{RegisterFile::R, 20}, r22{RegisterFile::R, 22}, r24{RegisterFile::R, 24};
  CHECK_THAT(errors_with("SADD %0, %2, R1", {r20}), Contains("uses %2 but operands names 1 register;"));
  CHECK_THAT(errors_with("SADD %0, %1, R1", {r20, r22, r24}), Contains("uses no %n above %1 but operands names 3"));
  CHECK_THAT(errors_with("SADD R1, R2, R3", {r20}), Contains("uses no %n but operands names 1 register"));
  CHECK(errors_with("SADD %0, %1, R1", {r20, r22}).empty());
  // An imported body may leave its last operand unused.
  CHECK(errors_with(".param a, R10, value\n.param b, R12, value\nSADD %0, R3, R1", {r20, r22}).empty());
}
