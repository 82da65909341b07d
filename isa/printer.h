// SPDX-License-Identifier: Apache-2.0
// Program to text. print() round-trips: assemble(print(p)) equals p, packet for packet.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "isa/program.h"

namespace mtsim::isa {

/// One line a packet, one column a unit, as Table I of the paper looks; `mtsim fmt` prints this.
std::string print(const Program& program);

/// One instruction as it would stand in source: "[!R0] SADDA.M1 R50, AR0, AR1".
std::string print(const Instruction& instruction);

/// The same without a unit suffix and with registers spelled as `name` says, as it would stand in .linear.
std::string print_linear(const Instruction& instruction, const std::function<std::string(Register)>& name);

/// As print(), with the packets that .linear code was scheduled into in its place.
std::string print_packets(const Program& program);

/// One packet on one line, instructions joined by " | "; faults quote it.
std::string print(const Packet& packet);

/// True for the text of the comment that print() puts above the columns; the assembler drops it.
bool is_column_header(std::string_view comment);

}  // namespace mtsim::isa
