// SPDX-License-Identifier: Apache-2.0
// A counted loop of linear code as prologue, kernel and epilogue. Internal to isa.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "isa/linear.h"
#include "isa/modulo_schedule.h"
#include "isa/register_allocation.h"

namespace mtsim::isa {

/// `label: ... SSUB 1, n, n ... [n] SBR label` in one block.
struct CountedLoop {
  std::string label;
  Register counter;
  int decrement = 0;  // index of the SSUB in the body
};
std::optional<CountedLoop> find_counted_loop(const LinearBlock& block);

/// A register the scheduler needs for itself.
using FreshRegister = std::function<Register(RegisterFile file, const std::string& name)>;

struct LoopCode {
  ModuloSchedule schedule;
  std::vector<Instruction> body;  // data, SSUB, SBR
  std::vector<Segment> segments;  // successors count within; -1 is what follows the loop, in front of `done_label`
  bool guarded = false;           // too few iterations go to a loop that is not pipelined
  int simple_cycles = 0;          // an iteration of that loop
};

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
};

/// nullopt when pipelining wins nothing.
std::optional<LoopCode> pipeline_loop(const LoopRequest& request);

/// One block list-scheduled, its branch where the block ends `branch_cycles` later and every result has landed.
std::vector<std::vector<Instruction>> straight_block(const LinearBlock& block, bool independent,
                                                     const Pipeline& pipeline, bool allow_assumed, int window);

}  // namespace mtsim::isa
