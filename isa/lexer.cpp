// SPDX-License-Identifier: Apache-2.0
#include "isa/lexer.h"

#include <fmt/format.h>

namespace mtsim::isa {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

int digit_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

bool is_double_symbol(std::string_view text) {
  return text == "<<" || text == ">>" || text == "==" || text == "!=" || text == "<=" || text == ">=";
}

std::uint64_t parse_number(std::string_view text, int column) {
  std::uint64_t base = 10;
  std::string_view digits = text;
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    base = 16;
    digits.remove_prefix(2);
  }
  std::uint64_t value = 0;
  for (const char c : digits) {
    const auto digit = static_cast<std::uint64_t>(digit_value(c));
    if (digit >= base) {
      throw SyntaxError(column, fmt::format("'{}' is not a number", text), "write decimal (12) or hexadecimal (0x0C)");
    }
    if (value > (~std::uint64_t{0} - digit) / base) {
      throw SyntaxError(column, fmt::format("the number {} does not fit in 64 bits", text));
    }
    value = value * base + digit;
  }
  return value;
}

}  // namespace

bool is_word_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '$';
}

bool is_word(char c) { return is_word_start(c) || is_digit(c); }

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

SplitLine split_comment(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool semicolon = line[i] == ';';
    const bool slashes = line.substr(i, 2) == "//";
    if (!semicolon && !slashes) continue;
    std::size_t start = i;
    while (start < line.size() && line[start] == line[i]) ++start;
    std::string_view code = line.substr(0, i);
    while (!code.empty() && is_space(code.back())) code.remove_suffix(1);
    std::string_view text = line.substr(start);
    while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    const bool spaced = text.empty() || is_space(text.front());
    return {code, (spaced ? "" : " ") + std::string(text)};
  }
  while (!line.empty() && is_space(line.back())) line.remove_suffix(1);
  return {line, std::nullopt};
}

Tokens tokenize(std::string_view code) {
  static constexpr std::string_view k_symbols = ",|[]()*+-/%!:=~<>\\";
  Tokens tokens;
  std::size_t i = 0;
  while (i < code.size()) {
    const char c = code[i];
    if (is_space(c)) {
      ++i;
      continue;
    }
    const int column = static_cast<int>(i) + 1;
    std::size_t end = i + 1;
    if (is_word_start(c) || is_digit(c)) {
      while (end < code.size() && is_word(code[end])) ++end;
      const std::string_view text = code.substr(i, end - i);
      if (is_digit(c)) {
        tokens.push_back({TokenKind::number, text, parse_number(text, column), column});
      } else {
        tokens.push_back({TokenKind::word, text, 0, column});
      }
    } else if (is_double_symbol(code.substr(i, 2))) {
      end = i + 2;
      tokens.push_back({TokenKind::symbol, code.substr(i, 2), 0, column});
    } else if (k_symbols.find(c) != std::string_view::npos) {
      tokens.push_back({TokenKind::symbol, code.substr(i, 1), 0, column});
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      throw SyntaxError(column, "a character outside ASCII in code", "put it in a comment");
    } else {
      throw SyntaxError(column, c >= ' ' && c < 0x7F ? fmt::format("unexpected character '{}'", c)
                                                     : fmt::format("unexpected character 0x{:02X}", c));
    }
    i = end;
  }
  return tokens;
}

}  // namespace mtsim::isa
