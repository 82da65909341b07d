// SPDX-License-Identifier: Apache-2.0
#include "isa/c_scanner.h"

#include <fmt/format.h>

namespace mtsim::isa {
namespace {

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
}

int digit_value(char c, int base) {
  const int value = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : 99;
  return value < base ? value : -1;
}

class Scanner {
 public:
  Scanner(std::string_view text, const std::string& file, std::vector<Diagnostic>& diagnostics)
      : m_text(text), m_file(file), m_diagnostics(diagnostics) {}

  std::vector<CToken> all() {
    std::vector<CToken> tokens;
    for (;;) {
      skip_space();
      CToken token;
      token.line = m_line;
      token.column = m_column;
      const std::size_t start = m_at;
      const std::size_t reported = m_diagnostics.size();
      read(token);
      if (m_diagnostics.size() > reported) token.kind = CTokenKind::bad;
      token.spelled = std::string(m_text.substr(start, m_at - start));
      token.end_line = m_line;
      const bool last = token.kind == CTokenKind::end;
      tokens.push_back(std::move(token));
      if (last) return tokens;
    }
  }

 private:
  bool done() const { return m_at >= m_text.size(); }
  bool next_is(std::string_view text) const { return m_text.substr(m_at, text.size()) == text; }

  char take() {
    const char c = m_text[m_at++];
    if (c == '\n') {
      ++m_line;
      m_column = 1;
      m_line_start = true;
    } else {
      ++m_column;
    }
    return c;
  }

  void take(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) take();
  }

  void skip_space() {
    while (!done() && (m_text[m_at] == ' ' || m_text[m_at] == '\t' || m_text[m_at] == '\r' || m_text[m_at] == '\n' ||
                       m_text[m_at] == '\v' || m_text[m_at] == '\f')) {
      take();
    }
  }

  void report(int line, int column, const std::string& message, const std::string& fix) {
    m_diagnostics.push_back({Severity::fatal, {m_file, line, column}, message, fix, "c-syntax"});
  }

  void read(CToken& token) {
    if (done()) return;
    const bool line_start = m_line_start;
    m_line_start = false;
    if (m_text[m_at] == '#' && line_start) {
      preprocessor(token);
    } else if (next_is("//")) {
      token.kind = CTokenKind::comment;
      take(2);
      while (!done() && m_text[m_at] != '\n') token.text += take();
    } else if (next_is("/*")) {
      token.kind = CTokenKind::comment;
      take(2);
      while (!next_is("*/")) {
        if (done()) return report(token.line, token.column, "the comment does not end", "close it with */");
        token.text += take();
      }
      take(2);
    } else if (m_text[m_at] == '"' || m_text[m_at] == '\'') {
      quoted(token);
    } else if (is_word_character(m_text[m_at])) {
      token.kind = CTokenKind::word;
      while (!done() && is_word_character(m_text[m_at])) token.text += take();
    } else {
      token.kind = CTokenKind::symbol;
      token.text = std::string(1, take());
    }
  }

  void preprocessor(CToken& token) {
    token.kind = CTokenKind::preprocessor;
    while (!done() && m_text[m_at] != '\n') {
      if (next_is("\\\n") || next_is("\\\r\n")) take(m_text[m_at + 1] == '\n' ? 2 : 3);
      if (!done() && m_text[m_at] != '\n') token.text += take();
    }
  }

  void quoted(CToken& token) {
    const char quote = take();
    token.kind = quote == '"' ? CTokenKind::string : CTokenKind::word;
    for (;;) {
      if (done() || m_text[m_at] == '\n') {
        return quote == '"' ? report(token.line, token.column, "the string does not end on its line",
                                     "close it with \" on this line; a line break inside a string is \\n")
                            : report(token.line, token.column, "the character does not end on its line",
                                     "close it with ' on this line");
      }
      const char c = take();
      if (c == quote) return;
      if (c == '\\') {
        escape(token.text);
      } else {
        token.text += c;
      }
    }
  }

  void escape(std::string& out) {
    static constexpr std::string_view k_letters = "ntr\\\"'?abfv";
    static constexpr std::string_view k_values = "\n\t\r\\\"'?\a\b\f\v";
    const int line = m_line;
    const int column = m_column - 1;
    if (done()) return;  // the string does not end
    if (next_is("\r\n")) take();
    const char c = take();
    if (c == '\n') return;  // the string goes on on the next line
    if (const std::size_t known = k_letters.find(c); known != std::string_view::npos) {
      out += k_values[known];
      return;
    }
    const int base = c == 'x' ? 16 : 8;
    int value = base == 16 ? 0 : digit_value(c, 8);
    if (value < 0) {
      return report(line, column, fmt::format("unknown escape '\\{}' in a string", c), "a backslash itself is \\\\");
    }
    int digits = base == 16 ? 0 : 1;
    while (!done() && digits < (base == 16 ? 2 : 3) && digit_value(m_text[m_at], base) >= 0) {
      value = value * base + digit_value(take(), base);
      ++digits;
    }
    if (digits == 0) return report(line, column, "'\\x' without digits in a string", "write \\x and two digits");
    out += static_cast<char>(value);
  }

  std::string_view m_text;
  const std::string& m_file;
  std::vector<Diagnostic>& m_diagnostics;
  std::size_t m_at = 0;
  int m_line = 1;
  int m_column = 1;
  bool m_line_start = true;
};

}  // namespace

std::vector<CToken> scan_c(std::string_view text, const std::string& file, std::vector<Diagnostic>& diagnostics) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);  // a byte order mark
  return Scanner(text, file, diagnostics).all();
}

}  // namespace mtsim::isa
