// SPDX-License-Identifier: Apache-2.0
// Which slot an instruction issues to and what may share a packet. Internal to the assembler.
#pragma once

#include <string_view>

#include "isa/lexer.h"
#include "isa/program.h"

namespace mtsim::isa {

/// Two instructions need one unit. `moved`: the later one stands in the free unit that the message proposes, so that
/// what is said about the rest of the packet fits the proposal.
struct UnitClash : SyntaxError {
  UnitClash(int at, const std::string& message, const std::string& what_to_do, bool is_moved)
      : SyntaxError(at, message, what_to_do, "unit-clash"), moved(is_moved) {}
  bool moved;
};

/// Chooses the unit of `instruction` from its suffix ("M1", "" for none) and what `packet` already holds.
/// Throws SyntaxError for an unknown or missing unit, UnitClash for one in use. SNOP has none.
void assign_unit(Instruction& instruction, std::string_view suffix, int suffix_column, const Packet& packet);

/// Throws SyntaxError when `instruction` may not join `packet`: SNOP with company, two post-modifies of one AR.
void check_company(const Instruction& instruction, const Packet& packet);

}  // namespace mtsim::isa
