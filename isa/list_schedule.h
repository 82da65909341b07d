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
  int length = 0;  // cycles until every result has landed
};

/// Longest path first. An instruction may overtake at most `window` others that stand in front of it: a small window
/// keeps few registers busy.
BlockSchedule list_schedule(std::span<const Instruction> block, const DependenceGraph& graph, const Pipeline& pipeline,
                            bool allow_assumed, int window);

/// The cycles from an instruction's issue until all it writes can be read; a store 1.
int cycles_until_done(const Instruction& instruction, const Pipeline& pipeline);

}  // namespace mtsim::isa
