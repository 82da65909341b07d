// SPDX-License-Identifier: Apache-2.0
// Cycles and units for the instructions of one basic block, in straight code. Internal to isa.
#pragma once

#include <span>
#include <vector>

#include "isa/dependence.h"
#include "isa/reservation_table.h"

namespace mtsim::isa {

struct BlockSchedule {
  std::vector<int> cycles;  // issue, by instruction
  std::vector<Unit> units;
  int length = 0;                 // cycles until every result has landed
  std::vector<Unit> fixed_units;  // of Surroundings::fixed, which may have changed
};

/// Instructions by the cycle they issue at, with units; empty: nothing issues.
using IssueCycles = std::vector<std::vector<Instruction>>;

struct PlacedInstruction {
  Instruction instruction;  // with its unit
  int cycle = 0;
};

/// Instructions that issue beside the block's, and when the block may start.
struct Surroundings {
  std::vector<PlacedInstruction> fixed;
  int first_cycle = 0;        // of the block; the units of what is fixed in front of it stay
  std::vector<int> earliest;  // cycle, by instruction of the block; empty: first_cycle
};

/// Longest path first. An instruction may overtake at most `window` others that stand in front of it: a small window
/// keeps few registers busy.
BlockSchedule list_schedule(std::span<const Instruction> block, const DependenceGraph& graph, const Pipeline& pipeline,
                            bool allow_assumed, int window, const Surroundings& around = {});

/// The cycles from an instruction's issue until all it writes can be read; a store 1.
int cycles_until_done(const Instruction& instruction, const Pipeline& pipeline);

}  // namespace mtsim::isa
