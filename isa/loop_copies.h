// SPDX-License-Identifier: Apache-2.0
// Copies of values that would live longer than the initiation interval allows. Internal to isa.
#pragma once

#include <string>
#include <vector>

#include "isa/loop_bounds.h"
#include "isa/loop_code.h"

namespace mtsim::isa {

/// A loop body (data, SSUB, SBR) and its dependences.
struct LoopBody {
  std::vector<Instruction> body;
  DependenceGraph graph{0};
};

struct CopyOptions {
  const Pipeline& pipeline;
  bool allow_assumed = false;
  const FreshRegister& fresh;
  const RegisterName& name;
  std::string label;  // of the loop: in the names of copies
};

struct CopiedLoop {
  LoopBody loop;
  int copies = 0;
};

/// Without rotating registers a value must be read before its own next instance lands. Where that bounds the interval
/// more than units and true dependences do, the late reader gets a copy (VMOV, SMOV), which holds the value for another
/// interval. Returns the body with the least bound.
CopiedLoop with_copies(LoopBody loop, const CopyOptions& options);

}  // namespace mtsim::isa
