// SPDX-License-Identifier: Apache-2.0
// Copies of values that would live longer than the initiation interval allows. Internal to isa.
#pragma once

#include "isa/linear_loop.h"

namespace mtsim::isa {

/// A loop body (data, SSUB, SBR) and what bounds it.
struct BoundedBody {
  std::vector<Instruction> body;
  DependenceGraph graph;
  int bound = 0;
  int copies = 0;
};
BoundedBody bounded_body(std::vector<Instruction> body, const LoopRequest& request);

/// Without rotating registers a value must be read before its own next instance lands. Where that bounds the interval
/// more than units and true dependences do, the late reader gets a copy (VMOV, SMOV), which holds the value for another
/// interval. Returns the body with the least bound.
BoundedBody with_copies(BoundedBody body, const LoopRequest& request);

}  // namespace mtsim::isa
