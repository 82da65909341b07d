// SPDX-License-Identifier: Apache-2.0
// .include, .rept/.endr, .macro/.endm and .if/.else/.endif: source lines to the lines that are assembled. Internal to
// the assembler.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "isa/lexer.h"

namespace mtsim::isa {

struct SourceLine {
  std::string text;
  int number = 0;      // in the file; for a line of a macro, where the macro's text stands
  std::string origin;  // " (in macro M called at line 12)"; empty outside of macros
  std::string file;
};

/// Text that expands without end stops at these bounds with an error.
inline constexpr int k_max_lines = 100'000;
inline constexpr std::int64_t k_max_expanded_bytes = 4'000'000;
inline constexpr int k_max_nesting = 64;
inline constexpr std::size_t k_max_line_bytes = 4096;  // of a line of a macro after substitution

class Expander {
 public:
  struct Client {
    std::function<void(const SourceLine&)> line;                              // a line to assemble, in order
    std::function<std::int64_t(std::string_view text, int column)> evaluate;  // of .rept and .if; may throw
    std::function<void(const SourceLine&, const SyntaxError&)> report;        // the place and what is wrong
    std::function<std::string(const std::string& file)> include;              // its text; may throw SyntaxError
  };
  explicit Expander(Client client) : m_client(std::move(client)) {}

  void run(std::string_view text, const std::string& file);
  /// Names of the macros defined so far, for suggestions.
  std::vector<std::string_view> macro_names() const;
  bool is_macro(std::string_view name) const { return m_macros.find(name) != m_macros.end(); }

 private:
  struct Macro {
    std::vector<std::string> parameters;
    std::set<std::string, std::less<>> counters;  // of the .rept in its body: \name stays for them
    std::vector<SourceLine> body;
  };
  struct Block {
    std::string_view open, close;
  };
  static constexpr std::array<Block, 3> k_blocks = {{{".REPT", ".ENDR"}, {".MACRO", ".ENDM"}, {".IF", ".ENDIF"}}};
  // The text of \word; nullopt leaves it as it stands. May throw SyntaxError.
  using Substitution = std::function<std::optional<std::string>(std::string_view word)>;
  struct Range {  // lines [begin, end) of one text
    const std::vector<SourceLine>& lines;
    std::size_t begin, end;
  };

  void process(Range range, int depth);
  void include(const SourceLine& head, std::string_view path, int depth);
  std::size_t block_end(Range range, std::string_view open, std::string_view close);
  void repeat(const SourceLine& head, std::string_view signature, Range body, int depth);
  void define(const SourceLine& head, std::string_view signature, Range body);
  void call(const SourceLine& head, const std::string& name, std::string_view arguments, int depth);
  void choose(const SourceLine& head, std::string_view condition, Range body, int depth);
  void plain_line(const SourceLine& line, std::string_view spelled, std::string_view word);
  std::vector<SourceLine> counted(Range body, std::string_view name, std::int64_t value);
  static const Block* block_of(std::string_view word);
  static std::string substitute(const std::string& line, const Substitution& substitution);
  std::optional<std::int64_t> evaluate(const SourceLine& head, std::string_view text);
  bool too_deep(const SourceLine& head, int depth);
  bool spend(const SourceLine& line, std::size_t bytes);
  void stop(const SourceLine& line, const std::string& message);

  Client m_client;
  std::map<std::string, Macro, std::less<>> m_macros;
  std::set<std::string> m_included;
  std::int64_t m_lines = 0;
  std::int64_t m_bytes = 0;
  int m_calls = 0;  // \@
  bool m_stopped = false;
};

}  // namespace mtsim::isa
