// SPDX-License-Identifier: Apache-2.0
// Which read gets which result, over all paths of a program, and which registers hold a value that is still needed.
#pragma once

#include <bitset>
#include <set>
#include <utility>
#include <vector>

#include "isa/program.h"

namespace mtsim::isa {

struct InstructionAt {
  int packet = -1;  // -1: the caller
  int slot = 0;     // index into Packet::instructions
  auto operator<=>(const InstructionAt&) const = default;
};

/// A result and an instruction that reads it.
struct ValueUse {
  InstructionAt producer;
  InstructionAt consumer;
  Register reg;
  int latency = 0;     // cycles until the result lands; 0 of the caller's value
  int distance = 0;    // fewest cycles from the one's issue to the other's; of the caller's value from its entry
  bool wraps = false;  // that path goes round a loop: the value is read in a later pass
  auto operator<=>(const ValueUse&) const = default;
};

struct ValueFlow {
  std::vector<ValueUse> uses;                          // sorted, each once
  std::set<std::pair<InstructionAt, Register>> early;  // reads of an old value while a newer one is in flight
  // By packet: registers whose value, landed when the packet issues, this or a later packet reads.
  std::vector<std::bitset<k_register_count>> live;
  bool complete = true;  // false: the program has more paths than were followed; uses may be missing
};

/// Follows each result from its landing to the reads that see it, delay slots and results in flight included, and what
/// the caller passes from the entries (the first packet and every label that nothing branches to).
ValueFlow follow_values(const Program& program, const Pipeline& pipeline);

}  // namespace mtsim::isa
