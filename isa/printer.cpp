// SPDX-License-Identifier: Apache-2.0
#include "isa/printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace mtsim::isa {
namespace {

constexpr std::string_view k_between = " | ";
constexpr std::string_view k_indent = "  ";

// Wide bit patterns read better in hexadecimal; both forms assemble to the same 64 bits.
std::string immediate_text(std::int64_t value, const Row& row) {
  constexpr std::int64_t k_largest_decimal = 32768;
  const bool wide = row.id == Mnemonic::VMOVI || row.id == Mnemonic::SMOVI;
  if (wide && (value < -k_largest_decimal || value > k_largest_decimal)) {
    return fmt::format("0x{:X}", static_cast<std::uint64_t>(value));
  }
  return std::to_string(value);
}

using RegisterName = std::function<std::string(Register)>;

std::string memory_text(const MemoryOperand& memory, const RegisterName& name) {
  const std::string index = "[" + (memory.offset ? name(*memory.offset) : std::to_string(memory.index)) + "]";
  const std::string base = name(memory.base);
  switch (memory.mode) {
    case AddressMode::plain: return "*" + base;
    case AddressMode::plus: return "*+" + base + index;
    case AddressMode::minus: return "*-" + base + index;
    case AddressMode::post_increment: return "*" + base + "++" + index;
    case AddressMode::post_decrement: return "*" + base + "--" + index;
  }
  return "";
}

std::string operand_text(const Operand& operand, const Row& row, const RegisterName& name) {
  if (const auto* reg = std::get_if<Register>(&operand)) return name(*reg);
  if (const auto* pair = std::get_if<RegisterPair>(&operand)) return name(pair->high()) + ":" + name(pair->low);
  if (const auto* immediate = std::get_if<Immediate>(&operand)) return immediate_text(immediate->value, row);
  if (const auto* memory = std::get_if<MemoryOperand>(&operand)) return memory_text(*memory, name);
  return std::get<Target>(operand).label;
}

std::string suffix_text(const Instruction& instruction) {
  if (instruction.row->units == units::NONE) return "";
  const int unit = static_cast<int>(instruction.unit);
  if (mask(instruction.unit) & units::SMAC) return fmt::format(".M{}", unit - static_cast<int>(Unit::SMAC1) + 1);
  if (mask(instruction.unit) & units::VMAC) return fmt::format(".M{}", unit - static_cast<int>(Unit::VMAC1) + 1);
  return "";
}

std::string instruction_text(const Instruction& instruction, const std::string& suffix, const RegisterName& name) {
  std::string text;
  if (instruction.predicate) {
    text += fmt::format("[{}{}] ", instruction.predicate->negated ? "!" : "", name(instruction.predicate->reg));
  }
  text += std::string(instruction.row->mnemonic) + suffix;
  for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
    text += (i == 0 ? " " : ", ") + operand_text(instruction.operands[i], *instruction.row, name);
  }
  return text;
}

using Widths = std::array<std::size_t, k_units>;  // of the columns; 0 for a unit the program does not use

void widen(Widths& widths, const Packet& packet) {
  for (const Instruction& instruction : packet.instructions) {
    if (instruction.row->units == units::NONE) continue;
    const auto unit = static_cast<std::size_t>(instruction.unit);
    widths[unit] = std::max({widths[unit], print(instruction).size(), k_unit_names[unit].size()});
  }
}

// Cells in their columns, empty for a unit without an instruction. No bar stands in front of the first cell that is
// used: there it would join the line to the packet before.
std::string row_text(const std::array<std::string, k_units>& cells, const Widths& widths) {
  std::string text;
  bool started = false;
  bool first_column = true;
  for (std::size_t u = 0; u < k_units; ++u) {
    if (widths[u] == 0) continue;
    if (!first_column) text += started ? k_between : std::string_view("   ");
    text += fmt::format("{:<{}}", cells[u], widths[u]);
    started = started || !cells[u].empty();
    first_column = false;
  }
  // Drop the empty columns at the end, bars included.
  const std::size_t end = text.find_last_not_of(" |");
  return text.substr(0, end == std::string::npos ? 0 : end + 1);
}

std::string packet_text(const Packet& packet, const Widths& widths) {
  if (packet.is_idle()) return std::string(k_indent) + print(packet.instructions[0]);
  std::array<std::string, k_units> cells;
  for (const Instruction& instruction : packet.instructions) {
    cells[static_cast<std::size_t>(instruction.unit)] = print(instruction);
  }
  return std::string(k_indent) + row_text(cells, widths);
}

// Packets that share one layout: from a line of column names to the next.
struct Block {
  int first = 0;
  int last = 0;
  Widths widths{};
  std::size_t comment_column = 0;  // where the comments behind the packets start
};

// A layout of idle packets alone has no columns to name: such packets stay with those before them.
const LinearSource* linear_at(const Program& program, int packet) {
  for (const LinearSource& source : program.linear) {
    if (source.first == packet) return &source;
  }
  return nullptr;
}

bool starts_block(const Program& program, int packet) {
  const std::vector<Packet>& all = program.packets;
  auto at = static_cast<std::size_t>(packet);
  if (!all[at].starts_columns) return false;
  do {
    if (!all[at].is_idle()) return true;
  } while (++at < all.size() && !all[at].starts_columns);
  return false;
}

Block block_at(const Program& program, int first) {
  const int count = static_cast<int>(program.packets.size());
  Block block{first, first, {}, 0};
  do {
    widen(block.widths, program.packets[static_cast<std::size_t>(block.last++)]);
  } while (block.last < count && !starts_block(program, block.last) && linear_at(program, block.last) == nullptr);
  for (int i = first; i < block.last; ++i) {
    const Packet& packet = program.packets[static_cast<std::size_t>(i)];
    if (packet.comment.empty()) continue;
    block.comment_column = std::max(block.comment_column, packet_text(packet, block.widths).size() + 2);
  }
  return block;
}

std::string column_header(const Widths& widths) {
  std::array<std::string, k_units> cells;
  for (std::size_t u = 0; u < k_units; ++u) {
    if (widths[u] > 0) cells[u] = k_unit_names[u];
  }
  const std::string text = row_text(cells, widths);
  return text.empty() ? "" : "; " + text + "\n";
}

std::string parameter_text(const Parameter& parameter) {
  constexpr std::array<std::string_view, 4> k_kinds = {"value", "count", "pointer sm", "pointer am"};
  return fmt::format(".param {}, {}, {}", parameter.name, parameter.reg.str(),
                     k_kinds[static_cast<std::size_t>(parameter.kind)]);
}

std::string scheduled_for_text(const Pipeline& pipeline) {
  std::string text;
  for (const char c : pipeline.str()) text += c == ' ' ? std::string(", ") : std::string(1, c);
  return ".scheduled_for " + text;
}

bool starts_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

// The header as it stood in the source, with declarations from the program itself: parameters and latencies win over
// the text they were read from, and those that never had a text are added.
std::string header_text(const Program& program) {
  std::string text;
  std::vector<bool> printed(program.parameters.size(), false);
  bool latencies_printed = false;
  for (const std::string& line : program.header) {
    const std::string_view code = std::string_view(line).substr(0, line.find("  ;"));
    const std::string comment = line.substr(code.size());
    if (starts_with(code, ".param ")) {
      const std::string_view name = code.substr(7);
      for (std::size_t i = 0; i < program.parameters.size(); ++i) {
        if (program.parameters[i].name != name) continue;
        text += parameter_text(program.parameters[i]) + comment + "\n";
        printed[i] = true;
      }
    } else if (starts_with(code, ".scheduled_for ")) {
      latencies_printed = true;
      text += line + "\n";
    } else {
      text += line + "\n";
    }
  }
  for (std::size_t i = 0; i < program.parameters.size(); ++i) {
    if (!printed[i]) text += parameter_text(program.parameters[i]) + "\n";
  }
  if (!latencies_printed && program.linear.empty() && !program.scheduled_for.str().empty())
    text += scheduled_for_text(program.scheduled_for) + "\n";
  return text;
}

// The lines in front of each packet, by packet. Regions nest, and an empty one closes where it opens.
using LinesInFront = std::map<int, std::string>;

LinesInFront region_ends(const Program& program) {
  LinesInFront by_packet;
  for (const Region& region : program.regions) {
    if (region.last > region.first && !region.closed_in_linear) by_packet[region.last] += ".endregion\n";
  }
  return by_packet;
}

LinesInFront region_starts(const Program& program) {
  LinesInFront by_packet;
  for (const Region& region : program.regions) {
    if (region.opened_in_linear) continue;
    by_packet[region.first] += ".region " + region.name + "\n";
    if (region.last == region.first) by_packet[region.first] += ".endregion\n";
  }
  return by_packet;
}

LinesInFront label_lines(const Program& program) {
  LinesInFront by_packet;
  for (const auto& [label, packet] : program.labels) {
    const bool linear = std::any_of(program.linear.begin(), program.linear.end(),
                                    [&](const LinearSource& source) { return source.labels.count(label) > 0; });
    if (!linear) by_packet[packet] += label + ":\n";
  }
  return by_packet;
}

std::string lines(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& line : all) text += line + "\n";
  return text;
}

}  // namespace

bool is_column_header(std::string_view comment) {
  bool any = false;
  while (!comment.empty()) {
    const std::size_t start = comment.find_first_not_of(" |");
    if (start == std::string_view::npos) break;
    comment.remove_prefix(start);
    const std::string_view word = comment.substr(0, comment.find_first_of(" |"));
    if (std::find(k_unit_names.begin(), k_unit_names.end(), word) == k_unit_names.end()) return false;
    comment.remove_prefix(word.size());
    any = true;
  }
  return any;
}

std::string print(const Instruction& instruction) {
  return instruction_text(instruction, suffix_text(instruction), [](Register reg) { return reg.str(); });
}

std::string print_linear(const Instruction& instruction, const RegisterName& name) {
  return instruction_text(instruction, "", name);
}

std::string print(const Packet& packet) {
  std::string text;
  for (const Instruction& instruction : packet.instructions) {
    if (!text.empty()) text += k_between;
    text += print(instruction);
  }
  return text;
}

std::string print(const Program& program) {
  std::string text = header_text(program);
  const LinesInFront ends = region_ends(program), starts = region_starts(program), labels = label_lines(program);
  const auto add = [&](const LinesInFront& all, int packet) {
    if (const auto it = all.find(packet); it != all.end()) text += it->second;
  };
  const int count = static_cast<int>(program.packets.size());
  Block block;
  for (int i = 0; i <= count; ++i) {
    add(ends, i);
    if (i < count) text += lines(program.packets[static_cast<std::size_t>(i)].above);
    add(starts, i);
    add(labels, i);
    if (i == count) break;
    if (const LinearSource* source = linear_at(program, i)) {
      text += lines(source->lines);
      block.last = source->last;
      i = source->last - 1;
      continue;
    }
    if (i == block.last) {
      block = block_at(program, i);
      text += column_header(block.widths);
    }
    const Packet& packet = program.packets[static_cast<std::size_t>(i)];
    const std::string code = packet_text(packet, block.widths);
    text += packet.comment.empty() ? code : fmt::format("{:<{}};{}", code, block.comment_column, packet.comment);
    text += "\n";
  }
  return text + lines(program.footer);
}

std::string print_packets(const Program& program) {
  Program packets = program;
  packets.linear.clear();
  for (Region& region : packets.regions) region.opened_in_linear = region.closed_in_linear = false;
  return print(packets);
}

}  // namespace mtsim::isa
