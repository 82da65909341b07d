// SPDX-License-Identifier: Apache-2.0
// What all of the checker's rules ask: which results are in flight where, and what they have found. Internal to isa.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "isa/control_flow.h"
#include "isa/diagnostic.h"
#include "isa/internal.h"

namespace mtsim::isa {

// A write of one instruction, with the cycles until it lands on the machine and under .scheduled_for.
struct Landing {
  const Instruction* instruction;
  Register reg;
  int cycles;
  int scheduled;
  bool post_modify;
  bool dead = false;  // overwritten before anything can read it
};

struct PacketFacts {
  std::vector<std::pair<const Instruction*, Register>> reads;
  std::vector<Landing> writes;
  int horizon = 1;  // every landing is less than this many cycles away, on the machine and as scheduled
};

class CheckedProgram {
 public:
  CheckedProgram(const Program& program, const Pipeline& machine, const std::vector<int>& entries);

  const Program& program() const { return m_program; }
  const Pipeline& machine() const { return m_machine; }
  const ControlFlow& flow() const { return m_flow; }
  int packets() const { return static_cast<int>(m_facts.size()); }
  const Packet& packet(int p) const { return m_program.packets[index(p)]; }
  const PacketFacts& facts(int p) const { return m_facts[index(p)]; }
  PacketFacts& facts(int p) { return m_facts[index(p)]; }

  /// True when no write to `reg` can land in the `distance` cycles after packet p's issue.
  bool stable(int p, int distance, Register reg) const;
  /// True when a (in packet p) and b (`distance` cycles later) can never both execute.
  bool exclusive(int p, const Instruction& a, const Instruction& b, int distance) const;
  /// No write to the predicate register is in flight when the packet issues.
  bool settled(int p, int flat) const;
  bool writes_register(int p, int flat) const;

  // A kernel takes thousands of steps. A text made to have paths without number must not keep the host busy.
  static constexpr std::int64_t k_most_steps = 100'000'000;
  void spend(std::int64_t steps) const { m_steps += steps; }
  std::int64_t steps_left() const { return k_most_steps - m_steps; }
  bool stopped() const { return m_steps > k_most_steps; }

  /// ControlFlow::walk, until the steps are spent.
  template <typename F>
  void walk(int packet, int horizon, const F& visit) const {
    constexpr int k_steps_per_visit = 10;
    if (stopped()) return;
    m_flow.walk(packet, horizon, [&](int q, int distance) {
      m_steps += k_steps_per_visit;
      return visit(q, distance) && !stopped();
    });
  }

 private:
  PacketFacts facts_of(const Packet& packet) const;
  void collect_predicate_landings();

  const Program& m_program;
  const Pipeline& m_machine;
  ControlFlow m_flow;
  std::vector<PacketFacts> m_facts;
  std::vector<std::set<std::pair<int, int>>> m_pending_predicates;  // by packet: flat register, cycles until it lands
  mutable std::int64_t m_steps = 0;
};

/// Diagnostics, each once.
class Findings {
 public:
  void add(Severity severity, const char* code, const Place& place, const std::string& message, const std::string& fix);
  /// In the order of the text.
  std::vector<Diagnostic> take();

 private:
  std::set<std::tuple<std::string, int, int, std::string>> m_seen;
  std::vector<Diagnostic> m_diagnostics;
};

}  // namespace mtsim::isa
