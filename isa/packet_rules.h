// SPDX-License-Identifier: Apache-2.0
// Which slot an instruction issues to and what may share a packet. Internal to the assembler.
#pragma once

#include <string_view>

#include "isa/lexer.h"
#include "isa/program.h"

namespace mtsim::isa {

/// Chooses the unit of `instruction` from its suffix ("M1", "" for none) and what `packet` already holds.
/// Throws SyntaxError for an unknown, missing or clashing unit. SNOP has none.
void assign_unit(Instruction& instruction, std::string_view suffix, int suffix_column, const Packet& packet);

/// Throws SyntaxError when `instruction` may not join `packet`: SNOP with company, two post-modifies of one AR.
void check_company(const Instruction& instruction, const Packet& packet);

}  // namespace mtsim::isa
