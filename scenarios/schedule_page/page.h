// SPDX-License-Identifier: Apache-2.0
// The page of `mtsim schedule --html`: what is known of one or two schedules, and a run of the first, as one block of
// JSON in one self-contained HTML file. The files beside this one (page.html, *.css, *.js) show it; they are built into
// the command.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "isa/program.h"
#include "scenarios/report.h"
#include "scenarios/spec_exec.h"
#include "sim/config/machine.h"

namespace mtsim::scenarios {

/// One column of the page.
struct PageSchedule {
  std::string role;  // "hand schedule", "the scheduler's"
  const isa::Program& program;
  bool scheduled = false;  // also its hand packets may be the scheduler's, which reads old values on purpose
  std::vector<isa::LoopReport> reports;  // of its loops; the bounds come from here
  std::vector<std::string> remarks;      // sentences for the reader, e.g. why a loop was kept
};

/// Packets, instructions, arrows from producer to consumer, live registers, loops with bounds, findings of the check.
Json schedule_json(const PageSchedule& schedule, const sim::Machine& machine);

/// Cycles of a run that go into a page unless asked otherwise: a few megabytes for a kernel that is busy in all of
/// them.
inline constexpr std::int64_t k_default_page_cycles = 2000;
inline constexpr std::int64_t k_most_page_cycles = 50'000;

/// The spec's run as changes by cycle, for the first `most_cycles` of it. Its dumps are not written.
Json run_json(const ExecSpec& spec, const sim::Machine& machine, std::int64_t most_cycles);

struct Page {
  std::string title;
  std::string command;  // that makes this page, for the reader who wants a run in it
  std::string part;     // label or region it opens at; may be empty
};
/// `schedules`: one or two; `run`: of the first, or null.
std::string page_html(const Page& page, const Json& schedules, const Json& run);

}  // namespace mtsim::scenarios
