// SPDX-License-Identifier: Apache-2.0
// Physical registers for the virtual ones of scheduled code, by colouring. Internal to isa.
//
// A virtual register occupies a physical one from the cycle its result lands to its last read: while the result is in
// flight another value may live there.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "isa/linear.h"

namespace mtsim::isa {

/// A stretch of scheduled code that runs from its first cycle to its last.
struct Segment {
  std::vector<std::vector<Instruction>> cycles;  // with units; empty: nothing issues
  std::vector<int> successors;                   // segments that may follow the last cycle
  std::vector<std::string> labels;
  std::vector<std::size_t> regions_closed, regions_opened;  // as in LinearBlock
  bool entry = false;                                       // may be entered from outside of the .linear code
};

struct RegisterPressure {
  int most = 0;  // registers live at once
  Place place;   // of an instruction that issues there
};

struct Allocation {
  std::map<Register, Register> physical;                      // by virtual register
  std::array<RegisterPressure, k_register_files> pressure{};  // of virtual registers
  std::vector<std::array<int, k_register_files>> live;        // virtual registers at once, by segment
  bool complete = true;
  std::string failure;  // "64 VR are needed, 60 are free"
  Place failure_place;
  std::vector<Register> undefined;  // virtual registers that may be read before anything writes them
};

struct AllocationOptions {
  std::set<Register> reserved;          // physical registers not to be used
  std::map<Register, Register> pinned;  // virtual registers that must get this one; live where the code is left
};
Allocation allocate_registers(const std::vector<Segment>& code, const Pipeline& pipeline,
                              const AllocationOptions& options);

}  // namespace mtsim::isa
