// SPDX-License-Identifier: Apache-2.0
// The directives that leave something in the Program; .rept and .macro are in expander.cpp.
#include <fmt/format.h>

#include <array>

#include "isa/text_assembler.h"

namespace mtsim::isa {
namespace {

constexpr auto k_directives = std::to_array<std::string_view>(
    {".param", ".equ", ".rept", ".endr", ".macro", ".endm", ".if", ".else", ".endif", ".region", ".endregion",
     ".scheduled_for", ".linear", ".endlinear", ".reg", ".trip", ".independent"});

std::string text_of(TokenSpan tokens) {
  std::string text;
  for (const Token& token : tokens) text += (text.empty() ? "" : " ") + std::string(token.text);
  return text;
}

bool is_name(TokenSpan tokens) { return tokens.size() == 1 && tokens[0].kind == TokenKind::word; }

int column_of(TokenSpan tokens, int end_column) { return tokens.empty() ? end_column : tokens[0].column; }

std::optional<ParameterKind> parameter_kind(TokenSpan tokens) {
  const std::string text = to_upper(text_of(tokens));
  if (text == "VALUE") return ParameterKind::value;
  if (text == "COUNT") return ParameterKind::count;
  if (text == "POINTER SM") return ParameterKind::pointer_sm;
  if (text == "POINTER AM") return ParameterKind::pointer_am;
  return std::nullopt;
}

}  // namespace

void TextAssembler::directive(TokenSpan tokens, int end_column) {
  const std::string word = to_upper(tokens[0].text);
  const TokenSpan rest = tokens.subspan(1);
  if (word == ".PARAM") {
    require_before_packets(tokens[0]);
    define_parameter(rest, end_column);
  } else if (word == ".EQU") {
    define_equate(rest, end_column);
  } else if (word == ".REGION") {
    open_region(rest, end_column);
  } else if (word == ".ENDREGION") {
    close_region(tokens);
  } else if (word == ".SCHEDULED_FOR") {
    require_before_packets(tokens[0]);
    set_scheduled_for(rest, end_column);
  } else if (linear_directive(word, tokens, end_column)) {
    return;
  } else {
    throw SyntaxError(
        tokens[0].column,
        fmt::format("unknown directive '{}'{}", tokens[0].text, did_you_mean(tokens[0].text, k_directives)),
        "the directives are .param, .equ, .rept, .macro, .if, .region, .scheduled_for and .linear",
        "unknown-directive");
  }
}

void TextAssembler::require_before_packets(const Token& directive) const {
  if (m_program.packets.empty()) return;
  throw SyntaxError(directive.column, fmt::format("{} stands behind the first packet", directive.text),
                    "move it to the top of the file", "directive-order");
}

void TextAssembler::define_parameter(TokenSpan tokens, int end_column) {
  const std::vector<TokenSpan> pieces = split_operands(tokens);
  const std::string usage = "write .param NAME, REGISTER, pointer sm|pointer am|count|value";
  if (pieces.size() != 3) {
    throw SyntaxError(column_of(tokens, end_column), fmt::format(".param takes 3 operands, got {}", pieces.size()),
                      usage, "param");
  }
  if (!is_name(pieces[0])) {
    throw SyntaxError(column_of(pieces[0], end_column), fmt::format("'{}' is not a name", text_of(pieces[0])), usage,
                      "param");
  }
  const auto reg = is_name(pieces[1]) ? parse_register(pieces[1][0].text) : std::nullopt;
  if (!reg) {
    throw SyntaxError(column_of(pieces[1], end_column), fmt::format("'{}' is not a register", text_of(pieces[1])),
                      usage, "unknown-register");
  }
  if (reg->file == RegisterFile::VR || reg->file == RegisterFile::SVR) {
    throw SyntaxError(pieces[1][0].column, fmt::format("a parameter cannot live in {}", reg->str()),
                      "use an R, AR or OR register", "param");
  }
  const auto kind = parameter_kind(pieces[2]);
  if (!kind) {
    static constexpr std::array<std::string_view, 4> k_kinds = {"pointer sm", "pointer am", "count", "value"};
    throw SyntaxError(
        column_of(pieces[2], end_column),
        fmt::format("unknown parameter kind '{}'{}", text_of(pieces[2]), did_you_mean(text_of(pieces[2]), k_kinds)),
        usage, "param");
  }
  const std::string name(pieces[0][0].text);
  for (const Parameter& other : m_program.parameters) {
    if (other.name == name || other.reg == *reg) {
      throw SyntaxError(pieces[0][0].column,
                        other.name == name
                            ? fmt::format(".param {} is declared twice", name)
                            : fmt::format(".param {} and .param {} share {}", other.name, name, reg->str()),
                        other.name == name ? "drop one" : "give each its own register", "duplicate-param");
    }
  }
  m_program.parameters.push_back({name, *reg, *kind});
  if (in_header()) m_program.header.push_back(".param " + name);
}

void TextAssembler::define_equate(TokenSpan tokens, int end_column) {
  const std::vector<TokenSpan> pieces = split_operands(tokens);
  if (pieces.size() != 2 || !is_name(pieces[0])) {
    throw SyntaxError(column_of(tokens, end_column), ".equ takes a name and a value", "write .equ NAME, VALUE", "equ");
  }
  const std::string name(pieces[0][0].text);
  if (parse_register(name)) {
    throw SyntaxError(pieces[0][0].column, fmt::format(".equ '{}' has the name of a register", name), "rename it",
                      "equ");
  }
  const std::int64_t value = parse_expression(pieces[1], end_column, m_context.equates);
  m_equates.insert(name);
  if (m_options.defines.count(name) == 0) m_context.equates[name] = value;  // the text's value is the default
  if (in_header()) m_program.header.push_back(fmt::format(".equ {}, {}", name, text_of(pieces[1])));
}

void TextAssembler::open_region(TokenSpan tokens, int end_column) {
  if (!is_name(tokens)) {
    throw SyntaxError(column_of(tokens, end_column), ".region takes one name", "write .region NAME", "region");
  }
  m_header_done = true;
  m_can_join = false;
  const std::string name(tokens[0].text);
  const auto [it, is_new] = m_region_places.try_emplace(name, place(tokens[0].column));
  if (!is_new) {
    m_duplicate_regions.insert(name);
    report(SyntaxError(tokens[0].column,
                       fmt::format("region '{}' is defined twice, first at line {}", name, it->second.line),
                       "rename one; in a macro add \\@ to the name", "duplicate-region"));
  }
  const int first = static_cast<int>(m_program.packets.size());
  if (m_linear) {
    m_linear->open_region(m_program.regions.size());
    m_linear->line(".region " + name);
  }
  m_open_regions.emplace_back(m_program.regions.size(), place(tokens[0].column));
  m_program.regions.push_back({name, first, first, m_linear.has_value(), false});
}

void TextAssembler::close_region(TokenSpan tokens) {
  if (tokens.size() > 1) throw SyntaxError(tokens[1].column, ".endregion takes no operand", "", "region");
  if (m_open_regions.empty()) {
    throw SyntaxError(tokens[0].column, ".endregion without .region", "open it with .region NAME", "region");
  }
  m_can_join = false;
  Region& region = m_program.regions[m_open_regions.back().first];
  region.last = static_cast<int>(m_program.packets.size());
  region.closed_in_linear = m_linear.has_value();
  if (m_linear) {
    m_linear->close_region(m_open_regions.back().first);
    m_linear->line(".endregion");
  }
  m_open_regions.pop_back();
}

void TextAssembler::set_scheduled_for(TokenSpan tokens, int end_column) {
  const std::vector<TokenSpan> pieces = split_operands(tokens);
  if (pieces.empty()) {
    throw SyntaxError(end_column, ".scheduled_for takes latencies", "write .scheduled_for VFMULAS32=6, VLDW=9",
                      "scheduled-for");
  }
  std::string text;
  for (const TokenSpan piece : pieces) text += (text.empty() ? "" : ", ") + set_latency(piece, end_column);
  if (in_header()) m_program.header.push_back(".scheduled_for " + text);
}

// Returns it as fmt writes it: VLDW=9, or -VMAC3 for a slot that the schedule does without.
std::string TextAssembler::set_latency(TokenSpan piece, int end_column) {
  const int column = column_of(piece, end_column);
  if (piece.size() == 2 && piece[0].is("-") && piece[1].kind == TokenKind::word) return take_unit_away(piece[1]);
  if (piece.size() < 3 || piece[0].kind != TokenKind::word || !piece[1].is("=")) {
    throw SyntaxError(column, fmt::format("'{}' is neither MNEMONIC=CYCLES nor -UNIT", text_of(piece)),
                      "write .scheduled_for VFMULAS32=6, VLDW=9", "scheduled-for");
  }
  const std::int64_t cycles = parse_expression(piece.subspan(2), end_column, m_context.equates);
  const std::string name = to_upper(piece[0].text);
  if (cycles < 1 || cycles > k_max_latency) {
    throw SyntaxError(piece[2].column, fmt::format("latency {} of {} is outside 1..{}", cycles, name, k_max_latency),
                      "", "scheduled-for");
  }
  try {
    const Row* row = find_row(name);
    if (name == "SADDA_AR8_15") {  // as Pipeline::str() writes it
      m_program.scheduled_for.override_scalar_address(static_cast<int>(cycles));
    } else if (row != nullptr) {
      m_program.scheduled_for.override(row->id, static_cast<int>(cycles));
    } else {
      std::vector<std::string_view> known{"SADDA_AR8_15"};
      for (const Row& other : instruction_table()) known.push_back(other.mnemonic);
      throw SyntaxError(column, fmt::format("unknown mnemonic '{}'{}", piece[0].text, did_you_mean(name, known)), "",
                        "unknown-mnemonic");
    }
  } catch (const std::invalid_argument& error) {
    throw SyntaxError(column, error.what(), "", "scheduled-for");
  }
  return fmt::format("{}={}", name, cycles);
}

std::string TextAssembler::take_unit_away(const Token& word) {
  const std::string name = to_upper(word.text);
  const std::optional<Unit> unit = find_unit(name);
  if (!unit) {
    throw SyntaxError(word.column, fmt::format("unknown unit '{}'{}", word.text, did_you_mean(name, k_unit_names)), "",
                      "scheduled-for");
  }
  try {
    m_program.scheduled_for.remove(*unit);
  } catch (const std::invalid_argument& error) {
    throw SyntaxError(word.column, error.what(), "", "scheduled-for");
  }
  return "-" + name;
}

}  // namespace mtsim::isa
