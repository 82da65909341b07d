// SPDX-License-Identifier: Apache-2.0
// What checker and schedule view both need to know of a program. Internal to isa.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "isa/program.h"

namespace mtsim::isa {

/// Predicates on one register, one of them negated: never do both execute.
bool always_opposite(const Instruction& a, const Instruction& b);

/// The first packet and every label that no instruction branches to: where a caller may enter.
std::vector<int> default_entries(const Program& program);

struct AssumedShape {
  std::string name;
  int packets = 0;  // that show it
  Place first;
};

/// Packet and operand shapes that no published kernel shows, in a fixed order.
std::vector<AssumedShape> find_assumed_shapes(const Program& program);

struct NeverWritten {
  Register reg;
  const Instruction* reader;  // the first
};

/// Registers (all but R63) that a packet for which `reachable` holds reads, and that neither an instruction
/// writes nor the caller passes as .param or %n. In the order of their first reads.
std::vector<NeverWritten> find_never_written(const Program& program, const std::function<bool(int)>& reachable);

}  // namespace mtsim::isa
