// SPDX-License-Identifier: Apache-2.0
// .linear regions in the text assembler: their directives and instructions, and the packets they become.
#include <fmt/format.h>

#include <algorithm>

#include "isa/linear_schedule.h"
#include "isa/printer.h"
#include "isa/text_assembler.h"

namespace mtsim::isa {
namespace {

std::string column_text(TokenSpan tokens) {
  return tokens.empty() ? "nothing" : "'" + std::string(tokens[0].text) + "'";
}

int column_of(TokenSpan tokens, int end_column) { return tokens.empty() ? end_column : tokens[0].column; }

}  // namespace

// False when `word` is no directive of .linear.
bool TextAssembler::linear_directive(std::string_view word, TokenSpan tokens, int end_column) {
  const TokenSpan rest = tokens.subspan(1);
  if (word == ".LINEAR") {
    open_linear(tokens);
    return true;
  }
  if (word != ".ENDLINEAR" && word != ".REG" && word != ".TRIP" && word != ".INDEPENDENT") return false;
  if (!m_linear) {
    throw SyntaxError(tokens[0].column, fmt::format("{} outside of .linear", tokens[0].text), "open it with .linear",
                      "linear");
  }
  if (word == ".REG") {
    declare_registers(rest, end_column);
  } else if (word == ".TRIP") {
    set_trip(rest, end_column);
  } else if (!rest.empty()) {
    throw SyntaxError(rest[0].column, fmt::format("{} takes no operand", tokens[0].text), "", "linear");
  } else if (word == ".ENDLINEAR") {
    close_linear(tokens);
  } else if (m_linear->has_instructions()) {
    throw SyntaxError(tokens[0].column, ".independent stands behind the first instruction",
                      "move it directly behind .linear", "linear");
  } else {
    m_linear->independent();
    m_linear->line(".independent");
  }
  return true;
}

void TextAssembler::open_linear(TokenSpan tokens) {
  if (tokens.size() > 1) throw SyntaxError(tokens[1].column, ".linear takes no operand", "", "linear");
  if (m_linear) {
    throw SyntaxError(tokens[0].column, fmt::format(".linear inside of the .linear of line {}", m_linear->place().line),
                      "close that one with .endlinear", "linear");
  }
  m_header_done = true;
  m_can_join = false;
  m_linear.emplace(place(tokens[0].column));
  m_linear->line(".linear");
  m_context.named = [this](std::string_view name) { return named_register(name); };
  m_context.virtual_pair = [this](Register high, Register low, int column) {
    return m_linear->pair(high, low, column);
  };
}

void TextAssembler::close_linear(TokenSpan tokens) {
  m_context.named = nullptr;
  m_context.virtual_pair = nullptr;
  LinearReader reader = std::move(*m_linear);
  m_linear.reset();
  if (!reader.has_instructions()) {
    throw SyntaxError(tokens[0].column, ".linear has no instructions", "", "linear");
  }
  reader.line(".endlinear");
  const std::set<std::string> labels = reader.labels();
  m_linear_regions.push_back(
      {static_cast<int>(m_program.packets.size()), {}, {0, 0, std::move(reader.lines()), labels}});
  m_linear_regions.back().code = reader.finish();
  open_packet();
  m_can_join = false;
}

void TextAssembler::declare_registers(TokenSpan tokens, int end_column) {
  const std::vector<TokenSpan> pieces = split_operands(tokens);
  const std::string usage = "write .reg VR, name, name";
  if (pieces.size() < 2 || pieces[0].size() != 1) {
    throw SyntaxError(column_of(tokens, end_column), ".reg takes a register file and names", usage, "reg");
  }
  const std::string wanted = to_upper(pieces[0][0].text);
  const auto file = std::find(k_register_file_names.begin(), k_register_file_names.end(), wanted);
  if (file == k_register_file_names.end()) {
    throw SyntaxError(pieces[0][0].column, fmt::format("'{}' is not a register file", pieces[0][0].text),
                      "the files are R, VR, AR, OR and SVR", "reg");
  }
  std::string line = ".reg " + wanted;
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    const int column = column_of(pieces[i], end_column);
    if (pieces[i].size() != 1 || pieces[i][0].kind != TokenKind::word) {
      throw SyntaxError(column, fmt::format("{} is not a name", column_text(pieces[i])), usage, "reg");
    }
    const std::string name(pieces[i][0].text);
    const bool parameter = std::any_of(m_program.parameters.begin(), m_program.parameters.end(),
                                       [&](const Parameter& other) { return other.name == name; });
    if (parse_register(name) || parameter || m_context.equates.count(name) > 0) {
      throw SyntaxError(column,
                        fmt::format(".reg '{}' has the name of a {}", name,
                                    parse_register(name) ? "register"
                                    : parameter          ? ".param"
                                                         : ".equ"),
                        "rename it", "reg");
    }
    m_linear->declare(static_cast<RegisterFile>(file - k_register_file_names.begin()), name, column);
    line += ", " + name;
  }
  m_linear->line(line);
}

void TextAssembler::set_trip(TokenSpan tokens, int end_column) {
  const std::vector<TokenSpan> pieces = split_operands(tokens);
  if (pieces.size() != 1) {
    throw SyntaxError(column_of(tokens, end_column), ".trip takes one number: how often the loop runs at least",
                      "write .trip MINIMUM", "trip");
  }
  const std::int64_t minimum = parse_expression(pieces[0], end_column, m_context.equates);
  m_linear->trip(minimum, place(column_of(tokens, end_column)));
  m_linear->line(fmt::format(".trip {}", minimum));
}

void TextAssembler::linear_instruction(TokenSpan tokens, int end_column) {
  for (const Token& token : tokens) {
    if (token.is("|")) {
      throw SyntaxError(token.column, "'|' in .linear: one instruction a line, the scheduler makes the packets",
                        "put each instruction on a line of its own", "linear");
    }
  }
  auto parsed = parse_instruction(tokens, end_column, nullptr);
  if (!parsed) return;
  if (parsed->row->id == Mnemonic::SNOP) {
    throw SyntaxError(parsed->place.column, "SNOP in .linear: the scheduler knows the latencies", "drop it", "linear");
  }
  const int column = parsed->place.column;
  std::string line = "  " + print_linear(*parsed, [this](Register reg) { return m_linear->spelled(reg); });
  m_linear->line(std::move(line));
  m_linear->add(std::move(*parsed), column);
}

// A virtual register or a .param.
std::optional<Register> TextAssembler::named_register(std::string_view name) const {
  if (const auto reg = m_linear->find(name)) return reg;
  for (const Parameter& parameter : m_program.parameters) {
    if (parameter.name == name) return parameter.reg;
  }
  return std::nullopt;
}

// Every physical register that the text names: the scheduler leaves them alone.
std::set<Register> TextAssembler::named_registers() const {
  std::set<Register> named{k_return_register};
  const auto add = [&](const Instruction& instruction) {
    for (const Register reg : reads(instruction)) named.insert(reg);
    for (const Write& write : writes(instruction, m_options.pipeline)) named.insert(write.reg);
  };
  for (const Parameter& parameter : m_program.parameters) named.insert(parameter.reg);
  for (const Packet& packet : m_program.packets) {
    for (const Instruction& instruction : packet.instructions) add(instruction);
  }
  for (const LinearRegion& region : m_linear_regions) {
    for (const LinearBlock& block : region.code.blocks) {
      for (const Instruction& instruction : block.body) add(instruction);
      if (block.branch) add(*block.branch);
    }
  }
  std::erase_if(named, [](Register reg) { return reg.is_virtual(); });
  return named;
}

// By .linear region the labels that packets and the other regions branch to.
std::vector<std::set<std::string>> TextAssembler::jumps_from_outside() const {
  std::map<std::string, std::set<int>> from;  // label -> regions, -1 for packets
  const auto add = [&](const Instruction* branch, int region) {
    const auto* target = branch == nullptr ? nullptr : std::get_if<Target>(&branch->operands[0]);
    if (target != nullptr) from[target->label].insert(region);
  };
  for (const Packet& packet : m_program.packets) add(packet.branch(), -1);
  for (std::size_t r = 0; r < m_linear_regions.size(); ++r) {
    for (const LinearBlock& block : m_linear_regions[r].code.blocks) {
      if (block.branch) add(&*block.branch, static_cast<int>(r));
    }
  }
  std::vector<std::set<std::string>> labels(m_linear_regions.size());
  for (std::size_t r = 0; r < labels.size(); ++r) {
    for (const LinearBlock& block : m_linear_regions[r].code.blocks) {
      for (const std::string& label : block.labels) {
        const auto it = from.find(label);
        if (it != from.end() && it->second != std::set<int>{static_cast<int>(r)}) labels[r].insert(label);
      }
    }
  }
  return labels;
}

// Replaces the packets that stand for .linear code, and moves labels and regions behind them.
void TextAssembler::schedule_linear_code() {
  if (m_linear_regions.empty() || !m_diagnostics.empty()) return;
  LinearOptions options{m_options.pipeline, m_options.allow_assumed, named_registers(), {}, m_options.prove_loops};
  bool by_hand = false;
  for (const Packet& packet : m_program.packets) by_hand = by_hand || !packet.instructions.empty();
  std::vector<Packet> packets;
  std::vector<int> moved_to;  // by packet before
  std::map<std::string, int> labels;
  std::map<std::size_t, int> firsts, lasts;
  const std::vector<std::set<std::string>> jumps = jumps_from_outside();
  std::size_t next = 0;
  for (std::size_t p = 0; p < m_program.packets.size(); ++p) {
    const int at = static_cast<int>(packets.size());
    moved_to.push_back(at);
    if (next == m_linear_regions.size() || m_linear_regions[next].packet != static_cast<int>(p)) {
      packets.push_back(std::move(m_program.packets[p]));
      continue;
    }
    options.jumps = jumps[next];
    LinearRegion& region = m_linear_regions[next++];
    ScheduledLinear scheduled = schedule_linear(region.code, options);
    for (Diagnostic& error : scheduled.errors) m_diagnostics.push_back(std::move(error));
    if (!scheduled.packets.empty()) scheduled.packets.front().above = std::move(m_program.packets[p].above);
    for (const auto& [label, packet] : scheduled.labels) {
      labels[label] = at + packet;
      region.source.labels.insert(label);
    }
    region.source.first = at;
    region.source.last = at + static_cast<int>(scheduled.packets.size());
    m_program.linear.push_back(std::move(region.source));
    for (LoopReport& report : scheduled.loops) m_program.linear_loops.push_back(std::move(report));
    for (const auto& [r, packet] : scheduled.regions_first) firsts[r] = at + packet;
    for (const auto& [r, packet] : scheduled.regions_last) lasts[r] = at + packet;
    packets.insert(packets.end(), std::make_move_iterator(scheduled.packets.begin()),
                   std::make_move_iterator(scheduled.packets.end()));
  }
  moved_to.push_back(static_cast<int>(packets.size()));
  for (auto& [unused_label, packet] : m_program.labels) packet = moved_to[static_cast<std::size_t>(packet)];
  for (std::size_t r = 0; r < m_program.regions.size(); ++r) {
    Region& region = m_program.regions[r];
    region.first = firsts.count(r) > 0 ? firsts[r] : moved_to[static_cast<std::size_t>(region.first)];
    region.last = lasts.count(r) > 0 ? lasts[r] : moved_to[static_cast<std::size_t>(region.last)];
  }
  for (const auto& [label, packet] : labels) {
    if (m_program.labels.try_emplace(label, packet).second) continue;
    m_line = m_label_places[label].line;
    report(SyntaxError(m_label_places[label].column,
                       fmt::format("label '{}' is also the scheduler's name for a part of a loop", label), "rename it",
                       "duplicate-label"));
  }
  m_program.packets = std::move(packets);
  // Packets written by hand keep what they were scheduled for: on another machine they are refused.
  if (!by_hand) m_program.scheduled_for = m_options.pipeline;
}

}  // namespace mtsim::isa
