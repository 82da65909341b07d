// SPDX-License-Identifier: Apache-2.0
// A program cut where a reader would cut it: loops, what leads into them and what drains them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "isa/program.h"
#include "isa/schedule_view.h"

namespace mtsim::scenarios {

enum class PartKind : std::uint8_t { code, prologue, loop, between, epilogue };
const char* to_string(PartKind kind);

struct SchedulePart {
  PartKind kind = PartKind::code;
  int first = 0, last = 0;  // packets [first, last)
  int loop = -1;            // index into the loops: itself, or the one it leads into or drains
};

/// All packets in order. What falls or branches into a loop is its prologue, what a loop falls into its epilogue. Of
/// loops that `reports` describe these have the cycles the scheduler gave them.
std::vector<SchedulePart> schedule_parts(const isa::Program& program, const isa::Pipeline& pipeline,
                                         const std::vector<isa::LoopSchedule>& loops,
                                         const std::vector<isa::LoopReport>& reports);

/// The report of the loop with this label: the scheduler calls the pipelined loop of `x` "x.kernel", or nullptr.
const isa::LoopReport* report_of(const std::string& label, const std::vector<isa::LoopReport>& reports);

}  // namespace mtsim::scenarios
