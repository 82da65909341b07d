// SPDX-License-Identifier: Apache-2.0
#include "isa/value_flow.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <unordered_map>
#include <utility>

#include "isa/analysis.h"
#include "isa/control_flow.h"
#include "isa/internal.h"

namespace mtsim::isa {
namespace {

constexpr int k_never = k_max_latency + 1;

struct Kill {  // a write without predicate
  int flat;
  int cycles;  // from the packet's issue to its landing
};

struct PacketAccesses {
  std::vector<std::pair<int, int>> reads;  // flat register, slot
  std::vector<Kill> kills;
};

// Numbers the states so that those on a common cycle have the same number (Tarjan, without recursion).
class Components {
 public:
  explicit Components(const ControlFlow& flow) : m_flow(flow), m_order(flow.states().size(), k_new) {
    m_low.resize(m_order.size());
    m_component.resize(m_order.size(), k_new);
  }

  std::vector<int> run() {
    for (int state = 0; state < static_cast<int>(m_order.size()); ++state) {
      if (m_order[index(state)] == k_new) explore(state);
    }
    return std::move(m_component);
  }

 private:
  static constexpr int k_new = -1;

  void explore(int root) {
    std::vector<std::pair<int, std::size_t>> path;  // state, edges already followed
    const auto enter = [&](int state) {
      m_order[index(state)] = m_low[index(state)] = m_count++;
      m_open.push_back(state);
      path.emplace_back(state, 0);
    };
    enter(root);
    while (!path.empty()) {
      const int state = path.back().first;
      const std::vector<ControlFlow::Edge>& edges = m_flow.successors(state);
      if (path.back().second < edges.size()) {
        const int next = edges[path.back().second++].state;
        if (next < 0 || m_component[index(next)] != k_new) continue;
        if (m_order[index(next)] == k_new) {
          enter(next);
        } else {
          m_low[index(state)] = std::min(m_low[index(state)], m_order[index(next)]);
        }
        continue;
      }
      path.pop_back();
      if (!path.empty()) {
        int& low = m_low[index(path.back().first)];
        low = std::min(low, m_low[index(state)]);
      }
      if (m_low[index(state)] == m_order[index(state)]) close(state);
    }
  }

  void close(int first) {
    int state = 0;
    do {
      state = m_open.back();
      m_open.pop_back();
      m_component[index(state)] = first;
    } while (state != first);
  }

  const ControlFlow& m_flow;
  int m_count = 0;
  std::vector<int> m_order, m_low, m_component, m_open;
};

// One value on its way. Paths on which it is as far from landing and as near to its end are the same.
class ValuePaths {
 public:
  ValuePaths(const ControlFlow& flow, const std::vector<int>& cycles, const std::vector<PacketAccesses>& accesses,
             std::int64_t& budget)
      : m_flow(flow), m_cycles(cycles), m_accesses(accesses), m_budget(budget) {}

  void start(int state, int lands_in, int killed_in) { enter({state, lands_in, killed_in}, 0, false, k_nowhere); }

  void follow(Register reg, ValueUse use, ValueFlow& out) {
    const int flat = reg.flat();
    for (; !m_pending.empty() && m_budget > 0; --m_budget) {
      const auto [elapsed, number] = m_pending.top();
      m_pending.pop();
      const Node node = m_facts[number].node;
      if (m_facts[number].done) continue;
      m_facts[number].done = true;
      const int packet = m_flow.states()[index(node.state)].packet;
      int killed_in = node.killed_in;
      for (const auto& [read, slot] : m_accesses[index(packet)].reads) {
        if (read != flat) continue;
        if (node.lands_in > 0) {
          if (elapsed > 0) out.early.insert({{packet, slot}, reg});
          continue;
        }
        use.consumer = {packet, slot};
        use.distance = elapsed;
        use.wraps = m_facts[number].wraps;
        m_uses.try_emplace({packet, slot}, use);
        m_facts[number].used = true;
      }
      for (const Kill& kill : m_accesses[index(packet)].kills) {
        if (kill.flat == flat && kill.cycles > node.lands_in) killed_in = std::min(killed_in, kill.cycles);
      }
      for (const ControlFlow::Edge& edge : m_flow.successors(node.state)) {
        if (edge.state < 0 || killed_in <= edge.cycles) continue;
        const int next = m_flow.states()[index(edge.state)].packet;
        const bool round = next <= packet && m_cycles[index(node.state)] == m_cycles[index(edge.state)];
        enter({edge.state, std::max(0, node.lands_in - edge.cycles),
               killed_in == k_never ? k_never : killed_in - edge.cycles},
              elapsed + edge.cycles, m_facts[number].wraps || round, number);
      }
    }
    if (!m_pending.empty()) out.complete = false;
    for (const auto& [unused_at, found] : m_uses) out.uses.push_back(found);
    mark_live(flat, out);
  }

 private:
  static constexpr std::size_t k_nowhere = SIZE_MAX;
  struct Node {
    int state;
    int lands_in;   // cycles until the value is there; 0: it is
    int killed_in;  // cycles until a write seen so far replaces it
  };
  struct Facts {
    Node node;
    bool wraps = false;
    bool done = false;
    bool used = false;
    std::vector<std::size_t> from;
  };

  void enter(Node node, int elapsed, bool wraps, std::size_t from) {
    constexpr int k_bits = 8;
    static_assert(k_never < 1 << k_bits);
    const std::uint64_t key = (static_cast<std::uint64_t>(node.state) << (2 * k_bits)) |
                              (static_cast<std::uint64_t>(node.lands_in) << k_bits) |
                              static_cast<std::uint64_t>(node.killed_in);
    const auto [it, is_new] = m_index.try_emplace(key, m_facts.size());
    if (is_new) m_facts.push_back({node, wraps});
    Facts& facts = m_facts[it->second];
    if (from != k_nowhere) facts.from.push_back(from);
    if (facts.done) return;
    facts.wraps = is_new ? wraps : facts.wraps && wraps;
    m_pending.emplace(elapsed, it->second);
  }

  // Where the value has landed and a read lies ahead.
  void mark_live(int flat, ValueFlow& out) {
    std::vector<std::size_t> ahead;
    for (std::size_t i = 0; i < m_facts.size(); ++i) {
      if (m_facts[i].used) ahead.push_back(i);
    }
    std::vector<bool> seen(m_facts.size());
    while (!ahead.empty()) {
      const std::size_t i = ahead.back();
      ahead.pop_back();
      if (seen[i]) continue;
      seen[i] = true;
      const Node& node = m_facts[i].node;
      if (node.lands_in == 0) out.live[index(m_flow.states()[index(node.state)].packet)].set(index(flat));
      ahead.insert(ahead.end(), m_facts[i].from.begin(), m_facts[i].from.end());
    }
  }

  const ControlFlow& m_flow;
  const std::vector<int>& m_cycles;
  const std::vector<PacketAccesses>& m_accesses;
  std::int64_t& m_budget;
  std::unordered_map<std::uint64_t, std::size_t> m_index;
  std::vector<Facts> m_facts;
  std::priority_queue<std::pair<int, std::size_t>, std::vector<std::pair<int, std::size_t>>, std::greater<>> m_pending;
  std::map<InstructionAt, ValueUse> m_uses;  // the first found has the fewest cycles
};

class Follower {
 public:
  Follower(const Program& program, const Pipeline& pipeline)
      : m_program(program),
        m_pipeline(pipeline),
        m_entries(default_entries(program)),
        m_flow(program, pipeline, m_entries),
        m_cycles(Components(m_flow).run()),
        m_accesses(program.packets.size()) {
    collect();
    m_out.live.resize(program.packets.size());
  }

  ValueFlow run() {
    std::array<std::vector<std::pair<InstructionAt, Write>>, k_register_count> writers;
    for (int p = 0; p < static_cast<int>(m_program.packets.size()); ++p) {
      if (!m_flow.reachable(p)) continue;
      const auto& instructions = m_program.packets[index(p)].instructions;
      for (int slot = 0; slot < static_cast<int>(instructions.size()); ++slot) {
        for (const Write& write : writes(instructions[index(slot)], m_pipeline)) {
          writers[index(write.reg.flat())].push_back({{p, slot}, write});
        }
      }
    }
    for (const auto& of_register : writers) {
      if (!of_register.empty()) results_of(of_register);
    }
    callers_values();
    std::sort(m_out.uses.begin(), m_out.uses.end());
    return std::move(m_out);
  }

 private:
  void collect() {
    for (std::size_t p = 0; p < m_program.packets.size(); ++p) {
      const auto& instructions = m_program.packets[p].instructions;
      for (int slot = 0; slot < static_cast<int>(instructions.size()); ++slot) {
        const Instruction& instruction = instructions[index(slot)];
        for (const Register reg : reads(instruction)) m_accesses[p].reads.emplace_back(reg.flat(), slot);
        if (instruction.predicate) continue;
        for (const Write& write : writes(instruction, m_pipeline)) {
          m_accesses[p].kills.push_back({write.reg.flat(), write.cycles});
        }
      }
    }
  }

  // By state: the sets of results to the register that can be in flight there, bit c for one that lands in c cycles.
  std::vector<std::set<std::uint64_t>> in_flight(int flat) {
    static_assert(k_max_latency < 64);
    std::vector<std::set<std::uint64_t>> found(m_flow.states().size());
    std::vector<std::pair<int, std::uint64_t>> pending;
    const auto enter = [&](int state, std::uint64_t set) {
      if (found[index(state)].insert(set).second) pending.emplace_back(state, set);
    };
    for_each_entry([&](int state) { enter(state, 0); });
    for (; !pending.empty() && m_budget > 0; --m_budget) {
      auto [state, set] = pending.back();
      pending.pop_back();
      for (const Kill& kill : m_accesses[index(m_flow.states()[index(state)].packet)].kills) {
        if (kill.flat == flat) set |= std::uint64_t{1} << kill.cycles;
      }
      for (const ControlFlow::Edge& edge : m_flow.successors(state)) {
        if (edge.state >= 0)
          enter(edge.state, edge.cycles > k_max_latency ? 0 : set >> edge.cycles & ~std::uint64_t{1});
      }
    }
    if (!pending.empty()) m_out.complete = false;
    return found;
  }

  void results_of(const std::vector<std::pair<InstructionAt, Write>>& writers) {
    const auto before = in_flight(writers.front().second.reg.flat());
    for (const auto& [at, write] : writers) {
      ValuePaths paths(m_flow, m_cycles, m_accesses, m_budget);
      for (const int state : m_flow.states_of(at.packet)) {
        for (const std::uint64_t set : before[index(state)]) {
          // One that was in flight before and lands later ends this value.
          const std::uint64_t later = set >> write.cycles >> 1;
          paths.start(state, write.cycles, later == 0 ? k_never : write.cycles + 1 + std::countr_zero(later));
        }
      }
      paths.follow(write.reg, {at, {}, write.reg, write.cycles}, m_out);
    }
  }

  template <typename Visit>
  void for_each_entry(const Visit& visit) const {
    for (const int entry : m_entries) {
      for (const int state : m_flow.states_of(entry)) {
        if (m_flow.states()[index(state)].branch_in == 0) visit(state);
      }
    }
  }

  void callers_values() {
    for (int file = 0; file < k_register_files; ++file) {
      for (int i = 0; i < k_registers_in_file[index(file)]; ++i) {
        const Register reg{static_cast<RegisterFile>(file), static_cast<std::uint16_t>(i)};
        ValuePaths paths(m_flow, m_cycles, m_accesses, m_budget);
        for_each_entry([&](int state) { paths.start(state, 0, k_never); });
        paths.follow(reg, {{}, {}, reg}, m_out);
      }
    }
  }

  const Program& m_program;
  const Pipeline& m_pipeline;
  std::vector<int> m_entries;
  ControlFlow m_flow;
  std::vector<int> m_cycles;  // by state
  std::vector<PacketAccesses> m_accesses;
  std::int64_t m_budget = 20'000'000;  // steps; the largest kernel takes a quarter of a million
  ValueFlow m_out;
};

}  // namespace

ValueFlow follow_values(const Program& program, const Pipeline& pipeline) { return Follower(program, pipeline).run(); }

}  // namespace mtsim::isa
