// SPDX-License-Identifier: Apache-2.0
#include "scenarios/schedule_page/chains.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace mtsim::scenarios {

namespace {

using isa::Format;
using isa::InstructionAt;
using isa::ValueUse;

class Finder {
 public:
  Finder(const isa::Program& program, const isa::ValueFlow& flow) : m_program(program) {
    for (const ValueUse& use : flow.uses) m_operands[use.consumer].push_back(&use);
    m_out.chains.push_back({});
  }

  OperandChains run() {
    for (int p = 0; p < static_cast<int>(m_program.packets.size()); ++p) {
      auto& slots = m_out.by_packet.emplace_back();
      const int count = static_cast<int>(m_program.packets[static_cast<std::size_t>(p)].instructions.size());
      for (int slot = 0; slot < count; ++slot) {
        const Found& found = follow({p, slot});
        slots.push_back({found.chain, found.others});
      }
    }
    return std::move(m_out);
  }

 private:
  struct Found {
    int chain = 0;
    int cycles = 0;  // from the load's issue to this one's
    std::vector<int> others;
    bool open = true;  // being followed: a value that depends on itself adds nothing
  };

  const isa::Instruction& at(InstructionAt where) const {
    return m_program.packets[static_cast<std::size_t>(where.packet)].instructions[static_cast<std::size_t>(where.slot)];
  }

  // Registers that say where or whether, not what.
  static bool steers(const isa::Instruction& instruction, isa::Register reg) {
    if (instruction.predicate && instruction.predicate->reg == reg) return true;
    const isa::MemoryOperand* memory = isa::memory_operand(instruction);
    return memory != nullptr && (memory->base == reg || memory->offset == reg);
  }

  // A sum that is added to belongs to no chain of its own.
  static bool is_sum(const isa::Instruction& instruction, isa::Register reg) {
    const Format format = instruction.row->format;
    if (format != Format::VVVV && format != Format::SSSS) return false;
    return std::get<isa::Register>(instruction.operands[2]) == reg;
  }

  const Found& follow(InstructionAt where) {
    const auto [it, is_new] = m_found.try_emplace(where);
    Found& found = it->second;
    if (!is_new) return found;
    const isa::Instruction& instruction = at(where);
    if (isa::is_load(instruction.row->format)) {
      found.chain = chain_of_load(where);
    } else {
      take_operands(where, false, found);
      if (found.chain == 0) take_operands(where, true, found);
    }
    found.open = false;
    return found;
  }

  void take_operands(InstructionAt where, bool sums, Found& found) {
    const auto operands = m_operands.find(where);
    if (operands == m_operands.end()) return;
    const isa::Instruction& instruction = at(where);
    std::set<int> all;
    for (const ValueUse* use : operands->second) {
      if (steers(instruction, use->reg) || is_sum(instruction, use->reg) != sums) continue;
      int chain = 0, cycles = 0;
      if (use->producer.packet < 0) {
        chain = chain_of_parameter(use->reg);
      } else if (const Found& made = follow(use->producer); !made.open) {
        chain = made.chain;
        cycles = made.cycles + use->latency;
      }
      if (chain == 0) continue;
      all.insert(chain);
      if (found.chain == 0 || cycles > found.cycles) {
        found.chain = chain;
        found.cycles = cycles;
      }
    }
    all.erase(found.chain);
    found.others.assign(all.begin(), all.end());
  }

  int chain_of_load(InstructionAt where) {
    const isa::Register base = isa::memory_operand(at(where))->base;
    const std::string pointer = pointer_behind(where, base);
    return chain_named(pointer.empty() ? base.str() : pointer + " through " + base.str(), base);
  }

  // The pointer parameter an address was made of.
  std::string pointer_behind(InstructionAt load, isa::Register base) const {
    std::set<std::pair<InstructionAt, isa::Register>> seen;
    std::vector<std::pair<InstructionAt, isa::Register>> pending{{load, base}};
    while (!pending.empty()) {
      const auto [where, reg] = pending.back();
      pending.pop_back();
      const auto operands = m_operands.find(where);
      if (operands == m_operands.end() || !seen.insert({where, reg}).second) continue;
      for (const ValueUse* use : operands->second) {
        if (use->reg != reg) continue;
        if (use->producer.packet >= 0) {
          for (const isa::Register read : isa::reads(at(use->producer))) pending.emplace_back(use->producer, read);
          continue;
        }
        for (const isa::Parameter& parameter : m_program.parameters) {
          if (parameter.reg == reg && isa::is_pointer(parameter.kind)) return parameter.name;
        }
      }
    }
    return "";
  }

  int chain_of_parameter(isa::Register reg) {
    for (const isa::Parameter& parameter : m_program.parameters) {
      if (parameter.reg == reg && parameter.kind == isa::ParameterKind::value) {
        return chain_named(parameter.name + " in " + reg.str(), reg);
      }
    }
    return 0;
  }

  int chain_named(const std::string& name, isa::Register source) {
    const auto [it, is_new] = m_numbers.try_emplace(name, static_cast<int>(m_out.chains.size()));
    if (is_new) m_out.chains.push_back({name, source});
    return it->second;
  }

  const isa::Program& m_program;
  std::map<InstructionAt, std::vector<const ValueUse*>> m_operands;
  std::map<InstructionAt, Found> m_found;
  std::map<std::string, int> m_numbers;
  OperandChains m_out;
};

}  // namespace

OperandChains find_chains(const isa::Program& program, const isa::ValueFlow& flow) {
  return Finder(program, flow).run();
}

}  // namespace mtsim::scenarios
