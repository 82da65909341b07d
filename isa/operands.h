// SPDX-License-Identifier: Apache-2.0
// Operands and predicates of one instruction. Internal to the assembler.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "isa/expression.h"
#include "isa/program.h"

namespace mtsim::isa {

/// Names and operand registers an instruction may refer to.
struct OperandContext {
  Equates equates;                                                     // .equ
  std::function<Register(std::uint64_t number, int column)> numbered;  // %n; throws SyntaxError when there is none
  // Names of registers in .linear code (virtual registers, .param); nullopt for a name that is none. Not set in
  // packets.
  std::function<std::optional<Register>(std::string_view name)> named;
  // The pair of two virtual registers; throws SyntaxError when one of them is in another pair.
  std::function<RegisterPair(Register high, Register low, int column)> virtual_pair;
};

/// "VR, VR, VR, VR": what the operand list of a format looks like.
std::string operands_text(Format format);
std::size_t operand_count(Format format);

/// Cuts at commas outside of brackets. No tokens: no pieces.
std::vector<TokenSpan> split_operands(TokenSpan tokens);

/// The operand of `row` at `position` (from 0). `end_column` is where a missing token is reported. A label's packet
/// stays -1 until all labels are known. Throws SyntaxError.
Operand parse_operand(const Row& row, std::size_t position, TokenSpan tokens, int end_column,
                      const OperandContext& context);

/// "[R0]" or "[!R0]" from `tokens[at]` on; moves `at` behind it. Throws SyntaxError.
Predicate parse_predicate(TokenSpan tokens, std::size_t& at, int end_column, const OperandContext& context);

}  // namespace mtsim::isa
