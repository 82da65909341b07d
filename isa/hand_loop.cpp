// SPDX-License-Identifier: Apache-2.0
#include "isa/hand_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "isa/internal.h"
#include "isa/linear.h"
#include "isa/loop_code.h"
#include "isa/memory_dependence.h"

namespace mtsim::isa {
namespace {

int floor_div(int a, int b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

// The loop closed by the branch in `packet`, if it is one block.
std::optional<HandLoop> loop_of(const Program& program, int packet) {
  const Instruction* branch = program.packets[index(packet)].branch();
  const auto* target = branch == nullptr ? nullptr : std::get_if<Target>(&branch->operands[0]);
  if (target == nullptr || target->packet > packet) return std::nullopt;
  HandLoop loop{target->label, target->packet, packet, packet, 0};
  for (int p = loop.first; p < packet; ++p) loop.interval += program.packets[index(p)].cycles();
  int left = program.scheduled_for.branch_cycles();
  loop.interval += left;
  for (int p = packet; left > 0; ++p) {
    if (p == static_cast<int>(program.packets.size())) return std::nullopt;
    left -= program.packets[index(p)].cycles();
    loop.last = p;
  }
  if (left < 0) return std::nullopt;  // the branch cuts an SNOP: what follows the loop starts in it
  for (int p = loop.first; p <= loop.last; ++p) {
    if (p != packet && program.packets[index(p)].branch() != nullptr) return std::nullopt;
  }
  for (const auto& [unused_label, at] : program.labels) {
    if (at > loop.first && at <= loop.last) return std::nullopt;
  }
  for (const LinearSource& linear : program.linear) {
    if (linear.first <= loop.last && loop.first < linear.last) return std::nullopt;
  }
  return loop;
}

// An instruction of the loop and when it issues.
struct Issue {
  Instruction instruction;
  int cycle;
  int effect;  // orders addresses: twice the cycle at which a memory access, or a result for AR, counts
};

struct Landing {
  int instruction;
  int lands;  // cycle in its own iteration's time
  int cycles;
  bool kills;
  bool post_modify;
  int value = -1;  // class of values that share a virtual register
};

struct Read {
  int instruction;
  Register reg;
  bool post_modified = false;  // by the same instruction
};

class Recovery {
 public:
  Recovery(const Program& program, const HandLoop& loop, const Pipeline& machine, bool independent)
      : m_program(program),
        m_loop(loop),
        m_machine(machine),
        m_hand(program.scheduled_for),
        m_independent(independent) {}

  RecoveredLoop run() {
    collect();
    find_counter();
    for (auto& [reg, landings] : m_landings) classify(reg, landings);
    number_values();
    rename();
    m_out.graph = DependenceGraph(static_cast<int>(m_issues.size()) + 2);
    for (const auto& [reg, landings] : m_landings) connect(reg, landings);
    connect_memory();
    for (const Dependence& edge : m_out.graph.edges()) {
      if (edge.distance >= 0) continue;
      throw std::runtime_error(fmt::format(
          "{} reads what {} left in {} two iterations before: results in flight are used "
          "as storage",
          spelled(issue(edge.from).instruction), spelled(issue(edge.to).instruction), m_out.name(edge.reg)));
    }
    finish();
    return std::move(m_out);
  }

 private:
  // In the order of effects, so that addresses can be followed from one to the next.
  void collect() {
    int cycle = 0;
    for (int p = m_loop.first; p <= m_loop.last; ++p) {
      const Packet& packet = m_program.packets[index(p)];
      for (const Instruction& instruction : packet.instructions) {
        if (instruction.row->id == Mnemonic::SNOP || instruction.row->id == Mnemonic::SBR) continue;
        m_issues.push_back({instruction, cycle, effect_of(instruction, cycle)});
      }
      if (p == m_loop.branch) m_branch_cycle = cycle;
      cycle += packet.cycles();
    }
    if (m_issues.empty()) throw std::runtime_error("the loop has no instruction but its branch");
    std::stable_sort(m_issues.begin(), m_issues.end(),
                     [](const Issue& a, const Issue& b) { return a.effect < b.effect; });
    for (int i = 0; i < static_cast<int>(m_issues.size()); ++i) {
      const Instruction& instruction = m_issues[index(i)].instruction;
      const int at = m_issues[index(i)].cycle;
      std::set<Register> post_modified;
      for (const Write& write : writes(instruction, m_hand)) {
        m_landings[write.reg].push_back(
            {i, at + write.cycles, machine_cycles(instruction, write), !instruction.predicate, write.post_modify});
        if (write.post_modify) post_modified.insert(write.reg);
      }
      for (const Register reg : reads(instruction)) {
        m_reads[reg].push_back({i, reg, post_modified.count(reg) > 0});
      }
    }
    for (auto& [reg, landings] : m_landings) {
      std::stable_sort(landings.begin(), landings.end(),
                       [](const Landing& a, const Landing& b) { return a.lands < b.lands; });
    }
  }

  // Loads before stores in a packet; an address register changes when its result lands, a post-modified one behind the
  // accesses of its packet.
  int effect_of(const Instruction& instruction, int cycle) const {
    constexpr int k_steps = 4;
    if (memory_operand(instruction) != nullptr) return k_steps * cycle + (is_store(instruction.row->format) ? 2 : 1);
    for (const Write& write : writes(instruction, m_hand)) {
      if (write.reg.file == RegisterFile::AR) return k_steps * ((cycle + write.cycles) % m_loop.interval);
    }
    return k_steps * cycle;
  }

  int machine_cycles(const Instruction& instruction, const Write& write) const {
    return write.post_modify ? 1 : m_machine.of(*instruction.row, write.reg);
  }

  const Issue& issue(int i) const { return m_issues[index(i)]; }

  // Iterations between a landing and the last time it happens not after `cycle`: 0 or more.
  int distance(const Landing& landing, int cycle) const { return -floor_div(cycle - landing.lands, m_loop.interval); }

  // The landings a read may see: the last one that kills, and those behind it.
  std::vector<const Landing*> producers(const std::vector<Landing>& landings, int cycle) const {
    const auto time = [&](const Landing& landing) {
      return landing.lands - m_loop.interval * distance(landing, cycle);
    };
    std::vector<const Landing*> by_time;
    for (const Landing& landing : landings) by_time.push_back(&landing);
    std::stable_sort(by_time.begin(), by_time.end(),
                     [&](const Landing* a, const Landing* b) { return time(*a) > time(*b); });
    std::vector<const Landing*> found;
    for (std::size_t i = 0; i < by_time.size(); ++i) {
      if (i > 0 && time(*by_time[i]) == time(*by_time[i - 1])) {
        throw std::runtime_error(fmt::format("{} and {} land in one register in the same cycle",
                                             spelled(issue(by_time[i - 1]->instruction).instruction),
                                             spelled(issue(by_time[i]->instruction).instruction)));
      }
      found.push_back(by_time[i]);
      if (by_time[i]->kills) break;
    }
    return found;
  }

  void find_counter() {
    const Instruction& branch = *m_program.packets[index(m_loop.branch)].branch();
    if (!branch.predicate || branch.predicate->negated) throw std::runtime_error("its branch is not [n] SBR");
    const Register counter = branch.predicate->reg;
    const auto it = m_landings.find(counter);
    const bool one = it != m_landings.end() && it->second.size() == 1;
    if (!one || !counts_down(issue(it->second[0].instruction).instruction, counter)) {
      throw std::runtime_error(fmt::format(
          "{0} is not counted by one SSUB 1, {0}, {0} or SADD -1, {0}, {0}: how often the loop runs is not known",
          counter.str()));
    }
    m_out.counter = counter;
    m_out.counter_offset = distance(it->second[0], m_branch_cycle);
    if (m_out.counter_offset > 1) throw std::runtime_error("the branch sees the counter of two iterations before");
  }

  // Landings whose value one read may see, or that one instruction ties, share a virtual register.
  void classify(Register reg, std::vector<Landing>& landings) {
    std::vector<int> parent(landings.size());
    std::iota(parent.begin(), parent.end(), 0);
    const auto root = [&](int i) {
      while (parent[index(i)] != i) i = parent[index(i)];
      return i;
    };
    const auto number = [&](const Landing* landing) { return static_cast<int>(landing - landings.data()); };
    const auto unite = [&](int a, int b) { parent[index(root(a))] = root(b); };
    const bool together =
        in_pair(reg) || reg.file == RegisterFile::SVR ||
        std::any_of(landings.begin(), landings.end(), [](const Landing& landing) { return !landing.kills; });
    for (int i = 1; together && i < static_cast<int>(landings.size()); ++i) unite(0, i);
    for (const Read& read : m_reads[reg]) {
      const auto from = producers(landings, issue(read.instruction).cycle);
      for (const Landing* other : from) unite(number(from.front()), number(other));
      if (!read.post_modified) continue;
      for (int i = 0; i < static_cast<int>(landings.size()); ++i) {
        if (landings[index(i)].instruction == read.instruction) unite(number(from.front()), i);
      }
    }
    for (int i = 0; i < static_cast<int>(landings.size()); ++i) landings[index(i)].value = root(i);
  }

  bool in_pair(Register reg) const {
    for (const Issue& one : m_issues) {
      for (const Operand& operand : one.instruction.operands) {
        const auto* pair = std::get_if<RegisterPair>(&operand);
        if (pair != nullptr && (pair->low == reg || pair->high() == reg)) return true;
      }
    }
    return false;
  }

  // A register in a pair has one value, whose number keeps its parity.
  void number_values() {
    std::map<std::pair<RegisterFile, bool>, int> next;
    const auto fresh = [&](Register reg) {
      const bool address = reg.file == RegisterFile::AR || reg.file == RegisterFile::OR;
      const bool scalar = address && reg.scalar_side();
      int& used = next[{reg.file, scalar}];
      used += 2;
      return Register{reg.file,
                      static_cast<std::uint16_t>((scalar ? k_first_virtual_scalar_side : k_first_virtual) + used - 2)};
    };
    for (auto& [reg, landings] : m_landings) {
      for (const Landing& landing : landings) {
        const auto key = std::pair(reg, landing.value);
        if (m_virtual.count(key) > 0) continue;
        if (reg.file == RegisterFile::SVR) {  // VMVCGC writes all of them: they stay
          m_virtual[key] = reg;
          continue;
        }
        const Register even{reg.file, static_cast<std::uint16_t>(reg.index & ~1)};
        if (in_pair(reg)) {
          const auto it = m_pair.find(even);
          const Register base = it != m_pair.end() ? it->second : m_pair[even] = fresh(reg);
          m_virtual[key] = reg == even ? base : RegisterPair{base}.high();
        } else {
          m_virtual[key] = fresh(reg);
        }
        m_out.values[m_virtual[key]] = {reg, false, false};
      }
      if (reg.file == RegisterFile::SVR) continue;
      m_out.values[m_virtual[{reg, landings.back().value}]].final = true;  // the last to land
      for (const Read& read : m_reads[reg]) {
        for (const Landing* from : producers(landings, issue(read.instruction).cycle)) {
          const bool before = distance(*from, issue(read.instruction).cycle) > 0 || !from->kills;
          if (before) m_out.values[m_virtual[{reg, from->value}]].live_in = true;
        }
      }
      for (const Landing& landing : landings) {
        // What a predicate leaves alone is the value from before.
        if (!landing.kills) m_out.values[m_virtual[{reg, landing.value}]].live_in = true;
      }
    }
    m_out.next_virtual = k_first_virtual + std::max(next[{RegisterFile::R, false}], next[{RegisterFile::VR, false}]);
  }

  void rename() {
    for (int i = 0; i < static_cast<int>(m_issues.size()); ++i) {
      Instruction instruction = issue(i).instruction;
      const auto read = [&](Register reg) {
        const auto it = m_landings.find(reg);
        if (it == m_landings.end()) return reg;  // the loop does not change it
        return m_virtual[{reg, producers(it->second, issue(i).cycle).front()->value}];
      };
      const auto write = [&](Register reg) {
        for (const Landing& landing : m_landings[reg]) {
          if (landing.instruction == i && !landing.post_modify) return m_virtual[{reg, landing.value}];
        }
        throw std::runtime_error(fmt::format("{} writes {} in two ways", spelled(issue(i).instruction), reg.str()));
      };
      for (const Operand& operand : instruction.operands) {
        const auto* pair = std::get_if<RegisterPair>(&operand);
        if (pair != nullptr && m_landings.count(pair->low) != m_landings.count(pair->high())) {
          throw std::runtime_error(
              fmt::format("the loop writes one half of {}:{} only", pair->high().str(), pair->low.str()));
        }
      }
      replace_registers(instruction, read, write);
      m_out.body.push_back(std::move(instruction));
      m_out.cycles.push_back(issue(i).cycle);
    }
  }

  // Flow from each producer; a landing of the same virtual register stays behind the reads it stayed behind, and behind
  // the landings it stayed behind.
  void connect(Register reg, const std::vector<Landing>& landings) {
    for (const Read& read : m_reads[reg]) {
      const int cycle = issue(read.instruction).cycle;
      const auto from = producers(landings, cycle);
      for (const Landing* producer : from) {
        m_out.graph.add({producer->instruction, read.instruction, producer->cycles, distance(*producer, cycle),
                         DependenceKind::flow, m_virtual[{reg, producer->value}]});
      }
      for (const Landing& next : landings) {
        if (next.value != from.front()->value) continue;
        if (next.instruction == read.instruction && next.post_modify) continue;  // its own
        m_out.graph.add({read.instruction, next.instruction, 1 - next.cycles, 1 - distance(next, cycle),
                         DependenceKind::anti, m_virtual[{reg, next.value}]});
      }
    }
    for (const Landing& a : landings) {
      for (const Landing& b : landings) {
        if (&a == &b || a.value != b.value) continue;
        // The first time b lands behind a.
        const int later = floor_div(a.lands - b.lands, m_loop.interval) + 1;
        m_out.graph.add({a.instruction, b.instruction, a.cycles + 1 - b.cycles, later, DependenceKind::output,
                         m_virtual[{reg, a.value}]});
      }
    }
  }

  // The packets' own order of loads and stores, where nothing shows that two never meet.
  void connect_memory() {
    std::vector<Instruction> as_written;
    std::vector<int> packets;
    for (const Issue& one : m_issues) {
      as_written.push_back(one.instruction);
      const bool accesses = memory_operand(one.instruction) != nullptr;
      packets.push_back(accesses ? one.cycle : -static_cast<int>(packets.size()) - 1);  // an address lands by itself
    }
    add_memory_dependences(as_written, {true, m_independent, 0, packets}, m_out.graph);
  }

  void finish() {
    const Instruction& branch = *m_program.packets[index(m_loop.branch)].branch();
    const int decrement = m_landings[m_out.counter][0].instruction;
    m_out.control = {RegisterFile::R, static_cast<std::uint16_t>(m_out.next_virtual)};
    m_out.next_virtual += 2;
    m_out.body.push_back(make_instruction(Mnemonic::SSUB, {Immediate{1}, m_out.control, m_out.control},
                                          issue(decrement).instruction.place));
    Instruction back = make_instruction(Mnemonic::SBR, {Target{m_loop.label, -1}}, branch.place);
    back.predicate = Predicate{m_out.control, false};
    m_out.body.push_back(std::move(back));
  }

  const Program& m_program;
  const HandLoop& m_loop;
  const Pipeline& m_machine;
  const Pipeline& m_hand;
  bool m_independent;
  std::vector<Issue> m_issues;
  int m_branch_cycle = 0;
  std::map<Register, std::vector<Landing>> m_landings;  // by the time they land
  std::map<Register, std::vector<Read>> m_reads;
  std::map<std::pair<Register, int>, Register> m_virtual;  // register, class of values
  std::map<Register, Register> m_pair;                     // even physical -> even virtual
  RecoveredLoop m_out;
};

}  // namespace

std::vector<HandLoop> find_hand_loops(const Program& program) {
  std::vector<HandLoop> loops;
  for (int p = 0; p < static_cast<int>(program.packets.size()); ++p) {
    if (auto loop = loop_of(program, p)) loops.push_back(std::move(*loop));
  }
  return loops;
}

RecoveredLoop recover_loop(const Program& program, const HandLoop& loop, const Pipeline& machine, bool independent) {
  return Recovery(program, loop, machine, independent).run();
}

}  // namespace mtsim::isa
