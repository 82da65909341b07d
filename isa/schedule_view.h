// SPDX-License-Identifier: Apache-2.0
// A schedule one can read: a row a cycle, a column a unit, results in flight, initiation interval, unit use.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "isa/program.h"

namespace mtsim::isa {

struct LoopSchedule {
  std::string label;            // label of the first packet; "" when it has none
  int first = 0, last = 0;      // packets [first, last) of the loop body, delay slots included
  int initiation_interval = 0;  // cycles of one pass
  std::array<int, k_units> issues{};
  int busiest_slot = 0;  // instructions on the one slot that has most, with the units as they are
};

/// Single-block loops: a backward SBR whose body holds no other label or taken branch.
std::vector<LoopSchedule> loops(const Program& program, const Pipeline& pipeline);

/// The loop, region or label that `part` names. The label of a .linear loop that was pipelined stands for its kernel,
/// LABEL.kernel. Throws IsaError when `part` names nothing.
std::string named_part(const Program& program, const Pipeline& pipeline, const std::string& part);

/// The text of `mtsim schedule`: the whole program or only the part named. A loop is shown in steady state, any other
/// part behind the packets in front of it: with their results in flight.
/// Throws as named_part() does.
std::string schedule_text(const Program& program, const Pipeline& pipeline, const std::string& part = "");

}  // namespace mtsim::isa
