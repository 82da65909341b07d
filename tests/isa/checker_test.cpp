// SPDX-License-Identifier: Apache-2.0
// Each finding of the checker once where it must speak and once where it must not.
#include <fmt/format.h>

#include <algorithm>

#include "support.h"

using namespace mtsim::isa;
using Catch::Matchers::Contains;

namespace {

const std::string k_return = "  SBR R63\n  SNOP 6\n";

Pipeline machine_with(Mnemonic mnemonic, int cycles) {
  Pipeline pipeline;
  pipeline.override(mnemonic, cycles);
  return pipeline;
}

}  // namespace

TEST_CASE("two writes to one register that land together are an error", "[isa][checker]") {
  // SADDA to AR0 takes 3 cycles, SMVAGA 2.
  const auto found = findings("  SADDA.M1 8, AR0, AR0\n  SMVAGA.M2 R1, AR0\n" + k_return, "waw-same-cycle");
  REQUIRE(found.size() == 1);
  CHECK(found[0].severity == Severity::error);
  CHECK(found[0].place.line == 2);
  CHECK_THAT(found[0].message, Contains("SADDA (line 1) and SMVAGA (line 2) write AR0"));
  CHECK(findings("  SADDA.M1 8, AR0, AR0\n  SNOP 1\n  SMVAGA.M2 R1, AR0\n" + k_return, "waw-same-cycle").empty());
  CHECK(findings("  SADD.M1 1, R1, R2 | SADD.M2 2, R1, R2\n" + k_return, "waw-same-cycle").size() == 1);
}

TEST_CASE("writes around a loop's back edge are seen", "[isa][checker]") {
  const std::string body =
      "loop: VMOVI 0, VR1\n  SMOVI24 1, R0\n  [R0] SBR loop\n  SNOP 1\n  VLDW *AR0, VR1\n  SNOP 4\n";
  // Issued 5 cycles before the loop starts over: lands 4 cycles into the next pass, with nothing else.
  CHECK(findings(body, "waw-same-cycle").empty());
  // From the first delay slots the load lands exactly when the VMOVI of the next pass does.
  CHECK(findings("loop: VMOVI 0, VR1\n  VLDW *AR0, VR1\n  [R0] SBR loop\n  SNOP 6\n", "waw-same-cycle").size() == 1);
}

TEST_CASE("opposite predicates may write one register", "[isa][checker]") {
  CHECK(findings("  [R0] SADD.M1 1, R1, R2 | [!R0] SADD.M2 2, R1, R2\n" + k_return, "waw-same-cycle").empty());
  CHECK(findings("  [R0] SADD.M1 1, R1, R2 | [R0] SADD.M2 2, R1, R2\n" + k_return, "waw-same-cycle").size() == 1);
  CHECK(findings("  [R0] SADD.M1 1, R1, R2 | [!R1] SADD.M2 2, R1, R2\n" + k_return, "waw-same-cycle").size() == 1);
  // In different packets as long as the predicate cannot change in between.
  const std::string second = "  [!R0] SMVAGA.M2 R1, AR0\n" + k_return;
  CHECK(findings("  [R0] SADDA.M1 8, AR0, AR0\n" + second, "waw-same-cycle").empty());
  CHECK(findings("  [R0] SADDA.M1 8, AR0, AR0 | SMOVI24 0, R0\n" + second, "waw-same-cycle").size() == 1);
  CHECK(
      findings("  SFMULS32.M1 R1, R2, R0\n SNOP 2\n  [R0] SADDA.M1 8, AR0, AR0\n" + second, "waw-same-cycle").size() ==
      1);
}

TEST_CASE("a branch taken for certain inside another's delay slots is an error", "[isa][checker]") {
  const auto found = findings("a: SBR a\n  SNOP 4\n  SBR R63\n  SNOP 6\n", "double-branch");
  REQUIRE(found.size() == 1);
  CHECK(found[0].severity == Severity::error);
  CHECK(found[0].place.line == 3);
  CHECK_THAT(found[0].message, Contains("5 cycles after SBR (line 1)"));
  CHECK(findings("a: SBR a\n  SNOP 6\n  SBR R63\n  SNOP 6\n", "double-branch").empty());
  CHECK(findings("a: [R0] SBR a\n  SNOP 5\n  [!R0] SBR R63\n  SNOP 6\n", "double-branch").empty());
  CHECK(findings("a: [R0] SBR a\n  SNOP 5\n  [R0] SBR R63\n  SNOP 6\n", "double-branch").size() == 1);
  CHECK(findings("a: [R0] SBR a\n  SMOVI24 0, R0\n  [R0] SBR R63\n  SNOP 6\n", "double-branch").empty());
  CHECK(findings("a: [R0] SBR a\n  SNOP 5\n  SBR R63\n  SNOP 6\n", "double-branch").empty());
}

TEST_CASE("a slower machine makes a tight read an error", "[isa][checker]") {
  const std::string text = "  VFMULAS32.M1 VR0, VR1, VR2, VR3\n  SNOP 5\n  VSTW VR3, *AR0\n" + k_return;
  CHECK(findings(text, "rebound-read").empty());
  const Pipeline slow = machine_with(Mnemonic::VFMULAS32, 7);
  const auto found = findings(text, "rebound-read", &slow);
  REQUIRE(found.size() == 1);
  CHECK(found[0].severity == Severity::error);
  CHECK(found[0].place.line == 3);
  CHECK_THAT(found[0].message, Contains("VSTW (line 3) reads VR3 6 cycles after VFMULAS32 (line 1)") &&
                                   Contains("the old value") && Contains("7 cycles on this machine, 6 as scheduled"));
  CHECK_THAT(found[0].suggestion, Contains("1 cycle later"));
  CHECK(findings("  VFMULAS32.M1 VR0, VR1, VR2, VR3\n  SNOP 6\n  VSTW VR3, *AR0\n" + k_return, "rebound-read", &slow)
            .empty());
}

TEST_CASE("a faster machine makes a read of the old value an error", "[isa][checker]") {
  const std::string text = "  VLDW *AR0, VR3\n  SNOP 7\n  VSTW VR3, *AR1\n" + k_return;
  CHECK(findings(text, "rebound-read").empty());
  const Pipeline fast = machine_with(Mnemonic::VLDW, 8);
  const auto found = findings(text, "rebound-read", &fast);
  REQUIRE(found.size() == 1);
  CHECK_THAT(found[0].message, Contains("the new value"));
}

TEST_CASE("an instruction on a slot that the machine lacks is an error with the slots that are left",
          "[isa][checker]") {
  Pipeline machine;
  machine.remove(Unit::SMAC2);
  const std::string text = "  SADD.M2 1, R1, R2 | SADD.M1 1, R1, R3\n  SMVAGA.M2 R1, AR0\n" + k_return;
  const auto found = findings(text, "absent-unit", &machine);
  REQUIRE(found.size() == 2);
  CHECK(found[0].str() ==
        "k.s:1:3: error: SADD issues to SMAC2, which this machine does not have; SADD can issue to SMAC1, SIEU here: "
        "schedule the kernel anew");
  CHECK(found[1].place.line == 2);
  CHECK(findings(text, "absent-unit").empty());
}

TEST_CASE(".scheduled_for says what the schedule was written for", "[isa][checker]") {
  const std::string text =
      ".scheduled_for VFMULAS32=7\n  VFMULAS32.M1 VR0, VR1, VR2, VR3\n  SNOP 6\n  VSTW VR3, *AR0\n" + k_return;
  CHECK(findings(text, "rebound-read").empty());
  const Pipeline mt3000;
  CHECK(findings(text, "rebound-read", &mt3000).empty());  // late enough for six cycles too
  const Pipeline slow = machine_with(Mnemonic::VFMULAS32, 8);
  CHECK(findings(text, "rebound-read", &slow).size() == 1);
}

TEST_CASE("two writes that land in another order than scheduled are an error", "[isa][checker]") {
  const std::string text =
      "  VLDW *AR0, VR3\n  SNOP 3\n  VFMULAS32.M1 VR0, VR1, VR2, VR3\n  SNOP 9\n" + k_return;  // 9 against 4 + 6
  CHECK(findings(text, "rebound-read").empty());
  const Pipeline fast = machine_with(Mnemonic::VFMULAS32, 4);
  const auto found = findings(text, "rebound-read", &fast);
  REQUIRE(found.size() == 1);
  CHECK_THAT(found[0].message, Contains("in the other order than scheduled"));
  const Pipeline tie = machine_with(Mnemonic::VFMULAS32, 5);
  CHECK(findings(text, "waw-same-cycle", &tie).size() == 1);
}

TEST_CASE("another number of delay slots is an error", "[isa][checker]") {
  const Pipeline machine = machine_with(Mnemonic::SBR, 6);
  const auto found = findings("SNOP 1\n" + k_return, "rebound-read", &machine);
  REQUIRE(found.size() == 1);
  CHECK_THAT(found[0].message, Contains("SBR has 5 delay slots on this machine and 6 as scheduled"));
}

TEST_CASE("a value overwritten before anything reads it is a warning", "[isa][checker]") {
  const auto found = findings("  SMOVI24 1, R1\n  SMOVI24 2, R1\n  SADD R1, R1, R2\n" + k_return, "overwritten-unused");
  REQUIRE(found.size() == 1);
  CHECK(found[0].severity == Severity::warning);
  CHECK(found[0].place.line == 1);
  CHECK(findings("  SMOVI24 1, R1\n  SADD 0, R1, R2\n| SMOVI.M1 2, R1\n  SADD R1, R1, R3\n" + k_return,
                 "overwritten-unused")
            .empty());
  // A predicated write may leave the value alone.
  CHECK(
      findings("  SMOVI24 1, R1\n  [R0] SMOVI24 2, R1\n  SADD R1, R1, R2\n" + k_return, "overwritten-unused").empty());
  // Read on one of two paths, or left to the caller.
  CHECK(findings("  SMOVI24 1, R1\n" + k_return, "overwritten-unused").empty());
  CHECK(findings("  SMOVI24 1, R1\n  [R0] SBR other\n  SNOP 6\n  SMOVI24 2, R1\nother: SADD R1, R1, R2\n" + k_return,
                 "overwritten-unused")
            .empty());
}

TEST_CASE("a value is live until the overwriting result lands", "[isa][checker]") {
  // The load is issued first, but the old value is read before it lands.
  CHECK(
      findings("  VMOVI 0, VR1\n  VLDW *AR0, VR1\n  SNOP 7\n  VSTW VR1, *AR1\n  SNOP 1\n  VSTW VR1, *AR1\n" + k_return,
               "overwritten-unused")
          .empty());
  CHECK(findings("  VMOVI 0, VR1\n  VLDW *AR0, VR1\n  SNOP 8\n  VSTW VR1, *AR1\n" + k_return, "overwritten-unused")
            .size() == 1);
}

TEST_CASE("half a loaded pair may stay unused", "[isa][checker]") {
  CHECK(findings("  SLDDW *AR8, R3:R2\n  SNOP 6\n  SADD R2, R2, R4\n  SMOVI24 0, R3\n  SADD R3, R3, R4\n" + k_return,
                 "overwritten-unused")
            .size() == 1);  // R4 only
}

TEST_CASE("two results of one unit that land together in one file are a warning", "[isa][checker]") {
  const auto found =
      findings("  SFMULS32.M1 R1, R2, R3\n  SNOP 2\n  SADD.M1 1, R4, R4\n" + k_return, "same-unit-landing");
  REQUIRE(found.size() == 1);
  CHECK(found[0].severity == Severity::warning);
  CHECK_THAT(found[0].message, Contains("two results of SMAC1") && Contains("R3 of SFMULS32 (line 1)"));
  CHECK(findings("  SFMULS32.M1 R1, R2, R3\n  SNOP 2\n  SADD.M2 1, R4, R4\n" + k_return, "same-unit-landing").empty());
  // Different register files: seen on hardware.
  CHECK(findings("  SVBCAST.M1 R1, VR3\n  SNOP 2\n  SADD.M1 1, R4, R4\n" + k_return, "same-unit-landing").empty());
}

TEST_CASE("a read of a register whose result is in flight is a note, one a packet", "[isa][checker]") {
  const auto found =
      findings("  VLDDW *AR0, VR3:VR2\n  SNOP 4\n  VSTDW VR3:VR2, *AR1\n  SNOP 3\n  VSTDW VR3:VR2, *AR1\n" + k_return,
               "read-in-flight");
  REQUIRE(found.size() == 1);
  CHECK(found[0].severity == Severity::note);
  CHECK(found[0].place.line == 3);
  CHECK_THAT(found[0].message, Contains("VSTDW (line 3) reads the old VR2") &&
                                   Contains("VLDDW (line 1) lands 4 cycles later") && Contains("2 such registers"));
}

TEST_CASE("reads in flight that a scheduler made are no notes; those between hand packets and its own are",
          "[isa][checker][linear]") {
  // Passes overlap: the load of a later one is under way while VR of this one is read.
  const std::string loop =
      ".param x, R10, pointer am\n.param y, R12, pointer am\n.param n, R14, count\n"
      ".linear\n.independent\n.reg AR, px, py\n.reg VR, a, b, c, z\n.reg R, k\n"
      "SMVAGA x, px\nSMVAGA y, py\nVMOVI 0, z\nSADD 0, n, k\n"
      "loop: .trip 8\nVLDW *px++[16], a\nVFMULAS32 a, a, z, b\nVFMULAS32 b, a, z, c\nVSTW c, *py++[16]\n"
      "SSUB 1, k, k\n[k] SBR loop\nSBR R63\n.endlinear\n";
  const Program scheduled = assemble(loop, "k.s");
  CHECK(findings(loop, "read-in-flight").empty());
  // As packets that nobody says are a scheduler's, they have such reads.
  CHECK_FALSE(findings(print_packets(scheduled), "read-in-flight").empty());

  // The load lands behind the first packet of the .linear code, which reads VR1.
  const std::string into = "VLDW *AR0, VR1\n.linear\nVSTW VR1, *AR1\nSBR R63\n.endlinear\n";
  REQUIRE(findings(into, "read-in-flight").size() == 1);
  CHECK_THAT(findings(into, "read-in-flight")[0].message, Contains("VSTW (line 3) reads the old VR1"));
  // A wrong schedule stays an error: this one was made for a faster load.
  const Pipeline slow = machine_with(Mnemonic::VLDW, 12);
  const std::vector<Diagnostic> wrong = check(scheduled, slow);
  CHECK(std::count_if(wrong.begin(), wrong.end(),
                      [](const Diagnostic& found) { return found.code == "rebound-read"; }) >= 2);
}

TEST_CASE("a read that several producers reach too late is one error that names them", "[isa][checker]") {
  // VR3 comes from in front of the loop and from the pass before; the loop's own way round has one cycle more.
  const std::string text =
      "  VFMULAS32.M1 VR0, VR1, VR2, VR3\n  SNOP 5\n"
      "loop: VSTW VR3, *AR0\n  [R0] SBR loop\n  VFMULAS32.M1 VR0, VR1, VR2, VR3\n  SNOP 5\n" +
      k_return;
  const Pipeline slow = machine_with(Mnemonic::VFMULAS32, 8);
  const auto found = findings(text, "rebound-read", &slow);
  REQUIRE(found.size() == 1);
  CHECK(found[0].str() ==
        "k.s:3:7: error: VSTW (line 3) reads VR3 6 cycles after VFMULAS32 (line 1) writes it and gets the old value "
        "(also behind VFMULAS32 (line 5)): VFMULAS32 takes 8 cycles on this machine, 6 as scheduled; move the read 2 "
        "cycles later or schedule the kernel anew");
  // Two registers of one packet are two.
  const std::string two =
      "  VFMULAS32.M1 VR0, VR1, VR2, VR3 | VFMULAS32.M2 VR0, VR1, VR2, VR4\n  SNOP 5\n"
      "  VFMULAS32.M1 VR3, VR4, VR2, VR5\n" +
      k_return;
  CHECK(findings(two, "rebound-read", &slow).size() == 2);
}

TEST_CASE("packets that nothing reaches are a warning at the first of them", "[isa][checker]") {
  // A store one packet behind the delay slots of the return: it never issues.
  const auto found =
      findings("  VMOVI 0, VR3\n" + k_return + "  VSTW VR3, *AR1\n  SNOP 1\n  VSTW VR3, *+AR1[16]\n", "unreachable");
  REQUIRE(found.size() == 1);
  CHECK(found[0].severity == Severity::warning);
  CHECK(found[0].place.line == 4);
  CHECK(found[0].message ==
        "VSTW (line 4) to line 6 is never reached: SBR (line 2) has left before it, and no branch leads here");
  CHECK_THAT(found[0].suggestion, Contains("its 6 delay slots"));
  CHECK(findings("  SBR R63\n  SNOP 5\n  VSTW VR3, *AR1\n", "unreachable").empty());
  // Code that only unreached code branches to.
  CHECK(findings(k_return + "  SBR dead\n  SNOP 6\ndead: VSTW VR3, *AR1\n" + k_return, "unreachable").size() == 1);
  // A label that nothing branches to is an entry, whichever entry is looked at.
  CHECK(findings("a: SNOP 1\n" + k_return + "b: VSTW VR3, *AR1\n" + k_return, "unreachable").empty());
  CHECK(findings("a: SNOP 1\n" + k_return + "b: VSTW VR3, *AR1\n" + k_return, "unreachable", nullptr, "a").empty());
  // Padding has no effect.
  CHECK(findings(k_return + "  SNOP 1\n", "unreachable").empty());
  // Both predicates leave; with one of them alone the store is reached.
  const std::string store = "  SNOP 6\n  VSTW VR3, *AR1\n" + k_return;
  CHECK(findings("loop: SSUB.M1 1, R0, R0\n  [R0] SBR loop\n  [!R0] SBR R63\n" + store, "unreachable").size() == 1);
  CHECK(findings("loop: SSUB.M1 1, R0, R0\n  [R0] SBR loop\n" + store, "unreachable").empty());
}

TEST_CASE("only what can be reached from the entry is checked", "[isa][checker]") {
  const std::string text = "good: SNOP 1\n" + k_return + "bad: SADD.M1 1, R1, R2 | SADD.M2 2, R1, R2\n" + k_return;
  CHECK(findings(text, "waw-same-cycle").size() == 1);
  CHECK(findings(text, "waw-same-cycle", nullptr, "good").empty());
  CHECK(findings(text, "waw-same-cycle", nullptr, "bad").size() == 1);
  CHECK_THROWS_WITH(findings(text, "", nullptr, "god"), Contains("did you mean 'good'?"));
}

TEST_CASE("shapes no published kernel shows are named with their first place", "[isa][checker]") {
  const auto shapes = [](const std::string& text) { return assumed_shapes(assemble(text, "k.s")); };
  const auto only = [&](const std::string& text) {
    const auto found = shapes(text);
    INFO(text);
    REQUIRE(found.size() == 1);
    return found[0];
  };
  CHECK(only("VLDW *AR0, VR1 | VSTW VR2, *+AR0[4]") == "load and store in one packet: 1 packet, first at k.s:1:18");
  CHECK_THAT(only("VLDW *AR0, VR1 | VLDW *AR1, VR2"), Contains("different address registers"));
  CHECK_THAT(only("SNOP 1\nSVBCAST.M1 R1, VR1 | SVBCAST.M2 R1, VR2\nSVBCAST.M1 R1, VR1 | SVBCAST.M2 R1, VR2"),
             Contains("two SVBCAST in one packet: 2 packets, first at k.s:2:22"));
  CHECK_THAT(only("[R0] VMOVI 0, VR1"), Contains("predicate on a vector instruction"));
  CHECK_THAT(only("SLDW *AR8++[OR8], R1"), Contains("post-modify of AR8-15"));
  CHECK_THAT(only("VLDW *-AR0[1], VR1"), Contains("negative index"));
  CHECK_THAT(only("VLDW *AR0++[1], VR1"), Contains("post-modify by an immediate"));
  CHECK(shapes("VLDW *AR0++[OR1], VR1 | VLDW *+AR0[OR1], VR2 | SLDW *AR8, R1 | SADD 1, R2, R2 | SVBCAST.M1 R1, VR7")
            .empty());
  const auto notes = findings("VLDW *AR0++[1], VR1\n" + k_return, "assumed-shape");
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].severity == Severity::note);
  CHECK_THAT(notes[0].message, Contains("not known to run on hardware"));
}

TEST_CASE("a software-pipelined loop in the style of Table I has no findings", "[isa][checker]") {
  // Load, pack, broadcast and multiply in one pass each; the accumulator is read again exactly six cycles later.
  const std::string text =
      ".param n, R12, count\n"
      ".param pitch, OR0, value\n"
      "  SSUB.M1 0, R12, R0\n"
      "  SLDH *AR8, R20\n"
      "  SNOP 6\n"
      "loop:\n"
      "  SBALE2 R20, R20, R21 | SSUB.M1 1, R0, R0 | VLDW *AR0++[OR0], VR2\n"
      "  SVBCAST.M1 R21, VR1 | SADDA.M2 4, AR8, AR8\n"
      "  SNOP 1\n"
      "  SLDH *AR8, R20\n"
      "  [R0] SBR loop\n"
      "  SNOP 4\n"
      "  VFMULAS32.M1 VR1, VR2, VR3, VR3\n"
      "  SNOP 1\n"
      "  SBR R63\n"
      "  SNOP 6\n";
  const Program program = assemble(text, "k.s");
  for (const Diagnostic& diagnostic : check(program, program.scheduled_for)) {
    INFO(diagnostic.str());
    CHECK(diagnostic.severity == Severity::note);
  }
}

TEST_CASE("a path off the end of the program is a warning at its last packet", "[isa][checker]") {
  const auto found = findings("  SNOP 1\n  SADD.M1 1, R1, R1\n", "runs-off-end");
  REQUIRE(found.size() == 1);
  CHECK(found[0].severity == Severity::warning);
  CHECK(found[0].place.line == 2);
  CHECK_THAT(found[0].suggestion, Contains("SBR R63"));
  CHECK(findings(k_return, "runs-off-end").empty());
  CHECK(findings("a: SBR a\n  SNOP 6\n", "runs-off-end").empty());
  CHECK(findings("  [R0] SBR R63\n  SNOP 6\n", "runs-off-end").size() == 1);
  CHECK(findings("  SBR end\n  SNOP 6\nend:\n", "runs-off-end").size() == 1);
}

TEST_CASE("a branch whose delay slots reach behind the end is a warning", "[isa][checker]") {
  const auto found = findings("  SBR R63\n  SNOP 4\n", "runs-off-end");
  REQUIRE(found.size() == 1);
  CHECK_THAT(found[0].message, Contains("ends 2 cycles before"));
  CHECK_THAT(found[0].suggestion, Contains("SNOP 2"));
}

TEST_CASE("of two branches with opposite predicates one is taken", "[isa][checker]") {
  const std::string branches = "  [R0] SBR loop\n  [!R0] SBR R63\n  SNOP 6\n";
  CHECK(findings("loop: SSUB.M1 1, R0, R0\n" + branches, "runs-off-end").empty());
  CHECK(findings("loop: SSUB.M1 1, R0, R0\n  SNOP 1\n  [R0] SBR loop | SMOVI24 0, R0\n  [!R0] SBR R63\n  SNOP 6\n",
                 "runs-off-end")
            .size() == 1);
  // R0 is still on its way when the first branch reads it.
  CHECK(findings("loop: SLDH *AR8, R0\n" + branches, "runs-off-end").size() == 1);
}

TEST_CASE("a lost return address is a warning unless it was saved", "[isa][checker]") {
  const auto found = findings("  SMOVI24 1, R63\n" + k_return, "return-overwritten");
  REQUIRE(found.size() == 1);
  CHECK(found[0].place.line == 1);
  CHECK(findings("  SMOV R63, R5\n  SMOVI24 1, R63\n  SMOV R5, R63\n" + k_return, "return-overwritten").empty());
}

TEST_CASE("other delay slots than scheduled are all that is said", "[isa][checker]") {
  const Program program =
      assemble("loop: VMOVI 0, VR1\n  VLDW *AR0, VR1\n  [R0] SBR loop\n  SNOP 6\n" + k_return, "k.s");
  for (const int cycles : {6, 8}) {
    const auto found = check(program, machine_with(Mnemonic::SBR, cycles));
    REQUIRE(found.size() == 1);
    CHECK_THAT(found[0].message, Contains("delay slots"));
  }
}

TEST_CASE("a text with paths without number is checked in part and says so", "[isa][checker]") {
  std::string text = ".scheduled_for VLDDW=63, SBR=1\n";
  constexpr int k_packets = 3000;
  for (int i = 0; i < k_packets; ++i) {
    text += fmt::format("l{}: [R0] SBR l{} | VLDDW *AR0, VR{}:VR{}\n", i, (i * 7919) % k_packets, 2 * (i % 30) + 1,
                        2 * (i % 30));
  }
  CHECK(findings(text, "analysis-stopped").size() == 1);
}

TEST_CASE("a register that is read and nothing writes is a warning at its first read", "[isa][checker]") {
  const auto found = findings("  VLDW *AR1, VR1\n  VLDW *+AR1[16], VR2\n" + k_return, "never-written");
  REQUIRE(found.size() == 1);
  CHECK(found[0].severity == Severity::warning);
  CHECK(found[0].place.line == 1);
  CHECK(found[0].message == "AR1 is read but nothing writes it");
  CHECK(findings("  [R0] SADD.M1 R1, R2, R3\n" + k_return, "never-written").size() == 3);
  CHECK(findings("  VFMULAS32.M1 VR1, VR2, VR3, VR4\n" + k_return, "never-written").size() == 3);
}

TEST_CASE("what an instruction, a .param or a %n gives a register counts as written", "[isa][checker]") {
  CHECK(findings("  SMVAGA.M2 %0, AR1\n  SNOP 1\n  VLDW *AR1, VR1\n" + k_return, "never-written").empty());
  CHECK(findings(".param x, AR1, pointer am\n  VLDW *AR1, VR1\n" + k_return, "never-written").empty());
  CHECK(findings("loop: VLDW *AR1, VR1\n  SMVAGA.M2 %0, AR1\n  SBR loop\n  SNOP 6\n", "never-written").empty());
  // Code that is not reached from the entry reads nothing.
  const std::string two = "a: SBR R63\n  SNOP 6\nb: VLDW *AR1, VR1\n" + k_return;
  CHECK(findings(two, "never-written", nullptr, "a").empty());
  CHECK(findings(two, "never-written", nullptr, "b").size() == 1);
}
