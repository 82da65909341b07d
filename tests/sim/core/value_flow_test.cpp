// SPDX-License-Identifier: Apache-2.0
// What isa::follow_values says of all paths holds on the one a run takes: each read gets a result it names, not sooner
// than it says, from a register it calls live; a read of an old value is one it calls early.
#include "isa/value_flow.h"

#include <catch2/catch.hpp>
#include <map>

#include "random_program.h"
#include "sim/core/stepper.h"

using namespace mtsim;
using namespace mtsim::sim;

namespace {

struct Producer {
  isa::InstructionAt at;  // the caller at first
  std::int64_t issued = 0;
};

const isa::ValueUse* use_of(const isa::ValueFlow& flow, isa::InstructionAt producer, isa::InstructionAt consumer,
                            isa::Register reg) {
  for (const isa::ValueUse& use : flow.uses) {
    if (use.producer == producer && use.consumer == consumer && use.reg == reg) return &use;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("each read of a run gets a result that follow_values names", "[core][value_flow]") {
  std::int64_t old_reads = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const std::string text = RandomProgram(seed).text();
    CAPTURE(seed, text);
    const isa::Program program = isa::assemble(text, "random.s");
    const isa::ValueFlow flow = isa::follow_values(program, {});
    REQUIRE(flow.complete);
    BenchCore core;
    RegisterState registers;
    registers.r[63] = k_return_address;
    registers.r[1] = seed % 2;
    Stepper stepper(program, {}, core.sm, core.am, registers, {.max_cycles = 10'000});
    std::map<isa::Register, Producer> producers;
    std::int64_t reads = 0;
    while (!stepper.ended()) {
      const int packet = stepper.packet();
      const auto& instructions = program.packets[static_cast<std::size_t>(packet)].instructions;
      for (int slot = 0; slot < static_cast<int>(instructions.size()); ++slot) {
        for (const isa::Register reg : isa::reads(instructions[static_cast<std::size_t>(slot)])) {
          const Producer& producer = producers[reg];
          CAPTURE(packet, slot, reg.str(), producer.at.packet);
          const isa::ValueUse* use = use_of(flow, producer.at, {packet, slot}, reg);
          REQUIRE(use != nullptr);
          REQUIRE(stepper.cycle() - producer.issued >= use->distance);
          REQUIRE(flow.live[static_cast<std::size_t>(packet)].test(static_cast<std::size_t>(reg.flat())));
          ++reads;
        }
      }
      const Stepper::Change& change = stepper.step();
      for (const auto& old : change.old_reads) {
        REQUIRE(flow.early.contains({{packet, old.instruction}, old.reg}));
        ++old_reads;
      }
      for (const auto& landing : change.landed) {
        producers[landing.result.reg] = {{landing.result.packet, landing.result.instruction}, landing.result.issued};
      }
    }
    REQUIRE(stepper.result().status == RunStatus::done);
    REQUIRE(reads > 20);
  }
  REQUIRE(old_reads > 1000);
}
