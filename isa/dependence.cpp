// SPDX-License-Identifier: Apache-2.0
#include "isa/dependence.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "isa/internal.h"
#include "isa/memory_dependence.h"

namespace mtsim::isa {
namespace {

// Feeds the accesses of one register, in sequential order, and adds what orders them. A loop is fed twice: what the
// second round finds of the first has distance 1. Each access is tied to the last write only: that one already stays
// behind those before it, under a predicate or not.
class RegisterOrder {
 public:
  explicit RegisterOrder(DependenceGraph& graph) : m_graph(graph) {}

  struct Access {
    int instruction;
    int round;
    int cycles = 0;       // until a write lands
    bool merges = false;  // a write that may leave the value from before
  };

  void read(const Access& access, Register reg) {
    State& state = m_states[reg];
    if (state.write) connect(*state.write, access, state.write->cycles, DependenceKind::flow, reg);
    state.reads.push_back(access);
  }

  void write(const Access& access, Register reg) {
    State& state = m_states[reg];
    for (const Access& read : state.reads) connect(read, access, 1 - access.cycles, DependenceKind::anti, reg);
    if (state.write) {
      connect(*state.write, access, state.write->cycles + 1 - access.cycles,
              access.merges ? DependenceKind::flow : DependenceKind::output, reg);
    }
    state.reads.clear();
    state.write = access;
  }

 private:
  struct State {
    std::vector<Access> reads;    // since the last write
    std::optional<Access> write;  // the last one
  };

  void connect(const Access& from, const Access& to, int delay, DependenceKind kind, Register reg) {
    if (from.round == 1) return;  // the first round has found it
    if (from.instruction == to.instruction && from.round == to.round) return;
    m_graph.add({from.instruction, to.instruction, delay, to.round - from.round, kind, reg});
  }

  DependenceGraph& m_graph;
  std::map<Register, State> m_states;
};

}  // namespace

const char* to_string(DependenceKind kind) {
  switch (kind) {
    case DependenceKind::flow: return "flow";
    case DependenceKind::anti: return "anti";
    case DependenceKind::output: return "output";
    case DependenceKind::memory: return "memory";
  }
  return "?";
}

void DependenceGraph::add(const Dependence& edge) {
  m_in[index(edge.to)].push_back(static_cast<int>(m_edges.size()));
  m_out[index(edge.from)].push_back(static_cast<int>(m_edges.size()));
  m_edges.push_back(edge);
  m_recurrence_bound.reset();
}

std::optional<std::vector<int>> DependenceGraph::heights(int interval) const {
  std::vector<int> height(m_in.size(), 0);
  bool changed = true;
  for (int round = 0; changed; ++round) {
    if (round > size()) return std::nullopt;
    changed = false;
    for (int i = size() - 1; i >= 0; --i) {  // most edges lead forward
      for (const int e : m_out[index(i)]) {
        const Dependence& edge = m_edges[index(e)];
        const int through = height[index(edge.to)] + edge.delay - interval * edge.distance;
        if (through <= height[index(i)]) continue;
        height[index(i)] = through;
        changed = true;
      }
    }
  }
  return height;
}

int DependenceGraph::recurrence_bound() const {
  if (m_recurrence_bound) return *m_recurrence_bound;
  int low = 1, high = 1;
  while (!heights(high)) high *= 2;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (heights(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  m_recurrence_bound = low;
  return low;
}

std::vector<int> DependenceGraph::critical_cycle(int bound) const {
  if (bound < 2) return {};
  std::vector<int> longest(m_in.size(), 0), through(m_in.size(), -1);
  int last = -1;
  for (int round = 0; round <= size(); ++round) {  // a path that still grows after so many rounds runs in a cycle
    last = -1;
    for (int e = 0; e < static_cast<int>(m_edges.size()); ++e) {
      const Dependence& edge = m_edges[index(e)];
      const int length = longest[index(edge.from)] + edge.delay - (bound - 1) * edge.distance;
      if (length <= longest[index(edge.to)]) continue;
      longest[index(edge.to)] = length;
      through[index(edge.to)] = e;
      last = edge.to;
    }
    if (last < 0) return {};
  }
  for (int i = 0; i < size(); ++i) last = m_edges[index(through[index(last)])].from;
  std::vector<int> cycle;
  int at = last;
  do {
    cycle.push_back(through[index(at)]);
    at = m_edges[index(cycle.back())].from;
  } while (at != last);
  std::reverse(cycle.begin(), cycle.end());
  return cycle;
}

std::vector<int> DependenceGraph::tightest_cycle(int instruction, int interval) const {
  constexpr int k_unreached = std::numeric_limits<int>::min() / 2;
  std::vector<int> longest(m_in.size(), k_unreached), through(m_in.size(), -1);
  longest[index(instruction)] = 0;
  bool changed = true;
  for (int round = 0; changed && round <= size(); ++round) {
    changed = false;
    for (int e = 0; e < static_cast<int>(m_edges.size()); ++e) {
      const Dependence& edge = m_edges[index(e)];
      if (longest[index(edge.from)] == k_unreached || edge.to == instruction) continue;
      const int length = longest[index(edge.from)] + edge.delay - interval * edge.distance;
      if (length <= longest[index(edge.to)]) continue;
      longest[index(edge.to)] = length;
      through[index(edge.to)] = e;
      changed = true;
    }
  }
  if (changed) return {};  // some cycle needs more than the interval: no path is the longest
  int last = -1, most = k_unreached;
  for (const int e : m_in[index(instruction)]) {
    const Dependence& edge = m_edges[index(e)];
    if (longest[index(edge.from)] == k_unreached) continue;
    const int length = longest[index(edge.from)] + edge.delay - interval * edge.distance;
    if (length > most) std::tie(most, last) = std::pair(length, e);
  }
  std::vector<int> cycle;
  for (int e = last; e >= 0; e = through[index(m_edges[index(e)].from)]) cycle.push_back(e);
  std::reverse(cycle.begin(), cycle.end());
  return cycle;
}

DependenceGraph DependenceGraph::without_lifetimes() const {
  DependenceGraph graph(size());
  for (const Dependence& edge : m_edges) {
    if (edge.kind == DependenceKind::flow || edge.kind == DependenceKind::memory) graph.add(edge);
  }
  return graph;
}

DependenceGraph find_dependences(std::span<const Instruction> block, const Pipeline& pipeline,
                                 const DependenceOptions& options) {
  DependenceGraph graph(static_cast<int>(block.size()));
  RegisterOrder order(graph);
  for (int round = 0; round < (options.loop ? 2 : 1); ++round) {
    for (int i = 0; i < graph.size() - options.untied; ++i) {
      const Instruction& instruction = block[index(i)];
      for (const Register reg : reads(instruction)) order.read({i, round}, reg);
      for (const Write& write : writes(instruction, pipeline)) {
        order.write({i, round, write.cycles, instruction.predicate.has_value()}, write.reg);
      }
    }
  }
  add_memory_dependences(block.first(block.size() - index(options.untied)), options, graph);
  return graph;
}

}  // namespace mtsim::isa
