// SPDX-License-Identifier: Apache-2.0
#include "isa/checked_program.h"

#include <algorithm>

#include "isa/analysis.h"

namespace mtsim::isa {

CheckedProgram::CheckedProgram(const Program& program, const Pipeline& machine, const std::vector<int>& entries)
    : m_program(program), m_machine(machine), m_flow(program, machine, entries) {
  for (const Packet& packet : program.packets) m_facts.push_back(facts_of(packet));
  collect_predicate_landings();
}

PacketFacts CheckedProgram::facts_of(const Packet& packet) const {
  PacketFacts facts;
  for (const Instruction& instruction : packet.instructions) {
    for (const Register reg : reads(instruction)) facts.reads.emplace_back(&instruction, reg);
    const std::vector<Write> now = writes(instruction, m_machine);
    const std::vector<Write> scheduled = writes(instruction, m_program.scheduled_for);
    for (std::size_t i = 0; i < now.size(); ++i) {
      facts.writes.push_back({&instruction, now[i].reg, now[i].cycles, scheduled[i].cycles, now[i].post_modify});
      facts.horizon = std::max({facts.horizon, now[i].cycles, scheduled[i].cycles});
    }
  }
  return facts;
}

// Cycles after packet p's issue at which a predicate register written before p still changes.
void CheckedProgram::collect_predicate_landings() {
  std::set<int> predicates;
  for (const Packet& packet : m_program.packets) {
    for (const Instruction& instruction : packet.instructions) {
      if (instruction.predicate) predicates.insert(instruction.predicate->reg.flat());
    }
  }
  m_pending_predicates.resize(m_facts.size());
  for (int p = 0; p < static_cast<int>(m_facts.size()); ++p) {
    for (const Landing& write : m_facts[index(p)].writes) {
      if (predicates.count(write.reg.flat()) == 0 || write.cycles < 2) continue;
      walk(p, write.cycles, [&](int q, int distance) {
        m_pending_predicates[index(q)].emplace(write.reg.flat(), write.cycles - distance);
        return true;
      });
    }
  }
}

bool CheckedProgram::stable(int p, int distance, Register reg) const {
  for (const auto& [other, cycles] : m_pending_predicates[index(p)]) {
    if (other == reg.flat() && cycles <= distance) return false;
  }
  bool changes = false;
  const auto look = [&](int q, int at) {
    for (const Landing& write : m_facts[index(q)].writes) {
      changes = changes || (write.reg == reg && at + write.cycles <= distance);
    }
    return !changes;
  };
  if (distance > 0 && look(p, 0)) walk(p, distance, look);
  return !changes;
}

bool CheckedProgram::exclusive(int p, const Instruction& a, const Instruction& b, int distance) const {
  return always_opposite(a, b) && stable(p, distance, a.predicate->reg);
}

bool CheckedProgram::settled(int packet, int flat) const {
  const auto& landings = m_pending_predicates[index(packet)];
  const auto first = landings.lower_bound({flat, 0});
  return first == landings.end() || first->first != flat;
}

bool CheckedProgram::writes_register(int packet, int flat) const {
  const auto& all = m_facts[index(packet)].writes;
  return std::any_of(all.begin(), all.end(), [&](const Landing& write) { return write.reg.flat() == flat; });
}

void Findings::add(Severity severity, const char* code, const Place& place, const std::string& message,
                   const std::string& fix) {
  if (m_seen.insert({code, place.line, place.column, message}).second) {
    m_diagnostics.push_back({severity, place, message, fix, code});
  }
}

std::vector<Diagnostic> Findings::take() {
  std::stable_sort(m_diagnostics.begin(), m_diagnostics.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return std::tie(a.place.line, a.place.column) < std::tie(b.place.line, b.place.column);
  });
  return std::move(m_diagnostics);
}

}  // namespace mtsim::isa
