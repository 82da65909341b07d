// SPDX-License-Identifier: Apache-2.0
#include "isa/schedule_view.h"

#include "support.h"

using namespace mtsim::isa;
using Catch::Matchers::Contains;

namespace {

const std::string k_text =
    "  SMOVI24 8, R0\n"
    "loop: VLDW *AR0++[OR0], VR1\n"
    "| SSUB.M1 1, R0, R0\n"
    "  VFMULAS32.M1 VR1, VR2, VR3, VR3 | VFMULAS32.M2 VR1, VR2, VR4, VR4\n"
    "  [R0] SBR loop\n"
    "  VFMULAS32.M1 VR1, VR2, VR5, VR5\n"
    "  [!R0] SBR R63\n"
    ".region tail\n"
    "  SNOP 6\n"
    ".endregion\n";

}  // namespace

TEST_CASE("a loop's initiation interval counts its packets, idles and delay slots", "[isa][schedule]") {
  const Program program = assemble(k_text, "k.s");
  const auto found = loops(program, program.scheduled_for);
  REQUIRE(found.size() == 1);
  CHECK(found[0].label == "loop");
  CHECK(found[0].first == 1);
  CHECK(found[0].last == 7);  // the SNOP is cut by the branch
  CHECK(found[0].initiation_interval == 9);
  CHECK(found[0].issues[static_cast<std::size_t>(Unit::VMAC1)] == 2);
  CHECK(found[0].issues[static_cast<std::size_t>(Unit::SBR)] == 2);
  CHECK(found[0].busiest_slot == 2);
}

TEST_CASE("a body with another label or branch is no single-block loop", "[isa][schedule]") {
  const auto count = [](const std::string& text) {
    const Program program = assemble(text, "k.s");
    return loops(program, program.scheduled_for).size();
  };
  CHECK(count("a: SNOP 1\n SBR a\n SNOP 6\n") == 1);
  CHECK(count("a: SNOP 1\nb: SNOP 1\n SBR a\n SNOP 6\n") == 0);
  CHECK(count("a: [R1] SBR c\n [R0] SBR a\n SNOP 6\nc: SNOP 1\n") == 0);
  CHECK(count("a: SNOP 1\n SBR a\n SNOP 5\n") == 0);  // the delay slots run past the end
  CHECK(count("a: SBR b\n SNOP 6\nb: SNOP 1\n") == 0);
}

TEST_CASE("the schedule has a row a cycle and a column for each unit in use", "[isa][schedule]") {
  const Program program = assemble(k_text, "k.s");
  const std::string text = schedule_text(program, program.scheduled_for);
  CHECK_THAT(text, Contains("cycle | SMAC1"));
  CHECK_THAT(text, Contains("| VMAC2") && !Contains("VMAC3") && !Contains("SLDST"));
  CHECK_THAT(text, Contains("    6 | SNOP 6"));
  CHECK_THAT(text, Contains("initiation interval 9 cycles, busiest slot 2 cycles"));
  CHECK_THAT(text, Contains("VMAC1     2 of 9 slots   22.2 %"));
  // The load of cycle 1 is still on its way one cycle later.
  CHECK_THAT(text, Contains("VR1+8"));
}

TEST_CASE("columns line up", "[isa][schedule]") {
  const Program program = assemble(k_text, "k.s");
  const std::string text = schedule_text(program, program.scheduled_for);
  const std::size_t header = text.find("cycle |");
  const std::size_t column = text.find("| VMAC1") - header;
  const std::size_t row = text.find("    2 |");
  CHECK(text.substr(row + column, 14) == "| VFMULAS32.M1");
}

TEST_CASE("a part is a loop, a region or a label", "[isa][schedule]") {
  const Program program = assemble(k_text, "k.s");
  CHECK_THAT(schedule_text(program, program.scheduled_for, "tail"),
             Contains("1 packets, 6 cycles") && !Contains("VMAC1"));
  // In steady state results of the pass before are in flight when the loop begins.
  Pipeline slow;
  slow.override(Mnemonic::VLDW, 12);
  CHECK_THAT(schedule_text(program, slow, "loop"), Contains("VR1+3 VR1+12"));
  CHECK_THROWS_WITH(schedule_text(program, program.scheduled_for, "lop"),
                    Contains("no loop, region or label 'lop'") && Contains("did you mean 'loop'?") && Contains("tail"));
}

TEST_CASE("a part that is no loop has the results in flight that the whole file shows there", "[isa][schedule]") {
  const Program program = assemble(
      "a: VLDW *AR0, VR1\n  SNOP 2\nmiddle: VFMULAS32.M1 VR2, VR2, VR2, VR3\n  SADD.M1 1, R1, R1\n  SBR R63\n"
      "  SNOP 6\nb: SADD.M1 1, R2, R2\n  SBR R63\n  SNOP 6\n",
      "k.s");
  const auto column = [](const std::string& text, const std::string& instruction) {
    const std::size_t row = text.find(instruction), end = text.find('\n', row);
    return text.substr(text.rfind('|', end), end - text.rfind('|', end));
  };
  const std::string whole = schedule_text(program, {}), part = schedule_text(program, {}, "middle");
  CHECK(column(part, "SADD.M1 1, R1") == "| VR1+5 VR3+5");
  for (const std::string instruction : {"VFMULAS32", "SADD.M1 1, R1", "SBR R63"}) {
    CHECK(column(part, instruction) == column(whole, instruction));
  }
  // Nothing falls into b: what an entry finds in flight is not what a return left.
  CHECK(column(schedule_text(program, {}, "b"), "SADD.M1 1, R2") == "|");
}

TEST_CASE("the label of a .linear loop shows its kernel", "[isa][schedule][linear]") {
  const std::string text =
      ".linear\n.independent\n.reg AR, px, py\n.reg VR, a, b\n.reg R, k\nSMVAGA R10, px\nSMVAGA R12, py\nSMOV R14, k\n"
      "loop:\nVLDW *px++[16], a\nVFMULAS32 a, a, a, b\nVSTW b, *py++[16]\nSSUB 1, k, k\n[k] SBR loop\nSBR R63\n"
      ".endlinear\n";
  const Program program = assemble(text, "k.s");
  REQUIRE(program.labels.count("loop") == 0);
  CHECK(named_part(program, {}, "loop") == "loop.kernel");
  CHECK(schedule_text(program, {}, "loop") == schedule_text(program, {}, "loop.kernel"));
  CHECK_THAT(schedule_text(program, {}, "loop"),
             Contains("k loop.kernel: ") && Contains("| in flight") && Contains("loop 'loop.kernel'"));
  CHECK_THROWS_WITH(schedule_text(program, {}, "lop"), Contains("did you mean 'loop'?"));
  // Also where packets branch to the label, which then stands in front of the test for few iterations.
  const Program entered = assemble(
      "SMOVI24 9, R0\nSBR loop\nSNOP 6\n.linear\n.independent\nSMOVI24 8, R0\nloop:\nVLDW *AR0++[16], VR0\n"
      "VFMULAS32 VR0, VR0, VR0, VR1\nVSTW VR1, *AR1++[16]\nSSUB 1, R0, R0\n[R0] SBR loop\nSBR R63\n.endlinear\n",
      "k.s");
  REQUIRE(entered.labels.count("loop") == 1);
  CHECK(named_part(entered, {}, "loop") == "loop.kernel");
}

TEST_CASE("latencies of another machine change what is in flight", "[isa][schedule]") {
  const Program program = assemble(k_text, "k.s");
  Pipeline slow;
  slow.override(Mnemonic::SBR, 9);
  slow.override(Mnemonic::VLDW, 12);
  CHECK(loops(program, slow).at(0).initiation_interval == 11);
  CHECK_THAT(schedule_text(program, slow), Contains("VR1+12"));
}
