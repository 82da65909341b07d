// SPDX-License-Identifier: Apache-2.0
#include "isa/expander.h"

#include <fmt/format.h>

#include <algorithm>

#include "isa/diagnostic.h"
#include "isa/instruction_table.h"

namespace mtsim::isa {
namespace {

struct Head {              // the first word of a line and what follows it
  std::string_view label;  // "loop:" in front of it, or empty
  std::string_view word;
  std::string_view rest;
};

std::string_view take_word(std::string_view& text) {
  std::size_t end = 0;
  if (!text.empty() && is_word_start(text[0])) {
    while (end < text.size() && is_word(text[end])) ++end;
  }
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

Head head_of(std::string_view line) {
  const std::string_view code = trim(split_comment(line).code);
  std::string_view text = code;
  Head head;
  for (;;) {
    head.word = take_word(text);
    text = trim(text);
    if (head.word.empty() || text.empty() || text[0] != ':') {
      head.rest = text;
      return head;
    }
    text = trim(text.substr(1));
    head.label = code.substr(0, static_cast<std::size_t>(text.data() - code.data()));
  }
}

int column_of(std::string_view line, std::string_view part) {
  return part.data() < line.data() ? 1 : static_cast<int>(part.data() - line.data()) + 1;
}

// Cut at commas outside of brackets, each piece trimmed; an empty text has no pieces.
std::vector<std::string> split_arguments(std::string_view text) {
  std::vector<std::string> pieces;
  if (trim(text).empty()) return pieces;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && (text[i] == '[' || text[i] == '(')) ++depth;
    if (i < text.size() && (text[i] == ']' || text[i] == ')')) --depth;
    if (i == text.size() || (text[i] == ',' && depth <= 0)) {
      pieces.emplace_back(trim(text.substr(start, i - start)));
      start = i + 1;
    }
  }
  return pieces;
}

bool is_macro_name(std::string_view name) { return !name.empty() && name[0] != '.'; }

}  // namespace

std::vector<std::string_view> Expander::macro_names() const {
  std::vector<std::string_view> names;
  for (const auto& [name, unused_macro] : m_macros) names.push_back(name);
  return names;
}

void Expander::run(std::string_view text) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);  // a byte order mark
  std::vector<SourceLine> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back({std::string(text.substr(0, end)), static_cast<int>(lines.size()) + 1, ""});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  process({lines, 0, lines.size()}, 0);
}

void Expander::stop(const SourceLine& line, const std::string& message) {
  if (!m_stopped) m_client.report(line, SyntaxError(1, message, "check the .rept counts and the macros", "expansion"));
  m_stopped = true;
}

bool Expander::spend(const SourceLine& line, std::size_t bytes) {
  m_lines += 1;
  m_bytes += static_cast<std::int64_t>(bytes);
  if (m_lines > k_max_lines) stop(line, fmt::format("the text expands to more than {} lines", k_max_lines));
  if (m_bytes > k_max_expanded_bytes) {
    stop(line, fmt::format("the text expands to more than {} bytes", k_max_expanded_bytes));
  }
  return !m_stopped;
}

void Expander::process(Range range, int depth) {
  for (std::size_t i = range.begin; i < range.end && !m_stopped; ++i) {
    const SourceLine& line = range.lines[i];
    if (!spend(line, depth > 0 ? line.text.size() : 0)) return;
    const Head head = head_of(line.text);
    const std::string word = to_upper(head.word);
    const bool is_rept = word == ".REPT";
    const bool is_macro = word == ".MACRO";
    const bool is_call = m_macros.find(head.word) != m_macros.end();
    if (!is_rept && !is_macro && !is_call) {
      if (word == ".ENDR" || word == ".ENDM") {
        m_client.report(line, SyntaxError(column_of(line.text, head.word),
                                          fmt::format("{} without {}", head.word, word == ".ENDR" ? ".rept" : ".macro"),
                                          "", "expansion"));
      } else {
        m_client.line(line);
      }
      continue;
    }
    if (!head.label.empty()) m_client.line({std::string(head.label), line.number, line.origin});
    if (const auto comment = split_comment(line.text).comment; comment && !is_macro && !comment->empty()) {
      m_client.line({";" + *comment, line.number, line.origin});
    }
    if (is_call) {
      call(line, std::string(head.word), head.rest, depth);
      continue;
    }
    const std::size_t end =
        block_end({range.lines, i + 1, range.end}, is_rept ? ".REPT" : ".MACRO", is_rept ? ".ENDR" : ".ENDM");
    if (m_stopped) return;
    if (end == range.end) {
      m_client.report(
          line, SyntaxError(column_of(line.text, head.word),
                            fmt::format("{} without {}", head.word, is_rept ? ".endr" : ".endm"),
                            fmt::format("add {} behind its last line", is_rept ? ".endr" : ".endm"), "expansion"));
      return;  // what its body is cannot be told
    }
    const Range body{range.lines, i + 1, end};
    if (is_rept) {
      repeat(line, head.rest, body, depth);
    } else {
      define(line, head.rest, body);
    }
    i = end;
  }
}

std::size_t Expander::block_end(Range range, std::string_view open, std::string_view close) {
  int nesting = 1;
  for (std::size_t i = range.begin; i < range.end; ++i) {
    if (!spend(range.lines[i], 0)) return range.end;
    const std::string word = to_upper(head_of(range.lines[i].text).word);
    if (word == open) ++nesting;
    if (word == close && --nesting == 0) return i;
  }
  return range.end;
}

void Expander::repeat(const SourceLine& head, std::string_view count_text, Range body, int depth) {
  const int column = column_of(head.text, count_text);
  if (depth >= k_max_nesting) {
    stop(head, fmt::format(".rept and macros nest deeper than {}", k_max_nesting));
    return;
  }
  std::int64_t count = 0;
  try {
    count = m_client.evaluate(count_text, column);
    if (count < 0) throw SyntaxError(column, fmt::format(".rept count {} is negative", count), "", "expansion");
  } catch (const SyntaxError& error) {
    m_client.report(head, error);
    return;
  }
  for (std::int64_t i = 0; i < count && !m_stopped; ++i) {
    if (spend(head, 0)) process(body, depth + 1);
  }
}

void Expander::define(const SourceLine& head, std::string_view signature, Range body) {
  std::string_view rest = signature;
  const std::string name(take_word(rest));
  const int column = column_of(head.text, signature);
  const auto fail = [&](const std::string& message, const std::string& fix) {
    m_client.report(head, SyntaxError(column, message, fix, "macro"));
  };
  if (!is_macro_name(name)) return fail(".macro needs a name", "write .macro NAME a, b");
  if (find_row(name) != nullptr)
    return fail(fmt::format("macro '{}' has the name of an instruction", name), "rename it");
  if (m_macros.find(name) != m_macros.end())
    return fail(fmt::format("macro '{}' is defined twice", name), "rename one");
  Macro macro;
  for (std::string& parameter : split_arguments(rest)) {
    std::string_view text = parameter;
    if (take_word(text).empty() || !text.empty()) {
      return fail(fmt::format("macro parameter '{}' is not a name", parameter), "write .macro NAME a, b");
    }
    macro.parameters.push_back(std::move(parameter));
  }
  macro.body.assign(body.lines.begin() + static_cast<std::ptrdiff_t>(body.begin),
                    body.lines.begin() + static_cast<std::ptrdiff_t>(body.end));
  m_macros.emplace(name, std::move(macro));
}

void Expander::call(const SourceLine& head, const std::string& name, std::string_view text, int depth) {
  const Macro& macro = m_macros.find(name)->second;
  if (depth >= k_max_nesting) {
    stop(head, fmt::format(".rept and macros nest deeper than {} (macro '{}')", k_max_nesting, name));
    return;
  }
  const std::vector<std::string> arguments = split_arguments(text);
  if (arguments.size() != macro.parameters.size()) {
    std::string expected;
    for (const std::string& parameter : macro.parameters) expected += (expected.empty() ? "" : ", ") + parameter;
    m_client.report(head, SyntaxError(column_of(head.text, text),
                                      fmt::format("macro '{}' takes {} arguments ({}), got {}", name,
                                                  macro.parameters.size(), expected, arguments.size()),
                                      "", "macro"));
    return;
  }
  const int number = m_calls++;
  std::vector<SourceLine> lines;
  lines.reserve(macro.body.size());
  for (const SourceLine& line : macro.body) {
    const std::string origin = fmt::format(" (in macro {} called at line {})", name, head.number);
    try {
      lines.push_back({substitute(line.text, macro, arguments, number), line.number, origin});
    } catch (const SyntaxError& error) {
      m_client.report({line.text, line.number, origin}, error);
    }
  }
  process({lines, 0, lines.size()}, depth + 1);
}

// \name becomes its argument, \@ the number of the call, \() nothing; comments stay as they are.
std::string Expander::substitute(const std::string& line, const Macro& macro, const std::vector<std::string>& arguments,
                                 int number) {
  const std::size_t code_size = split_comment(line).code.size();
  std::string out;
  for (std::size_t i = 0; i < code_size; ++i) {
    if (line[i] != '\\') {
      out += line[i];
      continue;
    }
    const std::string_view rest = std::string_view(line).substr(i + 1, code_size - i - 1);
    if (rest.substr(0, 1) == "@") {
      out += std::to_string(number);
      i += 1;
    } else if (rest.substr(0, 2) == "()") {
      i += 2;
    } else {
      std::size_t end = 0;
      while (end < rest.size() && is_word(rest[end]) && rest[end] != '.') ++end;
      const std::string_view word = rest.substr(0, end);
      const auto it = std::find(macro.parameters.begin(), macro.parameters.end(), word);
      if (it == macro.parameters.end()) {
        const std::vector<std::string_view> known(macro.parameters.begin(), macro.parameters.end());
        throw SyntaxError(static_cast<int>(i) + 1,
                          fmt::format("'\\{}' is not a parameter of the macro{}", word, did_you_mean(word, known)), "",
                          "macro");
      }
      out += arguments[static_cast<std::size_t>(it - macro.parameters.begin())];
      i += end;
    }
    if (out.size() > k_max_line_bytes) {
      throw SyntaxError(1, fmt::format("a line of the macro expands to more than {} bytes", k_max_line_bytes), "",
                        "macro");
    }
  }
  out += std::string_view(line).substr(code_size);
  return out;
}

}  // namespace mtsim::isa
