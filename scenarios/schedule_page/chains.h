// SPDX-License-Identifier: Apache-2.0
// Operand chains: the loads of one stream and everything made of them up to the arithmetic, as SLDH, SBALE2, SVBCAST,
// VFMULAS32 of Table I. A page colours a schedule by them.
#pragma once

#include <string>
#include <vector>

#include "isa/program.h"
#include "isa/value_flow.h"

namespace mtsim::scenarios {

struct OperandChain {
  std::string name;      // "x through AR8"; empty for what belongs to none: addresses, counters, constants
  isa::Register source;  // the address register of its loads, or the caller's register
};

struct InstructionChains {
  int chain = 0;            // the operand that took longest to make
  std::vector<int> others;  // of its other operands
};

struct OperandChains {
  std::vector<OperandChain> chains;                       // [0] is for what belongs to none
  std::vector<std::vector<InstructionChains>> by_packet;  // [packet][slot]
};

OperandChains find_chains(const isa::Program& program, const isa::ValueFlow& flow);

}  // namespace mtsim::scenarios
