// SPDX-License-Identifier: Apache-2.0
// The schedule doctor: reschedules the inner loops of hand packets and says whether the hand schedule can be beaten.
#pragma once

#include <string>
#include <vector>

#include "isa/loop_report.h"
#include "isa/program.h"

namespace mtsim::isa {

struct RescheduledLoop {
  int hand_interval = 0;  // cycles of an iteration in the hand schedule
  LoopReport report;      // of the new schedule; why_not when the loop cannot be followed
  bool replaced = false;
  std::string why_kept;  // when it is not

  // What a call takes with the fewest iterations that the new code takes through its kernel, from the loop's first
  // cycle until its results have landed; each further one costs an interval. 0 when there is no new code.
  int call_iterations = 0;
  int hand_call_cycles = 0, call_cycles = 0;
};

struct Rescheduled {
  Program program;  // with the loops that could be replaced
  std::vector<RescheduledLoop> loops;
};

/// Each single-block counted loop of hand packets is taken apart into instructions and true dependences and
/// modulo-scheduled for `machine`. Where that makes it shorter and values cross the loop's ends in registers alone, the
/// new loop replaces the packets: results in flight land first, and too few iterations go to the hand packets behind a
/// test at run time.
struct RescheduleOptions {
  bool allow_assumed = false;  // packet shapes not known to run on hardware
  bool independent = false;    // loads and stores through different address registers never overlap
  bool replace_equal = false;  // also where the interval is the hand loop's and a call takes no less
};
Rescheduled reschedule(const Program& program, const Pipeline& machine, const RescheduleOptions& options = {});

/// As `mtsim schedule --reschedule` prints it.
std::string print(const RescheduledLoop& loop);

}  // namespace mtsim::isa
