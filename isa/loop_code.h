// SPDX-License-Identifier: Apache-2.0
// A modulo schedule as code: run-time guard, prologue, kernel, epilogue. Internal to isa.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "isa/modulo_schedule.h"
#include "isa/register_allocation.h"

namespace mtsim::isa {

/// A register the scheduler needs for itself.
using FreshRegister = std::function<Register(RegisterFile file, const std::string& name)>;

struct PipelinedLoop {
  const ModuloSchedule& schedule;
  std::vector<Instruction> body;  // data, then the SSUB and the SBR of the kernel's own counter
  std::string label;              // of the whole; the parts are LABEL.kernel, LABEL.simple, LABEL.done
  Place place;                    // of what the scheduler adds
  Register counter;               // holds the number of iterations less `counter_offset` when the loop is entered
  int counter_offset = 0;
  Register control;  // the kernel counts with it; may be `counter`
  // The loop for fewer iterations than stages, with its branch to any label; empty when there are always enough.
  std::vector<std::vector<Instruction>> simple;
};

/// Decrements that the branch of a kernel's pass has seen, less the passes that have begun: 0, or negative where the
/// branch does not wait for its own. The counter has this value when the loop is left.
int counter_lag(const ModuloSchedule& schedule, int decrement_cycles);

/// Successors count within; -1 is what follows the loop, which must carry LABEL.done when there is a simple loop.
std::vector<Segment> loop_code(const PipelinedLoop& loop, const Pipeline& pipeline, const FreshRegister& fresh);

/// Issues a branch so that its target follows `length` cycles or more, not before `earliest`.
void append_branch(std::vector<std::vector<Instruction>>& cycles, int length, int earliest, Instruction branch,
                   const Pipeline& pipeline);

/// An instruction of the scheduler's own.
Instruction make_instruction(Mnemonic mnemonic, std::vector<Operand> operands, const Place& place);

}  // namespace mtsim::isa
