// SPDX-License-Identifier: Apache-2.0
// Iterative modulo scheduling (B. R. Rau, MICRO-27, 1994) of one loop body. Internal to isa.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "isa/dependence.h"
#include "isa/loop_report.h"
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

/// The largest first.
std::vector<ResourceBound> resource_bounds(const ModuloLoop& loop);

struct ModuloAttempt {
  std::optional<ModuloSchedule> schedule;  // nullopt when the heuristic finds none within its budget
  int hardest = 0;                         // the instruction that had to leave its place most often
};
ModuloAttempt modulo_schedule(const ModuloLoop& loop, int interval);

/// Units for issue cycles that keep all dependences; the counter goes where there is room. nullopt when some row is too
/// full.
std::optional<ModuloSchedule> assign_units(const ModuloLoop& loop, int interval, const std::vector<int>& cycles);

}  // namespace mtsim::isa
