// SPDX-License-Identifier: Apache-2.0
#include "isa/assembler.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "isa/packet_rules.h"
#include "isa/printer.h"
#include "isa/text_assembler.h"
#include "isa/text_file.h"

namespace mtsim::isa {
namespace {

std::vector<std::string_view> mnemonics(const std::vector<std::string_view>& macros) {
  std::vector<std::string_view> names;
  for (const Row& row : instruction_table()) names.push_back(row.mnemonic);
  names.insert(names.end(), macros.begin(), macros.end());
  return names;
}

}  // namespace

TextAssembler::TextAssembler(std::string file, const AssembleOptions& options)
    : m_options(options),
      m_expander({[this](const SourceLine& source) { line(source); },
                  [this](std::string_view text, int column) {
                    Tokens tokens = tokenize(text);
                    for (Token& token : tokens) token.column += column - 1;
                    return parse_expression(tokens, column + static_cast<int>(text.size()), m_context.equates);
                  },
                  [this](const SourceLine& source, const SyntaxError& error) {
                    m_file = source.file;
                    m_line = source.number;
                    m_origin = source.origin;
                    report(error);
                  },
                  [this](const std::string& path) { return included(path); }}) {
  m_program.name = std::filesystem::path(file).stem().string();
  m_program.file = m_file = std::move(file);
  m_context.equates.insert(options.defines.begin(), options.defines.end());
  m_context.numbered = [this](std::uint64_t number, int column) { return numbered_operand(number, column); };
}

Program TextAssembler::run(std::string_view text) {
  check_given_operands();
  m_expander.run(text, m_program.file);
  finish();
  std::stable_sort(m_diagnostics.begin(), m_diagnostics.end(),
                   [](const Diagnostic& a, const Diagnostic& b) {  // what has no line comes last
                     return std::pair(a.place.file, static_cast<unsigned>(a.place.line) - 1) <
                            std::pair(b.place.file, static_cast<unsigned>(b.place.line) - 1);
                   });
  if (!m_diagnostics.empty()) throw IsaError(std::move(m_diagnostics));
  return std::move(m_program);
}

std::string TextAssembler::included(const std::string& path) const {
  if (!m_options.include) {
    throw SyntaxError(0, fmt::format("cannot include '{}': this text is not a file", path), "put the lines here",
                      "include");
  }
  try {
    return m_options.include(path);
  } catch (const IsaError& error) {
    const Diagnostic& why = error.diagnostics().front();
    throw SyntaxError(0, why.message, why.suggestion, "include");
  }
}

void TextAssembler::check_given_operands() {
  const std::vector<Register>& given = m_options.operands;
  for (std::size_t i = 0; i < given.size(); ++i) {
    for (std::size_t j = i + 1; j < given.size(); ++j) {
      if (given[i] != given[j]) continue;
      report(SyntaxError(0, fmt::format("operands %{} and %{} share {}", i, j, given[i].str()),
                         "give each its own register", "duplicate-operand"));
    }
  }
}

void TextAssembler::report(const SyntaxError& error) {
  if (m_diagnostics.size() > k_max_diagnostics) return;
  if (m_diagnostics.size() == k_max_diagnostics) {
    m_diagnostics.push_back({Severity::fatal, {m_program.file}, "too many errors; the rest is not shown", "", ""});
    return;
  }
  Diagnostic found{Severity::fatal, place(error.column), error.what() + m_origin, error.suggestion, error.code};
  for (const Diagnostic& other : m_diagnostics) {  // a line of .rept fails once, not once a repetition
    if (other.place == found.place && other.message == found.message) return;
  }
  m_diagnostics.push_back(std::move(found));
}

void TextAssembler::line(const SourceLine& source) {
  if (m_diagnostics.size() > k_max_diagnostics) return;
  m_file = source.file;
  m_line = source.number;
  m_origin = source.origin;
  const SplitLine split = split_comment(source.text);
  if (trim(split.code).empty()) {
    comment_line(split);
    return;
  }
  const std::size_t packets_before = m_program.packets.size();
  const bool header_before = in_header();
  const std::size_t header_size = m_program.header.size();
  try {
    statement(split.code);
  } catch (const SyntaxError& error) {
    report(error);
  }
  if (!split.comment || split.comment->empty()) return;
  if (m_linear) {
    m_linear->comment(*split.comment);
    return;
  }
  const bool on_packet = m_can_join && !m_program.packets.empty();
  if (on_packet) {
    std::string& comment = m_program.packets.back().comment;
    comment += (comment.empty() ? "" : ";") + *split.comment;
  } else if (header_before && m_program.header.size() > header_size && m_program.packets.size() == packets_before) {
    m_program.header.back() += "  ;" + *split.comment;
  } else {
    comment_line({"", split.comment});
  }
}

// A line without code is kept for fmt: in front of the first packet as header, else above the packet that follows.
void TextAssembler::comment_line(const SplitLine& split) {
  std::vector<std::string>& lines = m_linear ? m_linear->lines() : in_header() ? m_program.header : m_comments;
  if (!split.comment) {
    const bool wanted = lines.empty() ? !m_program.packets.empty() : !lines.back().empty();
    if (wanted) lines.emplace_back();
  } else if (is_column_header(*split.comment)) {
    m_starts_columns = true;
  } else {
    lines.push_back(";" + *split.comment);
  }
}

void TextAssembler::statement(std::string_view code) {
  const Tokens all = tokenize(code);
  const int end_column = static_cast<int>(code.size()) + 1;
  TokenSpan tokens = all;
  while (tokens.size() >= 2 && tokens[0].kind == TokenKind::word && tokens[1].is(":")) {
    define_label(tokens[0]);
    tokens = tokens.subspan(2);
  }
  if (tokens.empty()) return;
  if (tokens[0].kind == TokenKind::word && tokens[0].text[0] == '.') {
    directive(tokens, end_column);
  } else if (m_linear) {
    linear_instruction(tokens, end_column);
  } else {
    packets_of(tokens, end_column);
  }
}

void TextAssembler::define_label(const Token& name) {
  const std::string text(name.text);
  m_header_done = true;
  m_can_join = false;
  if (parse_register(text)) {
    report(SyntaxError(name.column, fmt::format("label '{}' has the name of a register", text), "rename it", "label"));
    return;
  }
  const auto [it, is_new] = m_label_places.try_emplace(text, place(name.column));
  if (!is_new) {
    report(SyntaxError(name.column, fmt::format("label '{}' is defined twice, first at line {}", text, it->second.line),
                       "rename one; in a macro add \\@ to the name", "duplicate-label"));
    return;
  }
  if (m_linear) {
    m_linear->label(text);
    m_linear->line(text + ":");
  } else {
    m_program.labels[text] = static_cast<int>(m_program.packets.size());
  }
}

// A line's instructions: "A", "| A" (joins the packet of the line before), "[R0] | A", or a whole packet "A | B | C".
void TextAssembler::packets_of(TokenSpan tokens, int end_column) {
  std::size_t predicate_end = 0;
  while (tokens[0].is("[") && predicate_end < tokens.size() && !tokens[predicate_end].is("]")) ++predicate_end;
  const std::size_t bar = tokens[0].is("[") ? predicate_end + 1 : 0;
  const bool joins = bar < tokens.size() && tokens[bar].is("|");
  Tokens reordered;
  if (joins) {
    if (!m_can_join) {
      throw SyntaxError(tokens[bar].column, "'|' joins the packet of the line before, and there is none",
                        "start the packet without '|'; labels and regions stand in front of a whole packet", "join");
    }
    std::vector<std::string>& above = m_program.packets.back().above;
    m_starts_columns = false;
    std::copy_if(m_comments.begin(), m_comments.end(), std::back_inserter(above),
                 [](const std::string& line) { return !line.empty(); });
    m_comments.clear();
    // The predicate may stand in front of the bar: put it behind.
    reordered.assign(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(bar));
    reordered.insert(reordered.end(), tokens.begin() + static_cast<std::ptrdiff_t>(bar) + 1, tokens.end());
    tokens = reordered;
  } else {
    open_packet();
  }
  if (tokens.empty() || tokens.back().is("|")) throw SyntaxError(end_column, "an instruction is missing behind '|'");
  std::size_t start = 0;
  for (std::size_t i = 0; i <= tokens.size(); ++i) {
    if (i < tokens.size() && !tokens[i].is("|")) continue;
    const TokenSpan cell = tokens.subspan(start, i - start);
    const int cell_end = i < tokens.size() ? tokens[i].column : end_column;
    start = i + 1;
    if (cell.empty()) continue;  // an empty column of a printed packet
    try {
      instruction(cell, cell_end);
    } catch (const SyntaxError& error) {
      report(error);
    }
  }
}

void TextAssembler::open_packet() {
  m_header_done = true;
  m_can_join = true;
  m_program.packets.emplace_back();
  m_program.packets.back().above = std::move(m_comments);
  m_program.packets.back().starts_columns = std::exchange(m_starts_columns, false);
  m_comments.clear();
}

void TextAssembler::instruction(TokenSpan tokens, int end_column) {
  Packet& packet = m_program.packets.back();
  auto parsed = parse_instruction(tokens, end_column, &packet);
  if (!parsed) return;
  check_company(*parsed, packet);
  packet.instructions.push_back(std::move(*parsed));
}

// Without a packet the instruction gets no unit: the scheduler chooses it. nullopt when what is wrong has been
// reported.
std::optional<Instruction> TextAssembler::parse_instruction(TokenSpan tokens, int end_column, const Packet* packet) {
  Instruction instruction;
  std::size_t at = 0;
  if (tokens[0].is("[")) instruction.predicate = parse_predicate(tokens, at, end_column, m_context);
  if (at >= tokens.size() || tokens[at].kind != TokenKind::word) {
    throw SyntaxError(at < tokens.size() ? tokens[at].column : end_column,
                      at < tokens.size() ? fmt::format("expected an instruction, got '{}'", tokens[at].text)
                                         : "an instruction is missing");
  }
  const Token& word = tokens[at];
  const std::size_t dot = std::min(word.text.find('.'), word.text.size());
  const std::string_view mnemonic = word.text.substr(0, dot);
  const std::string_view suffix = dot < word.text.size() ? word.text.substr(dot + 1) : "";
  const int suffix_column = word.column + static_cast<int>(dot);
  instruction.row = find_row(mnemonic);
  if (instruction.row == nullptr) {
    const bool is_macro = m_expander.is_macro(word.text);
    throw SyntaxError(word.column,
                      is_macro ? fmt::format("macro '{}' must stand alone on its line", word.text)
                               : fmt::format("unknown mnemonic '{}'{}", mnemonic,
                                             did_you_mean(mnemonic, mnemonics(m_expander.macro_names()))),
                      "", "unknown-mnemonic");
  }
  const Row& row = *instruction.row;
  instruction.place = place(word.column);
  if (dot + 1 == word.text.size()) {
    throw SyntaxError(suffix_column, fmt::format("{} ends in '.' without a unit", word.text), "", "unknown-suffix");
  }
  if (row.id == Mnemonic::SNOP && instruction.predicate) {
    throw SyntaxError(tokens[0].column, "SNOP cannot be predicated", "drop the predicate", "predicate");
  }
  const std::vector<TokenSpan> pieces = split_operands(tokens.subspan(at + 1));
  bool good = true;
  const auto attempt = [&](const auto& action) {
    try {
      action();
    } catch (const SyntaxError& error) {
      report(error);
      good = false;
    }
  };
  bool has_unit = true;
  try {
    if (packet != nullptr) {
      assign_unit(instruction, suffix, suffix_column, *packet);
    } else if (!suffix.empty()) {
      throw SyntaxError(suffix_column,
                        fmt::format("unit suffix '.{}' in .linear: the scheduler chooses the unit", suffix), "drop it",
                        "linear-suffix");
    }
  } catch (const UnitClash& clash) {
    report(clash);
    has_unit = clash.moved;
  } catch (const SyntaxError& error) {
    report(error);
    has_unit = false;
  }
  if (pieces.size() != operand_count(row.format)) {
    throw SyntaxError(pieces.empty() ? end_column : tokens[at + 1].column,
                      fmt::format("{} takes {} operands ({}), got {}", row.mnemonic, operand_count(row.format),
                                  operands_text(row.format), pieces.size()),
                      "", "operand-count");
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    // The comma or the end behind the piece.
    const int piece_end = i + 1 < pieces.size() ? (pieces[i].data() + pieces[i].size())->column : end_column;
    attempt([&] { instruction.operands.push_back(parse_operand(row, i, pieces[i], piece_end, m_context)); });
  }
  if (!good || !has_unit) return std::nullopt;
  return instruction;
}

Register TextAssembler::numbered_operand(std::uint64_t number, int column) {
  const std::vector<Parameter>& parameters = m_program.parameters;
  constexpr int k_first = 10;  // R10, R12, R14, ...: where the ABI passes arguments
  constexpr std::uint64_t k_defaults = 26;
  Register reg;
  if (number < m_options.operands.size()) {
    reg = m_options.operands[number];
  } else if (number < parameters.size()) {
    reg = parameters[number].reg;
  } else if (parameters.empty() && number < k_defaults) {
    reg = {RegisterFile::R, static_cast<std::uint8_t>(k_first + 2 * number)};
  } else {
    throw SyntaxError(column,
                      parameters.empty() ? fmt::format("operand %{} has no register", number)
                                         : fmt::format("operand %{} is not declared: there are {} .param lines", number,
                                                       parameters.size()),
                      "declare it with .param NAME, REGISTER, KIND", "unknown-operand");
  }
  m_numbered_used.emplace(number, reg);
  return reg;
}

void TextAssembler::resolve_targets() {
  std::vector<std::string_view> known;
  for (const auto& [label, unused_packet] : m_program.labels) known.push_back(label);
  for (Packet& packet : m_program.packets) {
    for (Instruction& instruction : packet.instructions) {
      for (Operand& operand : instruction.operands) {
        auto* target = std::get_if<Target>(&operand);
        if (target == nullptr) continue;
        const auto it = m_program.labels.find(target->label);
        if (it != m_program.labels.end()) {
          target->packet = it->second;
          continue;
        }
        m_file = instruction.place.file;
        m_line = instruction.place.line;
        m_origin.clear();
        report(SyntaxError(instruction.place.column,
                           fmt::format("unknown label '{}'{}", target->label, did_you_mean(target->label, known)), "",
                           "unknown-label"));
      }
    }
  }
}

void TextAssembler::finish() {
  m_origin.clear();
  for (const auto& [region, where] : m_open_regions) {
    if (m_duplicate_regions.count(m_program.regions[region].name) > 0) continue;  // a second .region for .endregion
    m_file = where.file;
    m_line = where.line;
    report(SyntaxError(where.column, fmt::format(".region {} is not closed", m_program.regions[region].name),
                       "add .endregion", "region"));
  }
  if (m_linear) {
    m_file = m_linear->place().file;
    m_line = m_linear->place().line;
    report(SyntaxError(m_linear->place().column, ".linear is not closed", "add .endlinear", "linear"));
  }
  schedule_linear_code();
  resolve_targets();
  m_file = m_program.file;
  m_program.footer = std::move(m_comments);
  while (!m_program.footer.empty() && m_program.footer.back().empty()) m_program.footer.pop_back();
  for (Packet& packet : m_program.packets) {
    std::sort(packet.instructions.begin(), packet.instructions.end(),
              [](const Instruction& a, const Instruction& b) { return a.unit < b.unit; });
  }
  // --operands re-declare what %n is: the parameter of that number lives there too.
  for (const auto& [number, reg] : m_numbered_used) {
    if (number < m_program.parameters.size()) m_program.parameters[number].reg = reg;
    m_program.numbered.push_back(reg);
  }
  check_operand_count();
  check_moved_parameters();
  check_defines();
  if (m_program.packets.empty() && m_diagnostics.empty()) {
    m_line = 0;
    report(SyntaxError(0, "the program has no instructions", "", "empty"));
  }
}

// Operands given from outside name a register for every %n that no .param declares, and no more than there are.
void TextAssembler::check_operand_count() {
  const std::size_t given = m_options.operands.size();
  if (given == 0 || !m_diagnostics.empty()) return;
  const std::size_t used = m_numbered_used.empty() ? 0 : m_numbered_used.rbegin()->first + 1;
  const std::string names = fmt::format("operands names {} register{}", given, given == 1 ? "" : "s");
  m_line = 0;
  if (given < used && m_program.parameters.empty()) {
    report(SyntaxError(0, fmt::format("uses %{} but {}", used - 1, names), "name one for each %n", "operand-count"));
  } else if (used == 0) {
    report(SyntaxError(0, fmt::format("uses no %n but {}", names), "leave operands out", "operand-count"));
  } else if (given > std::max(used, m_program.parameters.size())) {
    report(SyntaxError(0, fmt::format("uses no %n above %{} but {}", used - 1, names), "name one for each %n",
                       "operand-count"));
  }
}

// A parameter that --operands moved may meet another one that they did not.
void TextAssembler::check_moved_parameters() {
  const std::vector<Parameter>& all = m_program.parameters;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i + 1; j < all.size(); ++j) {
      if (all[i].reg != all[j].reg || !m_diagnostics.empty()) continue;
      m_line = 0;
      report(SyntaxError(0,
                         fmt::format("with these operands .param {} and .param {} share {}", all[i].name, all[j].name,
                                     all[i].reg.str()),
                         "give each its own register", "duplicate-operand"));
    }
  }
}

// A parameter that the text does not have would change nothing.
void TextAssembler::check_defines() {
  if (!m_diagnostics.empty()) return;  // the .equ may stand behind what could not be read
  const std::vector<std::string_view> names(m_equates.begin(), m_equates.end());
  m_line = 0;
  for (const auto& [name, unused_value] : m_options.defines) {
    if (m_equates.count(name) > 0) continue;
    report(SyntaxError(0, fmt::format("no .equ '{}'", name),
                       names.empty() ? "it has none; leave the define out"
                                     : fmt::format("it has {}{}", fmt::join(names, ", "), did_you_mean(name, names)),
                       "define"));
  }
}

std::optional<Register> parse_register(std::string_view text) {
  for (std::size_t f = 0; f < k_register_files; ++f) {
    const std::string_view file = k_register_file_names[f];
    if (text.size() <= file.size() || text.size() > file.size() + 2) continue;
    if (to_upper(text.substr(0, file.size())) != file) continue;
    const std::string_view digits = text.substr(file.size());
    if (digits.find_first_not_of("0123456789") != std::string_view::npos) continue;
    if (digits.size() == 2 && digits[0] == '0') continue;
    int index = 0;
    for (const char c : digits) index = 10 * index + (c - '0');
    if (index >= k_registers_in_file[f]) continue;
    return Register{static_cast<RegisterFile>(f), static_cast<std::uint8_t>(index)};
  }
  return std::nullopt;
}

Program assemble(std::string_view text, const std::string& file, const AssembleOptions& options) {
  return TextAssembler(file, options).run(text);
}

Program assemble_file(const std::string& path, const AssembleOptions& options) {
  AssembleOptions with_files = options;
  if (!with_files.include) with_files.include = read_text_file;
  return assemble(read_text_file(path), path, with_files);
}

}  // namespace mtsim::isa
