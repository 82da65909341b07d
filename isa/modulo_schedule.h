// SPDX-License-Identifier: Apache-2.0
// Iterative modulo scheduling (B. R. Rau, MICRO-27, 1994) of one loop body. Internal to isa.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "isa/dependence.h"
#include "isa/reservation_table.h"

namespace mtsim::isa {

/// Cycles of one iteration; iterations start every `interval` cycles. The loop's own SBR is one of the instructions: it
/// issues so that its target follows the last row of the kernel.
struct ModuloSchedule {
  int interval = 0;
  std::vector<int> cycles;  // issue, from 0
  std::vector<Unit> units;
  int stages = 1;
};

struct ModuloLoop {
  std::span<const Instruction> body;  // data instructions, then the counter's SSUB and the SBR
  const DependenceGraph& graph;       // of all; the last two are tied to nothing
  const Pipeline& pipeline;
  bool allow_assumed = false;
};

/// What no schedule can beat, per set of units and packet rule.
struct ResourceBound {
  std::string name;  // "VMAC", "SMAC+SIEU", "VLDST pairing", "SBR delay slots"
  int instructions = 0;
  int slots = 0;
  int cycles = 0;
};
std::vector<ResourceBound> resource_bounds(const ModuloLoop& loop);

/// nullopt when the heuristic finds none within its budget.
std::optional<ModuloSchedule> modulo_schedule(const ModuloLoop& loop, int interval);

}  // namespace mtsim::isa
