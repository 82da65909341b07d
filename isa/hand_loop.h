// SPDX-License-Identifier: Apache-2.0
// What a loop of hand packets means: each read bound to its producer, with the number of iterations between them, from
// the exposed timing. Internal to isa.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "isa/dependence.h"
#include "isa/program.h"

namespace mtsim::isa {

/// Packets [first, last] from a label to the last delay slot of the one branch back to it.
struct HandLoop {
  std::string label;
  int first = 0;
  int last = 0;
  int branch = 0;    // packet of the SBR
  int interval = 0;  // cycles
};
/// Innermost loops of one block, outside of .linear code, in order.
std::vector<HandLoop> find_hand_loops(const Program& program);

/// The loop as instructions over virtual registers, one for each value that a register holds in turn, and the
/// dependences between them. Throws std::runtime_error saying what cannot be followed.
struct RecoveredLoop {
  struct Value {
    Register reg;          // that held it
    bool live_in = false;  // read before the first iteration's own write lands
    bool final = false;    // what the register holds behind the loop
  };
  std::vector<Instruction> body;     // data, then the SSUB and the SBR of the loop's own counter
  std::vector<int> cycles;           // issue in the hand schedule, by data instruction
  DependenceGraph graph{0};          // of body; the last two are tied to nothing
  std::map<Register, Value> values;  // by virtual register
  Register counter;                  // physical; iterations = its value at the start + counter_offset
  int counter_offset = 0;
  Register control;      // virtual: counts in the new kernel
  int next_virtual = 0;  // first number of R and VR that is free

  /// The physical register that held a value.
  std::string name(Register reg) const {
    const auto it = values.find(reg);
    return it == values.end() ? reg.str() : it->second.reg.str();
  }
};
RecoveredLoop recover_loop(const Program& program, const HandLoop& loop, const Pipeline& machine, bool independent);

}  // namespace mtsim::isa
