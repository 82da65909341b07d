// SPDX-License-Identifier: Apache-2.0
// A hand schedule on a machine it was not made for: run when it still means the same, refused with the reason
// otherwise.
#include <catch2/catch.hpp>

#include "bench_core.h"

using namespace mtsim;
using namespace mtsim::sim;
using Catch::Matchers::Contains;

namespace {

// What loading the program on that machine says, or "" when it loads.
std::string refusal(const std::string& text, const isa::Pipeline& machine) {
  try {
    const DecodedProgram decoded(isa::assemble(text + k_return, "test.s"), machine);
  } catch (const isa::IsaError& error) {
    return error.what();
  }
  return "";
}

isa::Pipeline without(isa::Unit unit) {
  isa::Pipeline pipeline;
  pipeline.remove(unit);
  return pipeline;
}

}  // namespace

TEST_CASE("a hand schedule that a machine's latencies break is refused, not run wrongly", "[core][schedule]") {
  isa::Pipeline slow;
  slow.override(isa::Mnemonic::VFMULAS32, 8);
  const std::string text = " VFMULAS32.M1 VR1, VR2, VR3, VR10\n SNOP 5\n VFMULAS32.M1 VR1, VR2, VR10, VR11\n";
  CHECK_THAT(refusal(text, slow),
             Contains("test is scheduled for VFMULAS32=6 and this machine has 8: 1 place would get other values"));
  CHECK(refusal(text, {}).empty());
}

TEST_CASE("a machine is not refused for what is wrong on the schedule's own machine too", "[core][schedule]") {
  isa::Pipeline slow;
  slow.override(isa::Mnemonic::SLDH, 8);
  // The two writes of R1 land together on any machine; SLDH is not even used.
  CHECK(refusal(" SADD.M1 1, R2, R1\n| SADD.M2 2, R2, R1\n", slow).empty());
}

TEST_CASE("a program that issues to a slot the machine lacks is refused at each place", "[core][schedule]") {
  const std::string text = " VMOV.M1 VR1, VR2\n| VMOV.M3 VR1, VR3\n VLDW *AR0, VR4\n| VLDW *+AR0[16], VR5\n";
  CHECK(refusal(text, {}).empty());
  const std::string no_vmac3 = refusal(text, without(isa::Unit::VMAC3));
  CHECK_THAT(no_vmac3,
             Contains("test is scheduled for a machine with VMAC3 and this one has none: 1 place cannot issue"));
  CHECK_THAT(no_vmac3, Contains("test.s:2:3: error: VMOV issues to VMAC3, which this machine does not have; "
                                "VMOV can issue to VMAC1, VMAC2, VIEU here"));
  CHECK_THAT(refusal(text, without(isa::Unit::VLDST2)), Contains("test.s:4:3: error: VLDW issues to VLDST2"));
  CHECK(refusal(text, without(isa::Unit::VMAC2)).empty());
}

TEST_CASE("absent slots and other latencies are refused together", "[core][schedule]") {
  isa::Pipeline machine = without(isa::Unit::SMAC2);
  machine.override(isa::Mnemonic::SVBCAST, 5);
  const std::string both = refusal(" SVBCAST.M2 R1, VR1\n SNOP 3\n VMOV VR1, VR2\n", machine);
  CHECK_THAT(both, Contains("with SMAC2 and this one has none: 1 place cannot issue"));
  CHECK_THAT(both, Contains("test is scheduled for SVBCAST=4 and this machine has 5: 1 place would get other values"));
}

TEST_CASE("a schedule that says it does without a slot runs where that slot is absent", "[core][schedule]") {
  const isa::Pipeline machine = without(isa::Unit::VMAC3);
  CHECK(refusal(".scheduled_for -VMAC3\n VMOV.M2 VR1, VR2\n", machine).empty());
  CHECK_THAT(refusal(".scheduled_for -VMAC3\n VMOV.M3 VR1, VR2\n", machine), Contains("1 place cannot issue"));
}
