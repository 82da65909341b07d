// SPDX-License-Identifier: Apache-2.0
// .linear as text: directives, names, what is refused and where. That schedules compute the right bits is shown in
// tests/sim/core/linear_test.cpp.
#include "support.h"

using namespace mtsim::isa;
using Catch::Matchers::Contains;

namespace {

const std::string k_scale =  // y[i] = x[i] + x[i]^2, 256 bytes an iteration
    ".param x, R10, pointer am\n.param y, R12, pointer am\n.param n, R14, count\n"
    ".linear\n.independent\n.reg AR, px, py\n.reg VR, a0, a1, b0, b1\n.reg R, k\n"
    "SMVAGA x, px\nSMVAGA y, py\nSADD 0, n, k\n"
    "loop: .trip 4\n"
    "VLDDW *px++[16], a1:a0\nVFMULAS32 a0, a0, a0, b0\nVFMULAS32 a1, a1, a1, b1\nVSTDW b1:b0, *py++[16]\n"
    "SSUB 1, k, k\n[k] SBR loop\nSBR R63\n.endlinear\n";

std::vector<std::string> warnings_of(const Program& program, const Pipeline& pipeline) {
  std::vector<std::string> lines;
  for (const Diagnostic& diagnostic : check(program, pipeline)) {
    if (diagnostic.severity != Severity::note) lines.push_back(diagnostic.str());
  }
  return lines;
}

std::string linear_errors(const std::string& lines) { return errors_of(".linear\n" + lines + "\n.endlinear"); }

}  // namespace

TEST_CASE("a counted loop is pipelined: one iteration every initiation interval", "[isa][linear]") {
  const Program program = assemble(k_scale, "k.s");
  CHECK(warnings_of(program, {}).empty());
  const int kernel = program.labels.at("loop.kernel");
  int cycles = 0;
  for (int p = kernel; cycles < 7; ++p) cycles += program.packets[static_cast<std::size_t>(p)].cycles();
  CHECK(cycles == 7);  // one load and one store, two FMA: only SBR's delay slots bound it
  CHECK(print(program.packets[static_cast<std::size_t>(kernel)]).find("SBR loop.kernel") != std::string::npos);
}

TEST_CASE("the report says what bounds a loop and what a shorter interval would need", "[isa][linear]") {
  const LoopReport report = assemble(k_scale, "k.s").linear_loops.at(0);
  CHECK(report.label == "loop");
  CHECK(report.pipelined);
  CHECK(report.interval == 7);
  CHECK(report.is_proved());
  CHECK(report.stages == 3);  // load 9, FMA 6, store: 16 cycles
  CHECK_FALSE(report.guarded);
  CHECK(report.prologue_cycles == 14);
  CHECK(report.blocked.at(0).interval == 6);
  CHECK(report.blocked.at(0).reason == "SBR delay slots");
  CHECK_THAT(print(report), Contains("initiation interval 7 (proved: it equals the bound)"));
}

TEST_CASE("a recurrence bounds a loop, with its instructions and lines", "[isa][linear]") {
  const std::string text =
      ".linear\n.reg VR, a\n.reg R, n\nVMOVI 0, a\nSMOVI24 9, n\nloop:\nVFMULAS32 a, a, a, a\nVFMULAS32 a, a, a, a\n"
      "SSUB 1, n, n\n[n] SBR loop\nSBR R63\n.endlinear\n";
  const LoopReport report = assemble(text, "k.s").linear_loops.at(0);
  CHECK(report.recurrence.cycles == 12);
  CHECK(report.interval == 12);
  REQUIRE(report.recurrence.edges.size() == 2);
  CHECK_THAT(report.recurrence.edges[0] + report.recurrence.edges[1],
             Contains("VFMULAS32 (line 8) to VFMULAS32 (line 7): 6 cycles in the next iteration, flow through a"));
}

TEST_CASE("where memory holds a loop up the report names the promise that would help", "[isa][linear]") {
  std::string text = k_scale;
  text.replace(text.find(".independent\n"), 13, "");
  const LoopReport report = assemble(text, "k.s").linear_loops.at(0);
  CAPTURE(print(report));
  CHECK(report.bound() == 16);
  CHECK(report.independent_bound == 7);
  CHECK_THAT(print(report), Contains("nothing shows that VSTDW (line 15) and VLDDW (line 12) touch different bytes: "
                                     ".independent promises it") &&
                                Contains("and the bound is 7\n"));
  CHECK(assemble(k_scale, "k.s").linear_loops.at(0).independent_bound == 0);
  // One address register: the promise says nothing of it.
  const std::string in_place =
      ".linear\n.reg AR, p\n.reg VR, a, b\n.reg R, n\nSMVAGA R10, p\nSMOVI24 9, n\nloop:\nVLDW *p, a\n"
      "VFMULAS32 a, a, a, b\nVSTW b, *p\nSSUB 1, n, n\n[n] SBR loop\nSBR R63\n.endlinear\n";
  const LoopReport kept = assemble(in_place, "k.s").linear_loops.at(0);
  CHECK(kept.bound() == 16);
  CHECK(kept.independent_bound == 0);
  CHECK(print(kept).find(".independent") == std::string::npos);
}

TEST_CASE("SADD -1 counts a loop down as SSUB 1 does", "[isa][linear]") {
  std::string text = k_scale;
  text.replace(text.find("SSUB 1"), 6, "SADD -1");
  CHECK(assemble(text, "k.s").fingerprint() == assemble(k_scale, "k.s").fingerprint());
  text.replace(text.find("SADD -1"), 7, "SADD -2");
  const LoopReport report = assemble(text, "k.s").linear_loops.at(0);
  CHECK_FALSE(report.pipelined);
  CHECK_THAT(report.why_not, Contains("other than one SSUB 1, n, n or SADD -1, n, n: SADD (line "));
}

TEST_CASE("a value that outlives its register bounds nothing: the report shows it beside the bound", "[isa][linear]") {
  const std::string text =
      ".linear\n.independent\n.reg AR, p, q\n.reg VR, a, b, c, d, z\n.reg R, n\n"
      "SMVAGA R10, p\nSMVAGA R12, q\nVMOVI 0, z\nSMOVI24 9, n\nloop:\n"
      "VLDW *p++[16], a\nVFMULAS32 a, a, z, b\nVFMULAS32 b, b, z, c\nVFMULAS32 c, a, z, d\nVSTW d, *q++[16]\n"
      "SSUB 1, n, n\n[n] SBR loop\nSBR R63\n.endlinear\n";
  const LoopReport report = assemble(text, "k.s").linear_loops.at(0);
  CHECK(report.bound() == 7);
  CHECK(report.recurrence.cycles == 1);
  CHECK(report.lifetime.cycles == 13);  // a is there after 9 cycles and read 12 cycles later; the next load takes 9
  CHECK(report.copies == 1);
  CHECK(report.copied_bound == 7);
  CHECK(report.interval == 7);
  CHECK(report.is_proved());
  CHECK_THAT(print(report), Contains("lifetime bound     13") && Contains("with 1 copy: 7"));
}

TEST_CASE("nothing is called proved that only the registers forbid", "[isa][linear]") {
  // A pair cannot be copied: it is read 6 cycles after it lands, and the next load would land in the 8th cycle.
  const std::string text =
      ".linear\n.independent\n.reg AR, p, q\n.reg VR, a0, a1, b, c, z\n.reg R, n\n"
      "SMVAGA R10, p\nSMVAGA R12, q\nVMOVI 0, z\nSMOVI24 9, n\nloop:\n"
      "VLDDW *p++[16], a1:a0\nVFMULAS32 a0, a0, z, b\nVFMULAS32 b, b, z, c\nVSTDW a1:a0, *q++[16]\n"
      "VMOV c, a0\nVSTDW a1:a0, *q++[16]\nSSUB 1, n, n\n[n] SBR loop\nSBR R63\n.endlinear\n";
  const LoopReport report =
      assemble(text, "k.s", {.operands = {}, .defines = {}, .pipeline = {}, .prove_loops = true}).linear_loops.at(0);
  CAPTURE(print(report));
  CHECK(report.bound() == 7);
  CHECK(report.lifetime.cycles > 7);
  CHECK(report.interval == report.lifetime.cycles);
  CHECK_FALSE(report.is_proved());
  CHECK(report.refuted_here);
  CHECK_THAT(print(report), Contains("proved for these registers") && Contains("a value that lives too long"));
}

TEST_CASE("what stands in the way of an interval that stays open has a name", "[isa][linear]") {
  // VIEU has one slot: its row is full at the bound of 8, and a chain through it finds no place.
  const LoopReport report =
      assemble_file(MTSIM_SOURCE_DIR "/kernels/rope/rope_half.s",
                    {.operands = {}, .defines = {{"CHUNKS", 1}, {"HEADS", 1}, {"FP16", 1}}, .pipeline = {}})
          .linear_loops.at(0);
  CAPTURE(print(report));
  REQUIRE(report.interval > report.bound());
  CHECK_FALSE(report.is_proved());
  CHECK_THAT(report.blocked.at(0).reason, Contains("found no place: VIEU takes 8 of 8 slots"));
}

TEST_CASE("fewer iterations than stages: a second loop behind a test, unless .trip promises enough", "[isa][linear]") {
  std::string text = k_scale;
  text.replace(text.find(" .trip 4"), 8, "");
  const Program guarded = assemble(text, "k.s");
  CHECK(guarded.linear_loops.at(0).guarded);
  CHECK(guarded.labels.count("loop.simple") == 1);
  CHECK(guarded.labels.count("loop.done") == 1);
  CHECK(warnings_of(guarded, {}).empty());
  CHECK(assemble(k_scale, "k.s").labels.count("loop.simple") == 0);
}

TEST_CASE(".region in linear code covers the packets of its lines", "[isa][linear]") {
  const Program program = assemble(
      ".linear\n.reg R, a\n.region one\nSMOVI24 1, a\n.endregion\n.region two\nSADD a, a, a\nSBR R63\n.endregion\n"
      ".endlinear\n",
      "k.s");
  REQUIRE(program.regions.size() == 2);
  CHECK(program.regions[0].first == 0);
  CHECK(program.regions[0].last == 1);
  CHECK(program.regions[1].first == 1);
  CHECK(program.regions[1].last == static_cast<int>(program.packets.size()));
  CHECK(print(assemble(print(program), "k.s")) == print(program));
}

TEST_CASE("packets may branch to a loop in linear code", "[isa][linear]") {
  const std::string text =
      "SMOVI24 3, R0\nSBR loop\nSNOP 6\n.linear\nSMOVI24 9, R0\nloop:\nSSUB 1, R0, R0\n[R0] SBR loop\nSBR R63\n"
      ".endlinear\n";
  CHECK(assemble(text, "k.s").labels.count("loop") == 1);
}

TEST_CASE("fmt keeps .linear as it is: same text again, same packets", "[isa][linear]") {
  const std::string text = "; head\n" + k_scale.substr(0, k_scale.find("VLDDW")) + "; a comment\n" +
                           k_scale.substr(k_scale.find("VLDDW")) + "; foot\n";
  const Program program = assemble(text, "k.s");
  const std::string printed = print(program);
  CHECK_THAT(printed, Contains(".linear\n.independent\n.reg AR, px, py\n"));
  CHECK_THAT(printed, Contains("; a comment\n  VLDDW *px++[16], a1:a0\n"));
  CHECK(printed.find(".M1") == std::string::npos);
  const Program again = assemble(printed, "k.s");
  CHECK(again.fingerprint() == program.fingerprint());
  CHECK(print(again) == printed);
  const Program packets = assemble(print_packets(program), "k.s");
  CHECK(packets.fingerprint() == program.fingerprint());
}

TEST_CASE("linear code is scheduled for the machine it is assembled for", "[isa][linear]") {
  Pipeline machine;
  machine.override(Mnemonic::VFMULAS32, 8);
  machine.override(Mnemonic::VLDDW, 12);
  machine.remove(Unit::VMAC3);
  const Program program = assemble(k_scale, "k.s", {.operands = {}, .defines = {}, .pipeline = machine});
  CHECK(program.scheduled_for == machine);
  CHECK(warnings_of(program, machine).empty());
  for (const Packet& packet : program.packets) {
    for (const Instruction& instruction : packet.instructions) CHECK(instruction.unit != Unit::VMAC3);
  }
}

TEST_CASE("hand packets beside linear code keep their own latencies and are refused on another machine",
          "[isa][linear]") {
  Pipeline machine;
  machine.override(Mnemonic::VFMULAS32, 8);
  const std::string hand = "VMOVI 0, VR0\nVFMULAS32.M1 VR0, VR0, VR0, VR1\nSNOP 5\nVMOV VR1, VR2\nSBR R63\nSNOP 6\n";
  const Program program = assemble(hand + ".linear\n.reg R, a\nSMOVI24 1, a\nSBR R63\n.endlinear\n", "k.s",
                                   {.operands = {}, .defines = {}, .pipeline = machine});
  CHECK(program.scheduled_for == Pipeline{});
  const auto found = warnings_of(program, machine);
  REQUIRE_FALSE(found.empty());
  CHECK_THAT(found[0], Contains("gets the old value"));
}

TEST_CASE(".linear says what is wrong and where", "[isa][linear]") {
  const auto c = GENERATE(
      std::pair{"SADD 1, R1, R1 | SADD 1, R2, R2", "k.s:2:16: error: '|' in .linear"},
      std::pair{"SNOP 3", "k.s:2:1: error: SNOP in .linear"},
      std::pair{"SADD.M1 1, R1, R1", "k.s:2:5: error: unit suffix '.M1' in .linear"},
      std::pair{".reg XR, a\nSADD 1, R1, R1", "k.s:2:6: error: 'XR' is not a register file"},
      std::pair{".reg R, R5\nSADD 1, R1, R1", "k.s:2:9: error: .reg 'R5' has the name of a register"},
      std::pair{".reg R, a, a\nSADD 1, R1, R1", "k.s:2:12: error: .reg a is declared twice"},
      std::pair{".reg R, a\nSADD 1, a, b", "k.s:3:12: error: unknown register 'b'"},
      std::pair{".reg R, a, b\nSADD 1, a, b", "k.s:3:1: error: 'a' may be read before anything writes it"},
      std::pair{".reg VR, a\nSADD 1, a, R1", "k.s:3:9: error: operand 2 of SADD must be R, got 'a'"},
      std::pair{".trip 4\nSADD 1, R1, R1", "k.s:2:7: error: .trip stands directly behind the label"},
      std::pair{"l: .trip 0\nSADD 1, R1, R1", "k.s:2:10: error: .trip 0: at least 1"},
      std::pair{"l: .trip 4, 4\nSADD 1, R1, R1", "k.s:2:10: error: .trip takes one number"},
      std::pair{"SADD 1, R1, R1\n.independent", "k.s:3:1: error: .independent stands behind"},
      std::pair{".linear", "k.s:2:1: error: .linear inside of the .linear of line 1"},
      std::pair{".reg VR, a, b, c\nVLDDW *AR0, a:b\nVLDDW *AR0, a:c", "k.s:4:13: error: 'a:c' cannot be a pair"},
      std::pair{".reg VR, a, b\nVLDDW *AR0, a:b\nVLDDW *AR0, b:a", "k.s:4:13: error: 'b:a' cannot be a pair"},
      std::pair{".reg AR, p\n.reg VR, v\n.reg R, r\nSMVAGA R1, p\nVLDW *p, v\nSLDW *p, r",
                "k.s:7:1: error: 'p' addresses vector and scalar memory"},
      std::pair{"SBR nowhere", "k.s:2:1: error: unknown label 'nowhere'"});
  CHECK_THAT(linear_errors(c.first), Contains(c.second));
}

TEST_CASE(".linear that is not closed, or has nothing in it, is refused", "[isa][linear]") {
  CHECK_THAT(errors_of(".linear\nSADD 1, R1, R1"), Contains("k.s:1:1: error: .linear is not closed"));
  CHECK_THAT(errors_of(".linear\n.endlinear"), Contains("k.s:2:1: error: .linear has no instructions"));
  CHECK_THAT(errors_of(".endlinear"), Contains("k.s:1:1: error: .endlinear outside of .linear"));
  CHECK_THAT(errors_of(".reg R, a"), Contains("k.s:1:1: error: .reg outside of .linear"));
}

TEST_CASE("more live values than registers: the error says how many and where", "[isa][linear]") {
  std::string lines = ".rept 70, i\n.reg VR, v\\i\nVMOVI \\i, v\\i\n.endr\n.reg AR, p\nSMVAGA R10, p\n";
  lines += ".rept 70, i\nVSTW v\\i, *p++[OR0]\n.endr\n.rept 70, i\nVSTW v\\i, *p++[OR0]\n.endr";
  CHECK_THAT(linear_errors(lines),
             Contains("out of registers: 70 VR registers are live at once, and 64 can hold a value"));
}

TEST_CASE(".rept counts for its body, .if chooses lines", "[isa][directive]") {
  const std::string text =
      ".equ WIDE, 1\n.macro both n\n.rept 2, i\nSADD.M1 \\n, R1, R2\\i\n.endr\n.endm\n"
      ".rept 2, j\n.if \\j == WIDE\nSADD.M1 \\j*4, R1, R3\\j\n.else\nboth \\j+7\n.endif\n.endr";
  CHECK(packets_of(text) == std::vector<std::string>{"SADD.M1 7, R1, R20", "SADD.M1 7, R1, R21", "SADD.M1 4, R1, R31"});
  CHECK_THAT(errors_of(".if 1\nSNOP 1"), Contains("k.s:1:1: error: .if without .endif"));
  CHECK_THAT(errors_of("SNOP 1\n.else"), Contains("k.s:2:1: error: .else without .if"));
  CHECK_THAT(errors_of(".rept 2, 3\nSNOP 1\n.endr"), Contains(".rept counter '3' is not a name"));
}
