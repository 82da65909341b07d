// SPDX-License-Identifier: Apache-2.0
#include "isa/expander.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

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

bool is_counter_name(std::string_view name) {
  std::string_view rest = name;
  return !take_word(rest).empty() && rest.empty() && name.find('.') == std::string_view::npos;
}

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::vector<SourceLine> lines_of(std::string_view text, const std::string& file) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);  // a byte order mark
  std::vector<SourceLine> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back({std::string(text.substr(0, end)), static_cast<int>(lines.size()) + 1, "", file});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool is_macro_name(std::string_view name) { return !name.empty() && name[0] != '.'; }

}  // namespace

std::vector<std::string_view> Expander::macro_names() const {
  std::vector<std::string_view> names;
  for (const auto& [name, unused_macro] : m_macros) names.push_back(name);
  return names;
}

void Expander::run(std::string_view text, const std::string& file) {
  m_included.insert(std::filesystem::path(file).lexically_normal().generic_string());
  const std::vector<SourceLine> lines = lines_of(text, file);
  process({lines, 0, lines.size()}, 0);
}

// .include "PATH", relative to the file it stands in; a file that is in already adds nothing.
void Expander::include(const SourceLine& head, std::string_view path, int depth) {
  if (too_deep(head, depth)) return;
  if (path.size() < 3 || path.front() != '"' || path.back() != '"') {
    m_client.report(head, SyntaxError(column_of(head.text, path), ".include takes a file name in quotes",
                                      "write .include \"macros.inc.s\"", "include"));
    return;
  }
  const std::filesystem::path folder = std::filesystem::path(head.file).parent_path();
  const std::string file = (folder / path.substr(1, path.size() - 2)).lexically_normal().generic_string();
  if (!m_included.insert(file).second) return;
  std::vector<SourceLine> lines;
  try {
    lines = lines_of(m_client.include(file), file);
  } catch (const SyntaxError& error) {
    m_client.report(head, SyntaxError(column_of(head.text, path), error.what(), error.suggestion, error.code));
    return;
  }
  process({lines, 0, lines.size()}, depth + 1);
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
    const Block* block = block_of(word);
    const bool is_call = m_macros.find(head.word) != m_macros.end();
    if (word == ".INCLUDE") {
      if (!head.label.empty()) m_client.line({std::string(head.label), line.number, line.origin, line.file});
      include(line, head.rest, depth);
      continue;
    }
    if (block == nullptr && !is_call) {
      plain_line(line, head.word, word);
      continue;
    }
    if (!head.label.empty()) m_client.line({std::string(head.label), line.number, line.origin, line.file});
    const bool is_macro = word == ".MACRO";
    if (const auto comment = split_comment(line.text).comment; comment && !is_macro && !comment->empty()) {
      m_client.line({";" + *comment, line.number, line.origin, line.file});
    }
    if (is_call) {
      call(line, std::string(head.word), head.rest, depth);
      continue;
    }
    const std::size_t end = block_end({range.lines, i + 1, range.end}, block->open, block->close);
    if (m_stopped) return;
    if (end == range.end) {
      const std::string close = to_lower(block->close);
      m_client.report(line, SyntaxError(column_of(line.text, head.word), fmt::format("{} without {}", head.word, close),
                                        fmt::format("add {} behind its last line", close), "expansion"));
      return;  // what its body is cannot be told
    }
    const Range body{range.lines, i + 1, end};
    if (is_macro) {
      define(line, head.rest, body);
    } else if (word == ".REPT") {
      repeat(line, head.rest, body, depth);
    } else {
      choose(line, head.rest, body, depth);
    }
    i = end;
  }
}

const Expander::Block* Expander::block_of(std::string_view word) {
  for (const Block& block : k_blocks) {
    if (word == block.open) return &block;
  }
  return nullptr;
}

void Expander::plain_line(const SourceLine& line, std::string_view spelled, std::string_view word) {
  std::string_view open;
  for (const Block& block : k_blocks) {
    if (word == block.close) open = block.open;
  }
  if (word == ".ELSE") open = ".IF";
  if (open.empty()) {
    m_client.line(line);
  } else {
    m_client.report(line, SyntaxError(column_of(line.text, spelled),
                                      fmt::format("{} without {}", spelled, to_lower(open)), "", "expansion"));
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

bool Expander::too_deep(const SourceLine& head, int depth) {
  if (depth >= k_max_nesting) stop(head, fmt::format(".rept, .if and macros nest deeper than {}", k_max_nesting));
  return depth >= k_max_nesting;
}

std::optional<std::int64_t> Expander::evaluate(const SourceLine& head, std::string_view text) {
  try {
    return m_client.evaluate(text, column_of(head.text, text));
  } catch (const SyntaxError& error) {
    m_client.report(head, error);
    return std::nullopt;
  }
}

// .rept COUNT [, NAME]: with a name each repetition has its number, from 0, for \NAME.
void Expander::repeat(const SourceLine& head, std::string_view signature, Range body, int depth) {
  if (too_deep(head, depth)) return;
  const std::size_t comma = signature.find_last_of(',');
  const std::string_view name = comma == std::string_view::npos ? "" : trim(signature.substr(comma + 1));
  if (comma != std::string_view::npos && !is_counter_name(name)) {
    m_client.report(head,
                    SyntaxError(column_of(head.text, signature), fmt::format(".rept counter '{}' is not a name", name),
                                "write .rept COUNT, i", "expansion"));
    return;
  }
  const auto count = evaluate(head, trim(signature.substr(0, comma)));
  if (!count) return;
  if (*count < 0) {
    m_client.report(head, SyntaxError(column_of(head.text, signature),
                                      fmt::format(".rept count {} is negative", *count), "", "expansion"));
    return;
  }
  for (std::int64_t i = 0; i < *count && !m_stopped; ++i) {
    if (!spend(head, 0)) return;
    if (name.empty()) {
      process(body, depth + 1);
    } else {
      const std::vector<SourceLine> lines = counted(body, name, i);
      process({lines, 0, lines.size()}, depth + 1);
    }
  }
}

std::vector<SourceLine> Expander::counted(Range body, std::string_view name, std::int64_t value) {
  const Substitution substitution = [&](std::string_view word) -> std::optional<std::string> {
    if (word == name) return std::to_string(value);
    return std::nullopt;
  };
  std::vector<SourceLine> lines;
  for (std::size_t i = body.begin; i < body.end; ++i) {
    const SourceLine& line = body.lines[i];
    if (!spend(line, line.text.size())) break;
    try {
      lines.push_back({substitute(line.text, substitution), line.number, line.origin, line.file});
    } catch (const SyntaxError& error) {
      m_client.report(line, error);
    }
  }
  return lines;
}

// .if EXPRESSION, then lines, perhaps .else and lines, .endif.
void Expander::choose(const SourceLine& head, std::string_view condition, Range body, int depth) {
  if (too_deep(head, depth)) return;
  std::size_t otherwise = body.end;
  int nesting = 0;
  for (std::size_t i = body.begin; i < body.end; ++i) {
    const std::string word = to_upper(head_of(body.lines[i].text).word);
    if (word == ".IF") ++nesting;
    if (word == ".ENDIF") --nesting;
    if (word != ".ELSE" || nesting > 0) continue;
    if (otherwise != body.end) {
      m_client.report(body.lines[i], SyntaxError(1, "a second .else", "drop one", "expansion"));
      return;
    }
    otherwise = i;
  }
  const auto value = evaluate(head, condition);
  if (!value) return;
  if (*value != 0) {
    process({body.lines, body.begin, otherwise}, depth + 1);
  } else if (otherwise != body.end) {
    process({body.lines, otherwise + 1, body.end}, depth + 1);
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
  for (std::size_t i = body.begin; i < body.end; ++i) {
    const Head inner = head_of(body.lines[i].text);
    const std::size_t comma = inner.rest.find_last_of(',');
    if (to_upper(inner.word) != ".REPT" || comma == std::string_view::npos) continue;
    macro.counters.emplace(trim(inner.rest.substr(comma + 1)));
  }
  macro.body.assign(body.lines.begin() + static_cast<std::ptrdiff_t>(body.begin),
                    body.lines.begin() + static_cast<std::ptrdiff_t>(body.end));
  m_macros.emplace(name, std::move(macro));
}

void Expander::call(const SourceLine& head, const std::string& name, std::string_view text, int depth) {
  const Macro& macro = m_macros.find(name)->second;
  if (too_deep(head, depth)) return;
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
  const std::string number = std::to_string(m_calls++);
  const Substitution substitution = [&](std::string_view word) -> std::optional<std::string> {
    if (word == "@") return number;
    const auto it = std::find(macro.parameters.begin(), macro.parameters.end(), word);
    if (it != macro.parameters.end()) return arguments[static_cast<std::size_t>(it - macro.parameters.begin())];
    if (macro.counters.count(word) > 0) return std::nullopt;  // its .rept replaces it
    const std::vector<std::string_view> known(macro.parameters.begin(), macro.parameters.end());
    throw SyntaxError(0, fmt::format("'\\{}' is not a parameter of the macro{}", word, did_you_mean(word, known)), "",
                      "macro");
  };
  std::vector<SourceLine> lines;
  lines.reserve(macro.body.size());
  for (const SourceLine& line : macro.body) {
    const std::string origin = fmt::format(" (in macro {} called at line {})", name, head.number);
    try {
      lines.push_back({substitute(line.text, substitution), line.number, origin, line.file});
    } catch (const SyntaxError& error) {
      m_client.report({line.text, line.number, origin, line.file}, error);
    }
  }
  process({lines, 0, lines.size()}, depth + 1);
}

// \name becomes what the substitution says and \() behind it nothing; what it does not know stays, with its \(), and so
// do comments.
std::string Expander::substitute(const std::string& line, const Substitution& substitution) {
  const std::string_view code = split_comment(line).code;
  std::string out;
  std::size_t i = 0;
  while (i < code.size()) {
    if (code[i] != '\\') {
      out += code[i++];
      continue;
    }
    const std::string_view rest = code.substr(i + 1);
    std::size_t end = rest.substr(0, 1) == "@" ? 1 : 0;
    if (end == 0) {
      while (end < rest.size() && is_word(rest[end]) && rest[end] != '.') ++end;
    }
    const std::size_t column = i + 1;
    const bool glued = rest.substr(end, 3) == "\\()";
    const std::size_t length = 1 + end + (glued ? 3 : 0);
    if (end == 0 && rest.substr(0, 2) == "()") {
      i += 3;
      continue;
    }
    try {
      const auto text = substitution(rest.substr(0, end));
      out += text ? *text : std::string(code.substr(i, length));
    } catch (const SyntaxError& error) {
      throw SyntaxError(static_cast<int>(column), error.what(), error.suggestion, error.code);
    }
    i += length;
    if (out.size() > k_max_line_bytes) {
      throw SyntaxError(1, fmt::format("the line expands to more than {} bytes", k_max_line_bytes), "", "macro");
    }
  }
  return out + line.substr(code.size());
}

}  // namespace mtsim::isa
