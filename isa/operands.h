// SPDX-License-Identifier: Apache-2.0
// Operands, predicates and immediate expressions of one instruction. Internal to the assembler.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "isa/lexer.h"
#include "isa/program.h"

namespace mtsim::isa {

using TokenSpan = std::span<const Token>;

/// Names and operand registers an instruction may refer to.
struct OperandContext {
  std::map<std::string, std::int64_t, std::less<>> equates;             // .equ
  std::function<Register(std::uint64_t number, int column)> numbered;  // %n; throws SyntaxError when there is none
};

/// "VR, VR, VR, VR": what the operand list of a format looks like.
std::string operands_text(Format format);

/// Cuts at commas outside of brackets. No tokens: no pieces.
std::vector<TokenSpan> split_operands(TokenSpan tokens);

/// One operand of `row` (position counts from 0). `end_column` is where a missing token is reported.
/// Throws SyntaxError. A label's packet stays -1 until all labels are known.
Operand parse_operand(const Row& row, std::size_t position, TokenSpan tokens, int end_column,
                      const OperandContext& context);

/// How many operands a format has.
std::size_t operand_count(Format format);

/// "[R0]" or "[!R0]" from `tokens[at]` on, moving `at` behind it.
Predicate parse_predicate(TokenSpan tokens, std::size_t& at, const OperandContext& context);

/// Numbers, .equ names, + - * / % << >> and parentheses, in 64 bits that wrap around.
std::int64_t parse_expression(TokenSpan tokens, int end_column, const OperandContext& context);

}  // namespace mtsim::isa
