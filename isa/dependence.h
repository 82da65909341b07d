// SPDX-License-Identifier: Apache-2.0
// Which instructions of a basic block must stay how far apart in an exposed pipeline. Internal to isa.
//
// A register is occupied from the cycle a result lands in it, not from issue: a read may issue up to latency - 1 cycles
// behind the next write of the register.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "isa/program.h"

namespace mtsim::isa {

enum class DependenceKind : std::uint8_t { flow, anti, output, memory };
const char* to_string(DependenceKind kind);

/// cycle(to) + II * distance >= cycle(from) + delay. A write under a predicate that keeps the value from before depends
/// on it as a read does: flow.
struct Dependence {
  int from = 0;
  int to = 0;
  int delay = 0;     // cycles; negative where a write lands late
  int distance = 0;  // iterations
  DependenceKind kind = DependenceKind::flow;
  Register reg;  // of a memory dependence: the base of `to`
};

class DependenceGraph {
 public:
  explicit DependenceGraph(int instructions)
      : m_in(static_cast<std::size_t>(instructions)), m_out(static_cast<std::size_t>(instructions)) {}

  void add(const Dependence& edge);
  int size() const { return static_cast<int>(m_in.size()); }
  const std::vector<Dependence>& edges() const { return m_edges; }
  /// Indices into edges().
  const std::vector<int>& in(int instruction) const { return m_in[static_cast<std::size_t>(instruction)]; }
  const std::vector<int>& out(int instruction) const { return m_out[static_cast<std::size_t>(instruction)]; }

  /// Longest path from each instruction to any end; nullopt when a cycle of dependences needs more than `interval`.
  std::optional<std::vector<int>> heights(int interval) const;
  /// The least interval every cycle of dependences allows: max of delay / distance, at least 1.
  int recurrence_bound() const;
  /// Indices of the edges of a cycle that needs `bound` = recurrence_bound(); empty for a bound of 1.
  std::vector<int> critical_cycle(int bound) const;
  /// Indices of the edges of the cycle through an instruction that leaves least room at `interval`, from it back to it;
  /// empty when it is in none.
  std::vector<int> tightest_cycle(int instruction, int interval) const;
  /// Only what no choice of registers can change: values and memory.
  DependenceGraph without_lifetimes() const;

 private:
  std::vector<Dependence> m_edges;
  std::vector<std::vector<int>> m_in, m_out;
  mutable std::optional<int> m_recurrence_bound;  // once asked for: the search for it is the dearest of all
};

struct DependenceOptions {
  bool loop = false;         // the block follows itself
  bool independent = false;  // accesses through different registers never overlap
  int untied = 0;            // so many instructions at the end take no part: a loop's own counter and branch
  /// Of hand packets, by instruction: those with equal numbers, one behind the other, issued together, so that all
  /// their addresses are those in front of them. Empty: one after the other.
  std::span<const int> packets = {};
};
DependenceGraph find_dependences(std::span<const Instruction> block, const Pipeline& pipeline,
                                 const DependenceOptions& options);

}  // namespace mtsim::isa
