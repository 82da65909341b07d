// SPDX-License-Identifier: Apache-2.0
// The syntax of published kernels, one rule a test.
#include "support.h"

using namespace mtsim::isa;
using Catch::Matchers::Contains;

namespace {

Operand last_operand(const std::string& instruction) {
  return assemble(instruction, "k.s").packets.at(0).instructions.at(0).operands.back();
}

Operand first_operand(const std::string& instruction) {
  return assemble(instruction, "k.s").packets.at(0).instructions.at(0).operands.front();
}

Unit unit_of(const std::string& instruction) {
  return assemble(instruction, "k.s").packets.at(0).instructions.at(0).unit;
}

}  // namespace

TEST_CASE("a bar joins the packet of the line before", "[isa][assembler]") {
  CHECK(packets_of("  SMOVI24 1, R1\n"
                   "|   SADD.M1 1, R2, R2\n"
                   "\t|\tVMOVI 0, VR1\n"
                   "  SNOP 1\n") ==
        std::vector<std::string>{"SADD.M1 1, R2, R2 | SMOVI24 1, R1 | VMOVI 0, VR1", "SNOP 1"});
}

TEST_CASE("blank and comment lines do not end a packet", "[isa][assembler]") {
  CHECK(packets_of("  SMOVI24 1, R1\n\n; in between\n|  SADD.M1 1, R2, R2\n").size() == 1);
}

TEST_CASE("a line may hold a whole packet, empty columns included", "[isa][assembler]") {
  CHECK(first_packet("SADD.M1 1, R1, R1 | | VMOVI 0, VR1 || VLDW *AR0, VR2") ==
        "SADD.M1 1, R1, R1 | VMOVI 0, VR1 | VLDW *AR0, VR2");
}

TEST_CASE("a predicate stands in front of or behind the bar", "[isa][assembler]") {
  const std::string expected = "[!R1] SADD.M2 1, R2, R2 | [R0] SMOVI24 1, R1";
  CHECK(first_packet("[R0] SMOVI24 1, R1\n[!R1] | SADD.M2 1, R2, R2") == expected);
  CHECK(first_packet("[R0] SMOVI24 1, R1\n | [!R1] SADD.M2 1, R2, R2") == expected);
  CHECK(first_packet("[ r0 ]SMOVI24 1, R1\n|[! R1 ]SADD.M2 1, R2, R2") == expected);
}

TEST_CASE("labels stand alone or in front of a packet, also with a dot", "[isa][assembler]") {
  const Program program = assemble("start:\n.loop: SNOP 1\na: b:  SNOP 2\n  SBR .loop\nend:\n", "k.s");
  CHECK(program.labels == std::map<std::string, int>{{".loop", 0}, {"a", 1}, {"b", 1}, {"end", 3}, {"start", 0}});
  const auto& target = std::get<Target>(program.packets[2].instructions[0].operands[0]);
  CHECK(target.label == ".loop");
  CHECK(target.packet == 0);
}

TEST_CASE("comments start with a semicolon, two of them or two slashes and may hold UTF-8", "[isa][assembler]") {
  const Program program = assemble("SNOP 1 ; é\nSNOP 2 ;; 二\nSNOP 3 // ∑ ; x\n;only\n//only\r\n", "k.s");
  REQUIRE(program.packets.size() == 3);
  CHECK(program.packets[0].comment == " é");
  CHECK(program.packets[1].comment == " 二");
  CHECK(program.packets[2].comment == " ∑ ; x");
}

TEST_CASE("mnemonics, suffixes and registers are read in either case", "[isa][assembler]") {
  CHECK(first_packet("vfmulas32.m2 vr0, Vr1, vR2, VR3") == "VFMULAS32.M2 VR0, VR1, VR2, VR3");
  CHECK(first_packet("sldw *+ar8[or9], r1") == "SLDW *+AR8[OR9], R1");
  CHECK(first_packet("sbale r1, r1, r2") == "SBALE2 R1, R1, R2");
}

TEST_CASE("windows line ends and a byte order mark are no obstacle", "[isa][assembler]") {
  CHECK(packets_of("\xEF\xBB\xBFSNOP 1\r\nSNOP 2\r\n").size() == 2);
}

TEST_CASE("a suffix chooses the SMAC or VMAC unit", "[isa][assembler]") {
  CHECK(unit_of("SVBCAST.M2 R1, VR1") == Unit::SMAC2);
  CHECK(unit_of("VFMULAS32.M3 VR0, VR1, VR2, VR3") == Unit::VMAC3);
  CHECK(unit_of("SMOVI.M1 0, R44") == Unit::SMAC1);
  CHECK(unit_of("VMOVI.M1 0, VR1") == Unit::VMAC1);
}

TEST_CASE("without a suffix an instruction issues to SIEU or VIEU", "[isa][assembler]") {
  CHECK(unit_of("SMOVI 8, R29") == Unit::SIEU);
  CHECK(unit_of("SADDA R29, AR10, AR10") == Unit::SIEU);
  CHECK(unit_of("VMOVI 0x3F8000003F800000, VR32") == Unit::VIEU);
  CHECK(unit_of("VBALE2 VR0, VR1, VR2") == Unit::VIEU);
  CHECK(unit_of("SLDW *AR8, R1") == Unit::SLDST);
  CHECK(unit_of("SBR R63") == Unit::SBR);
}

TEST_CASE("memory operations take VLDST1 then VLDST2, with or without .LS", "[isa][assembler]") {
  const Program program = assemble("VLDW *AR0, VR1 | VLDW.LS *+AR0[1], VR2", "k.s");
  CHECK(program.packets[0].instructions[0].unit == Unit::VLDST1);
  CHECK(program.packets[0].instructions[1].unit == Unit::VLDST2);
  CHECK(print(program.packets[0]) == "VLDW *AR0, VR1 | VLDW *+AR0[1], VR2");
  CHECK(unit_of("SLDW.LS *AR8, R1") == Unit::SLDST);
}

TEST_CASE("address modes", "[isa][assembler]") {
  const auto memory = [](const std::string& text) {
    return std::get<MemoryOperand>(first_operand("VLDDW " + text + ", VR23:VR22"));
  };
  CHECK(memory("*AR7").mode == AddressMode::plain);
  CHECK(memory("*+AR0[160]") == MemoryOperand{{RegisterFile::AR, 0}, AddressMode::plus, std::nullopt, 160});
  CHECK(memory("*-AR1[3]") == MemoryOperand{{RegisterFile::AR, 1}, AddressMode::minus, std::nullopt, 3});
  CHECK(memory("*AR4++[OR2]") ==
        MemoryOperand{{RegisterFile::AR, 4}, AddressMode::post_increment, Register{RegisterFile::OR, 2}, 0});
  CHECK(memory("*AR4--[OR2]").mode == AddressMode::post_decrement);
  CHECK(memory("* AR4 ++ [ 2 ]").index == 2);
}

TEST_CASE("a register pair is written high:low", "[isa][assembler]") {
  CHECK(std::get<RegisterPair>(last_operand("VLDDW *AR0, VR23:VR22")).low == Register{RegisterFile::VR, 22});
  CHECK(std::get<RegisterPair>(last_operand("SLDDW *AR8, R1:R0")).high() == Register{RegisterFile::R, 1});
}

TEST_CASE("immediates are decimal, hexadecimal, negative or .equ names, in expressions", "[isa][assembler]") {
  const auto value = [](const std::string& text) {
    return std::get<Immediate>(first_operand(".equ SIX, 6\nSMOVI " + text + ", R1")).value;
  };
  CHECK(value("42") == 42);
  CHECK(value("-1") == -1);
  CHECK(value("0x10") == 16);
  CHECK(value("SIX*2+1") == 13);
  CHECK(value("(1<<5) - SIX/4 % 2 + 0") == 31);
  CHECK(value("0xFFFFFFFFFFFFFFFF") == -1);
  CHECK(value("-64>>2") == -16);
  CHECK(value("~0") == -1);
}

TEST_CASE("VMOVI takes all 64 bits", "[isa][assembler]") {
  CHECK(std::get<Immediate>(first_operand("VMOVI 0xBF800000BF800000, VR1")).value ==
        static_cast<std::int64_t>(0xBF800000BF800000ull));
}

TEST_CASE("%n is R10, R12, R14, ... unless something else is said", "[isa][assembler]") {
  CHECK(first_packet("SLT R11, %1, R0") == "SLT R11, R12, R0");
  CHECK(first_packet("SMVAGA.M1 %0, AR0") == "SMVAGA.M1 R10, AR0");
  const AssembleOptions options{{{RegisterFile::R, 20}}};
  CHECK(print(assemble("SADD %0, %0, %0", "k.s", options).packets[0]) == "SADD R20, R20, R20");
}

TEST_CASE("%n is the n-th .param, and operands given from outside move the .param with it", "[isa][assembler]") {
  const std::string text = ".param x, R30, value\n.param y, R31, count\n  SADD %0, %1, %1\n";
  CHECK(first_packet(text) == "SADD R30, R31, R31");
  const Program moved = assemble(text, "k.s", {{{RegisterFile::R, 5}}});
  CHECK(print(moved.packets[0]) == "SADD R5, R31, R31");
  CHECK(moved.parameters[0].reg == Register{RegisterFile::R, 5});
  CHECK(moved.parameters[1].reg == Register{RegisterFile::R, 31});
}

TEST_CASE("a target is a label or a register", "[isa][assembler]") {
  CHECK(std::holds_alternative<Register>(first_operand("SBR R63")));
  CHECK(std::holds_alternative<Target>(first_operand("x: SBR x")));
}

TEST_CASE("a program is named after its file", "[isa][assembler]") {
  const Program program = assemble("SNOP 1", "some/folder/gemm.v2.s");
  CHECK(program.name == "gemm.v2");
  CHECK(program.file == "some/folder/gemm.v2.s");
  CHECK(program.packets[0].instructions[0].place == Place{"some/folder/gemm.v2.s", 1, 1});
}

TEST_CASE("a file that cannot be read is an IsaError", "[isa][assembler]") {
  CHECK_THROWS_WITH(assemble_file("/nonexistent/k.s"), Contains("/nonexistent/k.s") && Contains("cannot read"));
  CHECK_THROWS_AS(assemble_file("/tmp"), IsaError);
}

TEST_CASE("register names are parsed strictly", "[isa][assembler]") {
  CHECK(parse_register("vr63") == Register{RegisterFile::VR, 63});
  CHECK(parse_register("SVR15") == Register{RegisterFile::SVR, 15});
  for (const char* wrong : {"VR64", "AR16", "R01", "R", "R-1", "R100", "X3", "", "R1x"}) {
    INFO(wrong);
    CHECK_FALSE(parse_register(wrong).has_value());
  }
}
