// SPDX-License-Identifier: Apache-2.0
#include "isa/linear_rename.h"

#include <algorithm>

namespace mtsim::isa {
namespace {

bool is_half_of_pair(const Operand& operand) { return std::holds_alternative<RegisterPair>(operand); }

// The registers of one block that may be renamed, with the index of the instruction that writes them last.
class Renamer {
 public:
  Renamer(LinearCode& code, LinearBlock& block) : m_code(code), m_block(block) {}

  void run() {
    find_writes();
    for (std::size_t i = 0; i < m_block.body.size(); ++i) rename(i, m_block.body[i]);
  }

 private:
  struct Writes {
    std::vector<std::size_t> all;
    bool as_pair = false;
    bool alone = false;
    bool fixed = false;  // under a predicate, or post-modified
  };

  void find_writes() {
    for (std::size_t i = 0; i < m_block.body.size(); ++i) {
      const Instruction& instruction = m_block.body[i];
      for (const Write& write : writes(instruction, Pipeline{})) {
        Writes& known = m_writes[write.reg];
        known.all.push_back(i);
        known.fixed = known.fixed || write.post_modify || instruction.predicate.has_value();
        (is_half_of_pair(instruction.operands.back()) && !write.post_modify ? known.as_pair : known.alone) = true;
      }
      for (const Operand& operand : instruction.operands) {
        if (const auto* pair = std::get_if<RegisterPair>(&operand)) m_pairs.insert(pair->low);
      }
    }
  }

  bool renames(Register reg, bool as_pair) const {
    constexpr std::size_t k_most_names = 15'000;  // two numbers each: far from the end of Register::index
    if (!reg.is_virtual() || m_code.names.size() > k_most_names) return false;
    const Register even{reg.file, static_cast<std::uint16_t>(reg.index & ~1)};
    const bool half = m_pairs.count(even) > 0;
    if (half != as_pair) return false;
    const auto ok = [&](Register r) {
      const auto it = m_writes.find(r);
      return it != m_writes.end() && !it->second.fixed && (as_pair ? !it->second.alone : !it->second.as_pair);
    };
    return half ? ok(even) && ok(RegisterPair{even}.high()) : ok(reg);
  }

  void rename(std::size_t i, Instruction& instruction) {
    const bool pair = has_destination(instruction.row->format) && is_half_of_pair(instruction.operands.back());
    const auto current = [&](Register reg) {
      const auto it = m_current.find(reg);
      return it == m_current.end() ? reg : it->second;
    };
    const auto written = [&](Register reg) {
      if (!renames(reg, pair)) return current(reg);
      const bool last = m_writes[reg].all.back() == i;
      const Register name = last ? reg : fresh_register(m_code, reg.file, reg.scalar_side(), m_code.name(reg), pair);
      m_renamed.emplace_back(reg, name);
      if (pair) {
        const Register high = RegisterPair{reg}.high(), high_name = RegisterPair{name}.high();
        m_code.names[high_name] = m_code.name(high);
        m_renamed.emplace_back(high, high_name);
      }
      return name;
    };
    replace_registers(instruction, current, written);
    for (const auto& [reg, name] : m_renamed) m_current[reg] = name;  // its own reads still see the value before
    m_renamed.clear();
  }

  LinearCode& m_code;
  LinearBlock& m_block;
  std::map<Register, Writes> m_writes;
  std::set<Register> m_pairs;
  std::map<Register, Register> m_current;
  std::vector<std::pair<Register, Register>> m_renamed;
};

}  // namespace

BlockLiveness::BlockLiveness(const LinearCode& code)
    : m_successors(code.blocks.size()), m_target(code.blocks.size(), -1), m_live_in(code.blocks.size()) {
  std::map<std::string, int> block_of;
  std::set<Register> physical;
  struct Facts {
    std::set<Register> reads_first, kills;
  };
  std::vector<Facts> facts(code.blocks.size());
  for (std::size_t b = 0; b < code.blocks.size(); ++b) {
    const LinearBlock& block = code.blocks[b];
    for (const std::string& label : block.labels) block_of[label] = static_cast<int>(b);
    const auto look = [&](const Instruction& instruction) {
      for (const Register reg : reads(instruction)) {
        if (facts[b].kills.count(reg) == 0) facts[b].reads_first.insert(reg);
        if (!reg.is_virtual()) physical.insert(reg);
      }
      for (const Write& write : writes(instruction, Pipeline{})) {
        if (!instruction.predicate) facts[b].kills.insert(write.reg);
        if (!write.reg.is_virtual()) physical.insert(write.reg);
      }
    };
    for (const Instruction& instruction : block.body) look(instruction);
    if (block.branch) look(*block.branch);
  }
  const int count = static_cast<int>(code.blocks.size());
  for (std::size_t b = 0; b < code.blocks.size(); ++b) {
    const auto& branch = code.blocks[b].branch;
    if (branch) {
      const auto* target = std::get_if<Target>(&branch->operands[0]);
      const auto it = target == nullptr ? block_of.end() : block_of.find(target->label);
      if (target != nullptr) m_targets.insert(target->label);
      m_target[b] = it == block_of.end() ? -1 : it->second;
      m_successors[b].push_back(m_target[b]);
    }
    const int next = static_cast<int>(b) + 1;
    if (!branch || branch->predicate) m_successors[b].push_back(next < count ? next : -1);
  }
  bool changed = true;
  while (changed) {
    changed = false;
    for (std::size_t b = code.blocks.size(); b-- > 0;) {
      std::set<Register> live;
      for (const int next : m_successors[b]) {
        const std::set<Register>& more = next < 0 ? physical : m_live_in[static_cast<std::size_t>(next)];
        live.insert(more.begin(), more.end());
      }
      for (const Register reg : facts[b].kills) live.erase(reg);
      live.insert(facts[b].reads_first.begin(), facts[b].reads_first.end());
      if (live == m_live_in[b]) continue;
      m_live_in[b] = std::move(live);
      changed = true;
    }
  }
}

bool BlockLiveness::live_behind(std::size_t b, Register reg) const {
  return std::any_of(m_successors[b].begin(), m_successors[b].end(), [&](int next) {
    if (next == static_cast<int>(b)) return false;
    return next < 0 ? !reg.is_virtual() : m_live_in[static_cast<std::size_t>(next)].count(reg) > 0;
  });
}

Register fresh_register(LinearCode& code, RegisterFile file, bool scalar_side, const std::string& name, bool pair) {
  int next = scalar_side ? k_first_virtual_scalar_side : k_first_virtual;
  const Register last{file,
                      static_cast<std::uint16_t>(scalar_side || file == RegisterFile::R || file == RegisterFile::VR
                                                     ? 0xFFFF
                                                     : k_first_virtual_scalar_side - 1)};
  auto it = code.names.upper_bound(last);
  if (it != code.names.begin() && (--it)->first.file == file && it->first.index >= next) {
    next = (it->first.index | 1) + 1;
  }
  const Register reg{file, static_cast<std::uint16_t>(next)};
  code.names[reg] = name;
  if (pair) code.names[RegisterPair{reg}.high()] = name;
  return reg;
}

void rename_values(LinearCode& code) {
  for (LinearBlock& block : code.blocks) Renamer(code, block).run();
}

}  // namespace mtsim::isa
