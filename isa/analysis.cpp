// SPDX-License-Identifier: Apache-2.0
#include "isa/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "isa/checker.h"

namespace mtsim::isa {
namespace {

// Shapes that the packet and addressing rules allow and no kernel known to have run on the hardware shows.
class ShapeFinder {
 public:
  std::vector<AssumedShape> run(const Program& program) {
    for (const Packet& packet : program.packets) look_at(packet);
    std::vector<AssumedShape> found;
    for (AssumedShape& shape : m_shapes) {
      if (shape.packets > 0) found.push_back(std::move(shape));
    }
    return found;
  }

 private:
  enum Kind { load_store, two_bases, two_broadcasts, vector_predicate, scalar_post, negative_index, immediate_post };

  void look_at(const Packet& packet) {
    std::set<Kind> kinds;  // each counts once a packet
    const Instruction* first_vector = nullptr;
    const Instruction* first_broadcast = nullptr;
    const auto note = [&](Kind kind, const Instruction& instruction) {
      if (!kinds.insert(kind).second) return;
      AssumedShape& shape = m_shapes[kind];
      if (shape.packets++ == 0) shape.first = instruction.place;
    };
    for (const Instruction& instruction : packet.instructions) {
      const Row& row = *instruction.row;
      if (instruction.predicate && row.mnemonic[0] == 'V') note(vector_predicate, instruction);
      if (row.id == Mnemonic::SVBCAST) {
        if (first_broadcast != nullptr) note(two_broadcasts, instruction);
        first_broadcast = &instruction;
      }
      const MemoryOperand* memory = memory_operand(instruction);
      if (memory == nullptr) continue;
      if (row.units & units::VLDST) {
        if (first_vector != nullptr && memory_operand(*first_vector)->base != memory->base)
          note(two_bases, instruction);
        if (first_vector != nullptr && is_load(first_vector->row->format) != is_load(row.format)) {
          note(load_store, instruction);
        }
        first_vector = &instruction;
      }
      if (memory->mode == AddressMode::minus) note(negative_index, instruction);
      if (memory->post_modifies() && memory->base.index >= 8) note(scalar_post, instruction);
      if (memory->post_modifies() && !memory->offset) note(immediate_post, instruction);
    }
  }

  std::vector<AssumedShape> m_shapes = {
      {"load and store in one packet"},
      {"two VLDST with different address registers"},
      {"two SVBCAST in one packet"},
      {"predicate on a vector instruction"},
      {"post-modify of AR8-15"},
      {"negative index *-AR[..]"},
      {"post-modify by an immediate index"},
  };
};

}  // namespace

bool always_opposite(const Instruction& a, const Instruction& b) {
  return a.predicate && b.predicate && a.predicate->reg == b.predicate->reg &&
         a.predicate->negated != b.predicate->negated;
}

std::vector<int> default_entries(const Program& program) {
  std::set<int> targets;
  for (const Packet& packet : program.packets) {
    for (const Instruction& instruction : packet.instructions) {
      for (const Operand& operand : instruction.operands) {
        if (const auto* target = std::get_if<Target>(&operand)) targets.insert(target->packet);
      }
    }
  }
  std::set<int> entries;
  if (!program.packets.empty()) entries.insert(0);
  for (const auto& [label, packet] : program.labels) {
    const bool inside = packet < static_cast<int>(program.packets.size());
    if (inside && targets.count(packet) == 0) entries.insert(packet);
  }
  return {entries.begin(), entries.end()};
}

std::vector<AssumedShape> find_assumed_shapes(const Program& program) { return ShapeFinder().run(program); }

std::vector<NeverWritten> find_never_written(const Program& program, const std::function<bool(int)>& reachable) {
  std::array<bool, k_register_count> known{};
  const auto know = [&](Register reg) { known[static_cast<std::size_t>(reg.flat())] = true; };
  know(k_return_register);
  for (const Parameter& parameter : program.parameters) know(parameter.reg);
  for (const Register reg : program.numbered) know(reg);
  for (const Packet& packet : program.packets) {
    for (const Instruction& instruction : packet.instructions) {
      for (const Write& write : writes(instruction, program.scheduled_for)) know(write.reg);
    }
  }
  std::vector<NeverWritten> found;
  for (std::size_t p = 0; p < program.packets.size(); ++p) {
    if (!reachable(static_cast<int>(p))) continue;
    for (const Instruction& instruction : program.packets[p].instructions) {
      for (const Register reg : reads(instruction)) {
        if (known[static_cast<std::size_t>(reg.flat())]) continue;
        know(reg);  // once
        found.push_back({reg, &instruction});
      }
    }
  }
  return found;
}

std::vector<std::string> assumed_shapes(const Program& program) {
  std::vector<std::string> lines;
  for (const AssumedShape& shape : find_assumed_shapes(program)) {
    lines.push_back(fmt::format("{}: {} {}, first at {}", shape.name, shape.packets,
                                shape.packets == 1 ? "packet" : "packets", shape.first.str()));
  }
  return lines;
}

}  // namespace mtsim::isa
