// SPDX-License-Identifier: Apache-2.0
// The least initiation interval of a loop, and the proof that there is none below. Internal to isa.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "isa/loop_bounds.h"

namespace mtsim::isa {

/// In steps, some 4 * 10^8 a second.
struct SearchBudget {
  std::int64_t heuristic;   // attempts above the bound
  std::int64_t exhaustive;  // below the interval that they find
};

/// Intervals without a schedule, ascending, from interval_bound() on.
struct FailedInterval {
  int interval = 0;
  bool none = false;  // an exhaustive search has shown that there is none
};

struct FoundSchedule {
  std::optional<ModuloSchedule> schedule;
  std::vector<FailedInterval> failed;
};

/// The least interval found from interval_bound() + longer on, by heuristic, then by exhaustive search below it; fills
/// the report's interval and blocked intervals. No schedule when there is none below `limit`. The report has its
/// bounds.
FoundSchedule find_schedule(const ModuloLoop& loop, int longer, int limit, SearchBudget& budget, LoopReport& report);

/// Searches every interval from the report's bound to below the one found, and says in the report what that shows: of
/// the loop as written, in whatever registers, or of the loop as scheduled.
void prove(const ModuloLoop& written, const ModuloLoop& scheduled, const std::vector<FailedInterval>& failed,
           std::int64_t budget, LoopReport& report);

}  // namespace mtsim::isa
