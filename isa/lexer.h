// SPDX-License-Identifier: Apache-2.0
// One line of assembly to tokens. Internal to the assembler.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "isa/upper.h"

namespace mtsim::isa {

/// A problem inside one line; the assembler adds the place and goes on with the next statement.
struct SyntaxError : std::runtime_error {
  SyntaxError(int at, const std::string& message, std::string what_to_do = "", std::string name = "syntax")
      : std::runtime_error(message), column(at), suggestion(std::move(what_to_do)), code(std::move(name)) {}
  int column;
  std::string suggestion;
  std::string code;
};

enum class TokenKind : std::uint8_t { word, number, symbol };

struct Token {
  TokenKind kind = TokenKind::symbol;
  std::string_view text;    // points into the line; "<<", ">>", "==", "!=", "<=" and ">=" are one symbol each
  std::uint64_t value = 0;  // of a number
  int column = 0;           // from 1

  bool is(std::string_view symbol) const { return kind == TokenKind::symbol && text == symbol; }
};

using Tokens = std::vector<Token>;

/// A line cut at its comment: `;`, `;;` or `//` to the end.
struct SplitLine {
  std::string_view code;  // without the comment, spaces at the end cut
  // Text behind the marker as it stands there, without spaces at the end; a space is put in front of a text that has
  // none. "" for a marker alone.
  std::optional<std::string> comment;
};
SplitLine split_comment(std::string_view line);

/// Throws SyntaxError for a character or a number that means nothing.
Tokens tokenize(std::string_view code);

std::string_view trim(std::string_view text);
bool is_word_start(char c);  // letters, '_', '.', '$' (labels of compilers)
bool is_word(char c);        // the same and digits

}  // namespace mtsim::isa
