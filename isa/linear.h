// SPDX-License-Identifier: Apache-2.0
// Linear assembly between parser and scheduler: instructions with sequential meaning over virtual registers, cut into
// basic blocks. Internal to isa.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "isa/program.h"

namespace mtsim::isa {

/// A text that would keep the scheduler busy for minutes is refused.
inline constexpr std::size_t k_max_linear_instructions = 2000;  // of one basic block
inline constexpr int k_max_virtual_registers = 8192;            // of one register file

struct LinearBlock {
  std::vector<std::string> labels;  // of its first instruction
  std::vector<Instruction> body;    // without the branch
  std::optional<Instruction> branch;
  int trip_minimum = 1;  // .trip of a loop: it runs at least so often
  Place trip_place;
  std::vector<std::size_t> regions_closed;  // indices into Program::regions, in front of the block
  std::vector<std::size_t> regions_opened;

  bool empty() const { return body.empty() && !branch; }
};

/// One .linear ... .endlinear. A pair of virtual registers is (even, odd) as for physical ones.
struct LinearCode {
  std::vector<LinearBlock> blocks;
  bool independent = false;               // .independent: accesses through different registers never overlap
  std::map<Register, std::string> names;  // of virtual registers
  Place place;                            // of .linear

  /// "acc0", or "R63".
  std::string name(Register reg) const {
    const auto it = names.find(reg);
    return it == names.end() ? reg.str() : it->second;
  }
};

/// SSUB 1, n, n or SADD -1, n, n: how a loop counts down. That its result is n is for the caller to see.
inline bool counts_down(const Instruction& instruction, Register counter) {
  const bool adds = instruction.row->id == Mnemonic::SADD;
  if ((!adds && instruction.row->id != Mnemonic::SSUB) || instruction.predicate) return false;
  return instruction.operands[0] == Operand(Immediate{adds ? -1 : 1}) && instruction.operands[1] == Operand(counter);
}

/// Replaces registers: those read through `read`, those written through `write`. A post-modified address is read.
/// Pairs are replaced by their even register.
template <typename Read, typename Write>
void replace_registers(Instruction& instruction, const Read& read, const Write& write) {
  if (instruction.predicate) instruction.predicate->reg = read(instruction.predicate->reg);
  for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
    const bool destination = has_destination(instruction.row->format) && i + 1 == instruction.operands.size();
    const auto one = [&](Register reg) { return destination ? write(reg) : read(reg); };
    Operand& operand = instruction.operands[i];
    if (auto* reg = std::get_if<Register>(&operand)) {
      *reg = one(*reg);
    } else if (auto* pair = std::get_if<RegisterPair>(&operand)) {
      pair->low = one(pair->low);
    } else if (auto* memory = std::get_if<MemoryOperand>(&operand)) {
      memory->base = read(memory->base);
      if (memory->offset) memory->offset = read(*memory->offset);
    }
  }
}

}  // namespace mtsim::isa
