// SPDX-License-Identifier: Apache-2.0
#include "isa/importer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "isa/c_scanner.h"
#include "isa/lexer.h"

namespace mtsim::isa {
namespace {

constexpr int k_first_register = 10;  // R10, R12, R14, ...: the ABI's argument registers
constexpr int k_max_operands = 26;
constexpr std::size_t k_max_diagnostics = 100;

struct AsmOperand {
  std::string name;       // of [name], else from the C expression
  bool is_named = false;  // written [name]
  std::string constraint;
  std::optional<int> tied_to;  // "0": lives in operand 0's register
  int parameter = 0;           // its .param, counted from 0
  CToken at;
};

bool is_asm_keyword(const CToken& token) {
  return token.kind == CTokenKind::word && (token.text == "asm" || token.text == "__asm__" || token.text == "__asm");
}

bool is_qualifier(const CToken& token) {
  static const std::set<std::string> k_qualifiers = {"volatile", "__volatile__", "__volatile",
                                                     "inline",   "__inline__",   "goto"};
  return token.kind == CTokenKind::word && k_qualifiers.count(token.text) > 0;
}

bool is_identifier(const CToken& token) {
  return token.kind == CTokenKind::word && !token.text.empty() && token.spelled[0] != '\'' &&
         !(token.text[0] >= '0' && token.text[0] <= '9');
}

class Importer {
 public:
  Importer(std::string_view text, const std::string& file)
      : m_tokens(scan_c(text, file, m_import.diagnostics)), m_file(file) {}

  Import all() {
    while (current().kind != CTokenKind::end) {
      const CToken& token = current();
      if (is_asm_keyword(token) && starts_statement()) {
        const std::size_t start = m_at;
        try {
          asm_statement();
        } catch (const IsaError& error) {
          m_import.diagnostics.insert(m_import.diagnostics.end(), error.diagnostics().begin(),
                                      error.diagnostics().end());
          skip_statement(start);
        } catch (const BadToken&) {
          skip_statement(start);
        }
        continue;
      }
      follow_structure(token);
      next();
    }
    // Behind another mistake the count of braces says nothing.
    if (!m_blocks.empty() && m_import.diagnostics.empty()) report(m_blocks.back().open, "'{' is not closed");
    std::stable_sort(m_import.diagnostics.begin(), m_import.diagnostics.end(),
                     [](const Diagnostic& a, const Diagnostic& b) {
                       return std::tie(a.place.line, a.place.column) < std::tie(b.place.line, b.place.column);
                     });
    if (m_import.diagnostics.size() > k_max_diagnostics) {
      m_import.diagnostics.resize(k_max_diagnostics);
      m_import.diagnostics.push_back({Severity::fatal, {m_file}, "too many errors; the rest is not shown", "", ""});
    }
    return std::move(m_import);
  }

 private:
  struct BadToken {};  // the scanner has reported it
  struct Block {
    CToken open;
    bool is_function;
  };

  // Behind the asm statement whose keyword is token `start`, which cannot be read.
  void skip_statement(std::size_t start) {
    m_at = start + 1;
    int depth = 0;
    while (current().kind != CTokenKind::end && !current().is("}") && !(depth == 0 && current().is(";"))) {
      if (current().is("(")) ++depth;
      if (current().is(")") && --depth == 0) {
        next();
        break;
      }
      next();
    }
    end_of_statement();
  }

  void end_of_statement() {
    m_previous.kind = CTokenKind::symbol;
    m_previous.text = ";";
  }

  const CToken& current() const { return m_tokens[m_at]; }

  void next() {
    if (current().kind == CTokenKind::end) return;
    if (current().kind != CTokenKind::comment && current().kind != CTokenKind::preprocessor) m_previous = current();
    ++m_at;
  }

  // The next token that is neither comment nor preprocessor line.
  void next_code() {
    next();
    skip_comments();
  }
  void skip_comments() {
    while (current().kind == CTokenKind::comment || current().kind == CTokenKind::preprocessor) next();
  }

  [[noreturn]] void fail(const CToken& token, const std::string& message, const std::string& fix = "") const {
    if (token.kind == CTokenKind::bad) throw BadToken();
    throw IsaError({diagnostic(token, message, fix)});
  }
  void report(const CToken& token, const std::string& message) {
    m_import.diagnostics.push_back(diagnostic(token, message, ""));
  }
  Diagnostic diagnostic(const CToken& token, const std::string& message, const std::string& fix) const {
    return {Severity::fatal, {m_file, token.line, token.column}, message, fix, "import"};
  }

  bool in_function() const {
    return std::any_of(m_blocks.begin(), m_blocks.end(), [](const Block& block) { return block.is_function; });
  }

  // Tells `asm(...)` as a statement from the assembler name of a declaration: `register long a asm("R10")`, `f(void)
  // asm("g")`.
  bool starts_statement() const {
    if (m_previous.kind == CTokenKind::end) return true;
    if (m_previous.is(")")) return in_function();
    static const std::set<std::string> k_words = {"else", "do", "__extension__"};
    if (m_previous.kind == CTokenKind::word) return k_words.count(m_previous.text) > 0;
    return m_previous.is(";") || m_previous.is("{") || m_previous.is("}") || m_previous.is(":");
  }

  // Which function we are in: at file level, the word in front of the parenthesis that a body follows.
  void follow_structure(const CToken& token) {
    if (token.is("(")) {
      if (m_parentheses++ == 0 && !in_function() && is_identifier(m_previous) && m_previous.text != "__attribute__") {
        m_candidate = m_previous.text;
      }
    } else if (token.is(")")) {
      if (m_parentheses == 0) return report(token, "')' without '('");
      --m_parentheses;
    } else if (token.is("{")) {
      const bool is_function = !in_function() && !m_candidate.empty();
      if (is_function) m_function = m_candidate;
      m_candidate.clear();
      m_blocks.push_back({token, is_function});
    } else if (token.is("}")) {
      if (m_blocks.empty()) return report(token, "'}' without '{'");
      m_blocks.pop_back();
    } else if ((token.is(";") || token.is("=")) && m_parentheses == 0) {
      m_candidate.clear();
    }
  }

  void asm_statement() {
    const CToken keyword = current();
    next_code();
    while (is_qualifier(current())) {
      if (current().text == "goto") fail(current(), "asm goto is not supported", "branch to labels inside the body");
      next_code();
    }
    if (!current().is("(")) fail(current(), "expected '(' behind asm");
    const CToken open = current();
    next();
    std::string body = strings(open);
    std::vector<AsmOperand> operands;
    const bool extended = current().is(":");
    for (int section = 0; current().is(":"); ++section) {
      next_code();
      if (section < 2) {
        operand_list(open, operands);
      } else {
        clobbers(open);
      }
    }
    if (!current().is(")")) fail(open, "'(' of the asm statement is not closed");
    next();
    end_of_statement();
    if (trim(body).empty()) return;  // a compiler barrier
    place_operands(operands, keyword);
    const std::string name = body_name();
    std::string text = fmt::format("; {}, imported from {}:{}\n", name, m_file, keyword.line);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (!operands[i].tied_to) {
        text += fmt::format(".param {}, R{}, value\n", operands[i].name, k_first_register + 2 * operands[i].parameter);
      }
    }
    text += extended ? with_operands(body, operands, keyword) : body;
    if (text.back() != '\n') text += '\n';
    m_import.bodies.push_back({name, text, {m_file, keyword.line, keyword.column}});
  }

  // The template: adjacent strings. A C comment between them becomes an assembly comment, on the line of the string it
  // follows.
  std::string strings(const CToken& open) {
    std::string body;
    int last_line = 0;
    for (;; next()) {
      const CToken& token = current();
      if (token.kind == CTokenKind::string) {
        body += token.text;
        last_line = token.end_line;
      } else if (token.kind == CTokenKind::comment) {
        add_comment(body, token, token.line == last_line);
      } else if (token.kind == CTokenKind::preprocessor) {
        if (!is_line_marker(token)) {
          fail(token, fmt::format("'{}' inside an asm statement", token.text), "run the C preprocessor first");
        }
      } else if (token.is(":") || token.is(")")) {
        return body;
      } else if (token.kind == CTokenKind::end) {
        fail(open, "'(' of the asm statement is not closed");
      } else {
        fail(token, fmt::format("expected a string in the asm statement, got '{}'", token.spelled),
             "run the C preprocessor first if it is a macro");
      }
    }
  }

  static bool is_line_marker(const CToken& token) {
    return token.text.size() > 2 && token.text[1] == ' ' && token.text[2] >= '0' && token.text[2] <= '9';
  }

  static void add_comment(std::string& body, const CToken& comment, bool same_line) {
    std::string_view rest = comment.text;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      const std::string_view text = trim(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (text.empty()) continue;
      const bool at_line_start = body.empty() || body.back() == '\n';
      if (!at_line_start) continue;  // in the middle of an instruction there is no place for it
      if (same_line && !body.empty()) {
        body.insert(body.size() - 1, fmt::format(" ; {}", text));
        same_line = false;
      } else {
        body += fmt::format("; {}\n", text);
      }
    }
  }

  void operand_list(const CToken& open, std::vector<AsmOperand>& operands) {
    skip_comments();
    while (!current().is(":") && !current().is(")")) {
      AsmOperand operand;
      operand.at = current();
      if (current().is("[")) {
        next_code();
        if (!is_identifier(current())) fail(current(), "expected an operand name behind '['");
        operand.name = current().text;
        operand.is_named = true;
        next_code();
        if (!current().is("]")) fail(current(), "expected ']' behind the operand name");
        next_code();
      }
      if (current().kind != CTokenKind::string) fail(current(), "expected an operand constraint such as \"r\"");
      while (current().kind == CTokenKind::string) {
        operand.constraint += current().text;
        next_code();
      }
      if (!current().is("(")) fail(current(), "expected '(' and the operand's C expression");
      const std::string from_expression = expression(open);
      if (operand.name.empty()) operand.name = from_expression;
      read_constraint(operand);
      operands.push_back(std::move(operand));
      if (!current().is(",")) break;
      next_code();
    }
    if (!current().is(":") && !current().is(")")) fail(current(), "expected ',', ':' or ')' behind an asm operand");
  }

  // Skips "(expression)" and returns the last identifier outside of brackets and calls' arguments: (float *)a->data
  // gives data.
  std::string expression(const CToken& open) {
    std::string name;
    int depth = 0;
    int brackets = 0;
    do {
      const CToken& token = current();
      if (token.kind == CTokenKind::end) fail(open, "'(' of the asm statement is not closed");
      if (token.kind == CTokenKind::bad) throw BadToken();
      if (token.is("(")) ++depth;
      if (token.is(")")) --depth;
      if (token.is("[")) ++brackets;
      if (token.is("]")) --brackets;
      if (brackets == 0 && is_identifier(token)) name = token.text;
      next_code();
    } while (depth > 0);
    return name;
  }

  void read_constraint(AsmOperand& operand) const {
    std::string letters;
    for (const char c : operand.constraint) {
      if (c >= '0' && c <= '9') {
        operand.tied_to = operand.tied_to.value_or(0) * 10 + (c - '0');
        if (*operand.tied_to > k_max_operands) fail(operand.at, "no such operand to share a register with");
      } else if (std::string_view("=+&%, ").find(c) == std::string_view::npos) {
        letters += c;
      }
    }
    const bool register_allowed = letters.find_first_not_of("imnsopVEFG") != std::string::npos;
    if (!operand.tied_to && !register_allowed) {
      fail(operand.at, fmt::format("operand constraint \"{}\" does not allow a register", operand.constraint),
           "only register operands (\"r\") can be imported");
    }
  }

  void clobbers(const CToken& open) {
    while (!current().is(":") && !current().is(")")) {
      if (current().kind == CTokenKind::end) fail(open, "'(' of the asm statement is not closed");
      if (current().kind != CTokenKind::string && !current().is(",")) {
        fail(current(), fmt::format("expected a clobbered register in quotes, got '{}'", current().spelled));
      }
      next_code();
    }
  }

  // Numbers the .params: outputs before inputs as written; a tied input has no register of its own.
  void place_operands(std::vector<AsmOperand>& operands, const CToken& keyword) const {
    std::set<std::string> names;
    for (const AsmOperand& operand : operands) {
      if (operand.is_named && !names.insert(operand.name).second) {
        fail(operand.at, fmt::format("operand name '{}' is used twice", operand.name));
      }
    }
    int parameters = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      AsmOperand& operand = operands[i];
      if (operand.tied_to) {
        const auto other = static_cast<std::size_t>(*operand.tied_to);
        if (other >= i || operands[other].tied_to) fail(operand.at, "no such operand to share a register with");
        operand.parameter = operands[other].parameter;
        continue;
      }
      operand.parameter = parameters++;
      if (operand.name.empty()) operand.name = fmt::format("operand{}", i);
      if (operand.is_named) continue;
      std::string unique = operand.name;
      for (int copy = 2; !names.insert(unique).second; ++copy) unique = fmt::format("{}_{}", operand.name, copy);
      operand.name = unique;
    }
    if (parameters > k_max_operands) {
      fail(keyword, fmt::format("{} register operands; at most {} have a register", parameters, k_max_operands));
    }
  }

  std::string body_name() {
    const std::string function = in_function() ? m_function : "file_scope";
    std::string name = function;
    for (int number = 2; !m_names.insert(name).second; ++number) name = fmt::format("{}_{}", function, number);
    return name;
  }

  // %n and %[name] to the number of the .param, %% to %, %= to the number of the body. In comments only %% changes.
  std::string with_operands(const std::string& body, const std::vector<AsmOperand>& operands, const CToken& keyword) {
    std::string out;
    bool in_comment = false;
    for (std::size_t i = 0; i < body.size(); ++i) {
      const char c = body[i];
      if (c == '\n') in_comment = false;
      if (c == ';' || body.compare(i, 2, "//") == 0) in_comment = true;
      const bool is_escaped = body.compare(i, 2, "%%") == 0;
      if (c != '%' || (in_comment && !is_escaped)) {
        out += c;
        continue;
      }
      const char kind = i + 1 < body.size() ? body[i + 1] : '\0';
      if (is_escaped && !in_comment && names_operand(body, i)) {
        fail(keyword, fmt::format("'%%{}' in the asm is a percent sign and no operand", body[i + 2]),
             "write one % in front of an operand, or a space behind the % of a division");
      }
      if (kind == '%' || kind == '|' || kind == '{' || kind == '}') {
        out += kind;
        ++i;
      } else if (kind == '=') {
        out += std::to_string(m_import.bodies.size());
        ++i;
      } else if (kind == '[') {
        const std::size_t close = body.find(']', i);
        const std::string name = body.substr(i + 2, close == std::string::npos ? close : close - i - 2);
        out += "%" + std::to_string(operand_named(operands, name, keyword).parameter);
        i = close == std::string::npos ? body.size() : close;
      } else if (kind >= '0' && kind <= '9') {
        std::size_t number = 0;
        for (; i + 1 < body.size() && body[i + 1] >= '0' && body[i + 1] <= '9'; ++i) {
          number = std::min<std::size_t>(10 * number + static_cast<std::size_t>(body[i + 1] - '0'), 1000);
        }
        if (number >= operands.size()) {
          fail(keyword, fmt::format("the asm uses %{} but has {} operands", number, operands.size()));
        }
        out += "%" + std::to_string(operands[number].parameter);
      } else {
        fail(keyword, fmt::format("'%{}' in the asm is no operand", kind), "write %n, %[name], %% or %=");
      }
    }
    return out;
  }

  // "%%9" and "%%[x]" at `at` look like operands, unless a value stands right in front of them: 10%%9.
  static bool names_operand(const std::string& body, std::size_t at) {
    const char before = at > 0 ? body[at - 1] : ' ';
    const char behind = at + 2 < body.size() ? body[at + 2] : ' ';
    return (behind == '[' || (behind >= '0' && behind <= '9')) && !is_word(before) && before != ')';
  }

  const AsmOperand& operand_named(const std::vector<AsmOperand>& operands, const std::string& name,
                                  const CToken& keyword) const {
    std::vector<std::string_view> known;
    for (const AsmOperand& operand : operands) {
      if (operand.is_named && operand.name == name) return operand;
      if (operand.is_named) known.push_back(operand.name);
    }
    fail(keyword, fmt::format("the asm uses %[{}] which is no operand{}", name, did_you_mean(name, known)));
  }

  Import m_import;
  std::vector<CToken> m_tokens;
  const std::string& m_file;
  std::size_t m_at = 0;
  CToken m_previous;  // the code token before the current one
  std::vector<Block> m_blocks;
  int m_parentheses = 0;
  std::string m_candidate;  // a function's name if a body follows
  std::string m_function;   // whose body we are in
  std::set<std::string> m_names;
};

}  // namespace

Import import_c(std::string_view text, const std::string& file) { return Importer(text, file).all(); }

}  // namespace mtsim::isa
