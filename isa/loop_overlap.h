// SPDX-License-Identifier: Apache-2.0
// The blocks in front of and behind a pipelined loop, overlapped with its prologue and epilogue. Internal to isa.
#pragma once

#include "isa/linear.h"
#include "isa/list_schedule.h"

namespace mtsim::isa {

struct OverlapOptions {
  const Pipeline& pipeline;
  bool independent = false;
  bool allow_assumed = false;
  int window = 0;  // as of list_schedule
};

/// The prologue starts as early as the results of `block` and free slots allow; all results of the block have landed
/// where the kernel starts.
IssueCycles overlap_in_front(const LinearBlock& block, const IssueCycles& prologue, const IssueCycles& kernel,
                             const OverlapOptions& options);

/// The block's instructions go into the epilogue's free slots; with the block's branch, if it has one.
IssueCycles overlap_behind(const LinearBlock& block, const IssueCycles& kernel, const IssueCycles& epilogue,
                           const OverlapOptions& options);

}  // namespace mtsim::isa
