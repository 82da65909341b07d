// SPDX-License-Identifier: Apache-2.0
#include "isa/packet_rules.h"

#include <fmt/format.h>

#include <bit>
#include <optional>

#include "isa/printer.h"

namespace mtsim::isa {
namespace {

struct MacGroup {
  UnitMask units;
  Unit first;
  int count;
};

// The units a row can be sent to with .M1, .M2, .M3; count 0 when there are none.
MacGroup mac_group(const Row& row) {
  if (row.units & units::VMAC) return {units::VMAC, Unit::VMAC1, 3};
  if (row.units & units::SMAC) return {units::SMAC, Unit::SMAC1, 2};
  return {0, Unit::SMAC1, 0};
}

std::string unit_list(UnitMask mask_of_units) {
  std::string text;
  for (int u = 0; u < k_units; ++u) {
    if (mask_of_units & (1u << u)) text += (text.empty() ? "" : ", ") + std::string(name(static_cast<Unit>(u)));
  }
  return text;
}

const Instruction* user_of(const Packet& packet, Unit unit) {
  for (const Instruction& other : packet.instructions) {
    if (other.row->units != units::NONE && other.unit == unit) return &other;
  }
  return nullptr;
}

std::string spelled(const Instruction& instruction, Unit unit) {
  std::string text(instruction.row->mnemonic);
  const MacGroup group = mac_group(*instruction.row);
  if (group.units & mask(unit)) text += fmt::format(".M{}", static_cast<int>(unit) - static_cast<int>(group.first) + 1);
  return text;
}

std::string suffix_choice(const Row& row) {
  const MacGroup group = mac_group(row);
  std::string text;
  for (int i = 1; i <= group.count; ++i) {
    text += fmt::format("{}.M{}", i == 1 ? "" : i == group.count ? " or " : ", ", i);
  }
  return text;
}

std::optional<Unit> free_unit(const Instruction& instruction, const Packet& packet) {
  for (int u = 0; u < k_units; ++u) {
    const auto unit = static_cast<Unit>(u);
    if ((instruction.row->units & mask(unit)) && user_of(packet, unit) == nullptr) return unit;
  }
  return std::nullopt;
}

bool is_load_store_unit(const Row& row) { return (row.units & (units::VLDST | units::SLDST)) != 0; }

Unit unit_without_suffix(const Instruction& instruction, int column, const Packet& packet) {
  const Row& row = *instruction.row;
  for (const Unit unit : {Unit::SIEU, Unit::VIEU, Unit::SLDST, Unit::SBR}) {
    if (row.units & mask(unit)) return unit;
  }
  if (row.units & units::VLDST) return user_of(packet, Unit::VLDST1) == nullptr ? Unit::VLDST1 : Unit::VLDST2;
  std::string fix = fmt::format("write {}{}", row.mnemonic, suffix_choice(row));
  if (const auto unit = free_unit(instruction, packet)) {
    fix = fmt::format("write {} ({} is free in this packet)", spelled(instruction, *unit), name(*unit));
  }
  throw SyntaxError(column, fmt::format("{} needs a unit suffix: it issues to {}", row.mnemonic, unit_list(row.units)),
                    fix, "missing-suffix");
}

Unit unit_with_suffix(const Row& row, std::string_view suffix, int column) {
  const MacGroup group = mac_group(row);
  const std::string upper = to_upper(suffix);
  if (upper.size() == 2 && upper[0] == 'M' && upper[1] >= '1' && upper[1] < '1' + group.count) {
    return static_cast<Unit>(static_cast<int>(group.first) + (upper[1] - '1'));
  }
  const bool also_without = (row.units & (units::SIEU | units::VIEU)) != 0;
  const std::string fix =
      group.count == 0
          ? fmt::format("write {} without a suffix: it issues to {}", row.mnemonic,
                        row.units == units::NONE ? "no unit" : unit_list(row.units))
          : fmt::format("write {}{}{}", row.mnemonic, suffix_choice(row),
                        also_without
                            ? fmt::format(", or no suffix for {}", unit_list(row.units & (units::SIEU | units::VIEU)))
                            : "");
  throw SyntaxError(column, fmt::format("unknown unit suffix '.{}' of {}", suffix, row.mnemonic), fix,
                    "unknown-suffix");
}

const MemoryOperand* post_modified(const Instruction& instruction) {
  for (const Operand& operand : instruction.operands) {
    const auto* memory = std::get_if<MemoryOperand>(&operand);
    if (memory && memory->post_modifies()) return memory;
  }
  return nullptr;
}

}  // namespace

void assign_unit(Instruction& instruction, std::string_view suffix, int suffix_column, const Packet& packet) {
  const Row& row = *instruction.row;
  if (row.units == units::NONE) {
    if (!suffix.empty()) unit_with_suffix(row, suffix, suffix_column);
    return;
  }
  const bool bare = suffix.empty() || (is_load_store_unit(row) && to_upper(suffix) == "LS");
  instruction.unit =
      bare ? unit_without_suffix(instruction, suffix_column, packet) : unit_with_suffix(row, suffix, suffix_column);
  instruction.has_suffix = !bare;
  const Instruction* other = user_of(packet, instruction.unit);
  if (other == nullptr) return;
  const std::string message = fmt::format(
      "{} (line {}) and {} (line {}) both need {} in one packet", spelled(*other, other->unit), other->place.line,
      spelled(instruction, instruction.unit), instruction.place.line, name(instruction.unit));
  const std::optional<Unit> free = free_unit(instruction, packet);
  if (!free) {
    const std::string taken = unit_list(row.units);
    throw UnitClash(instruction.place.column, message,
                    std::has_single_bit(row.units)
                        ? fmt::format("move one of them to another packet ({} issues to {})", row.mnemonic, taken)
                        : fmt::format("move one of them to another packet: all of {} are taken", taken),
                    false);
  }
  instruction.unit = *free;
  throw UnitClash(instruction.place.column, message,
                  fmt::format("{} is free: write {}", name(*free), spelled(instruction, *free)), true);
}

void check_company(const Instruction& instruction, const Packet& packet) {
  const bool is_idle = instruction.row->id == Mnemonic::SNOP;
  for (const Instruction& other : packet.instructions) {
    if (is_idle || other.row->id == Mnemonic::SNOP) {
      throw SyntaxError(instruction.place.column,
                        fmt::format("SNOP must be alone in its packet, which {} (line {}) shares",
                                    is_idle ? other.row->mnemonic : instruction.row->mnemonic,
                                    is_idle ? other.place.line : instruction.place.line),
                        "drop the '|' in front of it or the SNOP", "snop-not-alone");
    }
    const MemoryOperand* mine = post_modified(instruction);
    const MemoryOperand* theirs = post_modified(other);
    if (mine && theirs && mine->base == theirs->base) {
      throw SyntaxError(
          instruction.place.column,
          fmt::format("{} (line {}) and {} (line {}) both post-modify {} in one packet", other.row->mnemonic,
                      other.place.line, instruction.row->mnemonic, instruction.place.line, mine->base.str()),
          "let one of them use *+AR[index]", "double-post-modify");
    }
  }
}

}  // namespace mtsim::isa
