// SPDX-License-Identifier: Apache-2.0
// .rept/.endr and .macro/.endm: source lines to the lines that are assembled. Internal to the assembler.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "isa/lexer.h"

namespace mtsim::isa {

struct SourceLine {
  std::string text;
  int number = 0;      // in the file; for a line of a macro, where the macro's text stands
  std::string origin;  // " (in macro M called at line 12)"; empty outside of macros
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
    std::function<std::int64_t(std::string_view text, int column)> evaluate;  // the count of .rept; may throw
    std::function<void(const SourceLine&, const SyntaxError&)> report;        // the place and what is wrong
  };
  explicit Expander(Client client) : m_client(std::move(client)) {}

  void run(std::string_view text);
  /// Names of the macros defined so far, for suggestions.
  std::vector<std::string_view> macro_names() const;
  bool is_macro(std::string_view name) const { return m_macros.find(name) != m_macros.end(); }

 private:
  struct Macro {
    std::vector<std::string> parameters;
    std::vector<SourceLine> body;
  };
  struct Range {  // lines [begin, end) of one text
    const std::vector<SourceLine>& lines;
    std::size_t begin, end;
  };

  void process(Range range, int depth);
  std::size_t block_end(Range range, std::string_view open, std::string_view close);
  void repeat(const SourceLine& head, std::string_view count, Range body, int depth);
  void define(const SourceLine& head, std::string_view signature, Range body);
  void call(const SourceLine& head, const std::string& name, std::string_view arguments, int depth);
  std::string substitute(const std::string& line, const Macro& macro, const std::vector<std::string>& arguments,
                         int number);
  bool spend(const SourceLine& line, std::size_t bytes);
  void stop(const SourceLine& line, const std::string& message);

  Client m_client;
  std::map<std::string, Macro, std::less<>> m_macros;
  std::int64_t m_lines = 0;
  std::int64_t m_bytes = 0;
  int m_calls = 0;  // \@
  bool m_stopped = false;
};

}  // namespace mtsim::isa
