// SPDX-License-Identifier: Apache-2.0
// Immediate expressions: numbers, .equ names, + - * / % << >> ~, comparisons (1 or 0) and parentheses. Internal to the
// assembler.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "isa/lexer.h"

namespace mtsim::isa {

using TokenSpan = std::span<const Token>;
using Equates = std::map<std::string, std::int64_t, std::less<>>;

/// The value in 64 bits that wrap around. `end_column` is where a missing token is reported. Throws SyntaxError.
std::int64_t parse_expression(TokenSpan tokens, int end_column, const Equates& equates);

}  // namespace mtsim::isa
