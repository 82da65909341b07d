// SPDX-License-Identifier: Apache-2.0
// A counted loop of linear code: what bounds it, copies for values that live too long, its schedule and its code.
// Internal to isa.
#pragma once

#include <optional>
#include <vector>

#include "isa/linear.h"
#include "isa/loop_code.h"
#include "isa/loop_copies.h"
#include "isa/loop_report.h"
#include "isa/loop_search.h"

namespace mtsim::isa {

/// `label: ... SSUB 1, n, n ... [n] SBR label` in one block; SADD -1, n, n counts as well.
struct CountedLoop {
  std::string label;
  Register counter;
  int decrement = 0;  // index of what counts down in the body
};
/// Otherwise `why` says what is missing; it is left empty for a block that does not repeat itself.
std::optional<CountedLoop> find_counted_loop(const LinearBlock& block, std::string& why);

struct LoopRequest {
  const LinearBlock& block;
  CountedLoop loop;
  bool independent = false;
  bool counter_live = true;  // the counter is read behind the loop
  const Pipeline& pipeline;
  bool allow_assumed = false;
  int longer = 0;  // cycles to add to the least interval: fewer registers
  int window = 0;  // of the loop that is not pipelined
  FreshRegister fresh;
  RegisterName name;
  SearchBudget& budget;
};

/// What no attempt changes.
struct PreparedLoop {
  LoopBody written;
  LoopBody scheduled;  // with copies
  Register control;    // the kernel counts with it
  LoopReport report;   // its bounds
};
PreparedLoop prepare_loop(const LoopRequest& request);

struct LoopCode {
  std::vector<Segment> segments;  // as of loop_code(); none when pipelining wins nothing
  int kernel = 0;                 // which of them
  LoopReport report;
  std::vector<FailedInterval> failed;
};
LoopCode pipeline_loop(const LoopRequest& request, const PreparedLoop& prepared);

/// One block list-scheduled, its branch where the block ends `branch_cycles` later and every result has landed.
std::vector<std::vector<Instruction>> straight_block(const LinearBlock& block, bool independent,
                                                     const Pipeline& pipeline, bool allow_assumed, int window);

}  // namespace mtsim::isa
