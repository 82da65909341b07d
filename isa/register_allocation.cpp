// SPDX-License-Identifier: Apache-2.0
#include "isa/register_allocation.h"

#include <fmt/format.h>

#include <algorithm>

#include "isa/bit_set.h"
#include "isa/internal.h"

namespace mtsim::isa {
namespace {

struct Landing {
  int value;
  bool kills;  // the value before
};

struct CycleFacts {
  std::vector<int> reads;
  std::vector<Landing> landings;  // of what the same segment issued, seen by the reads of this cycle
  Place place;
};

// A segment as it is reached on one way: what was issued there and has not landed lands in it.
struct Visit {
  int segment = 0;
  std::vector<int> way;  // segments passed before, the last one last: as many as results may be in flight from
  std::vector<int> successors;
  std::vector<std::pair<int, Landing>> in_flight;  // by cycle, ascending
};

// Interference and pressure of the virtual registers.
class Liveness {
 public:
  Liveness(const std::vector<Segment>& code, const Pipeline& pipeline, const std::map<Register, Register>& pinned)
      : m_code(code), m_pipeline(pipeline), m_live(code.size()) {
    for (const auto& [reg, unused_physical] : pinned) m_live_at_exit.push_back(number(reg));
    number_values();
    collect_facts();
    follow_ways();
    solve();
  }

  const std::vector<Register>& values() const { return m_values; }
  const std::vector<bool>& predicates() const { return m_predicate; }
  const std::vector<BitSet>& interference() const { return m_interference; }
  const std::array<RegisterPressure, k_register_files>& pressure() const { return m_pressure; }

  const std::vector<std::array<int, k_register_files>>& live() const { return m_live; }

  std::vector<Register> undefined() const {
    BitSet live(m_values.size());
    for (std::size_t v = 0; v < m_visits.size(); ++v) {
      if (m_code[index(m_visits[v].segment)].entry && m_visits[v].way.empty()) live |= m_live_in[v];
    }
    std::vector<Register> found;
    live.for_each([&](std::size_t v) { found.push_back(m_values[v]); });
    return found;
  }

 private:
  int number(Register reg) {
    const auto [it, is_new] = m_number.try_emplace(reg, static_cast<int>(m_values.size()));
    if (is_new) {
      m_values.push_back(reg);
      m_predicate.push_back(false);
    }
    return it->second;
  }

  void number_values() {
    for (const Segment& segment : m_code) {
      for (const auto& cycle : segment.cycles) {
        for (const Instruction& instruction : cycle) {
          for (const Register reg : reads(instruction)) {
            if (reg.is_virtual()) number(reg);
          }
          for (const Write& write : writes(instruction, m_pipeline)) {
            if (write.reg.is_virtual()) number(write.reg);
          }
          if (instruction.predicate && instruction.predicate->reg.is_virtual()) {
            m_predicate[index(number(instruction.predicate->reg))] = true;
          }
        }
      }
    }
  }

  void collect_facts() {
    for (const Segment& segment : m_code) m_facts.emplace_back(segment.cycles.size());
    m_outgoing.resize(m_code.size());
    for (std::size_t s = 0; s < m_code.size(); ++s) {
      for (std::size_t c = 0; c < m_code[s].cycles.size(); ++c) {
        for (const Instruction& instruction : m_code[s].cycles[c]) {
          CycleFacts& facts = m_facts[s][c];
          facts.place = instruction.place;
          for (const Register reg : reads(instruction)) {
            if (reg.is_virtual()) facts.reads.push_back(number(reg));
          }
          for (const Write& write : writes(instruction, m_pipeline)) {
            if (write.reg.is_virtual()) {
              const int lands = static_cast<int>(c) + write.cycles;
              const Landing landing{number(write.reg), !instruction.predicate};
              m_longest = std::max(m_longest, write.cycles);
              if (lands < length(static_cast<int>(s))) {
                m_facts[s][index(lands)].landings.push_back(landing);
              } else {
                m_outgoing[s].emplace_back(lands - length(static_cast<int>(s)), landing);
              }
            }
          }
        }
      }
    }
  }

  int length(int s) const { return static_cast<int>(m_code[index(s)].cycles.size()); }

  // Every way from outside through the segments, as far back as a result may be in flight.
  void follow_ways() {
    std::map<std::pair<int, std::vector<int>>, int> known;
    const auto visit = [&](int segment, const std::vector<int>& way) {
      const auto [it, is_new] = known.try_emplace({segment, way}, static_cast<int>(m_visits.size()));
      if (is_new) m_visits.push_back({segment, way, {}, in_flight(segment, way)});
      return it->second;
    };
    for (std::size_t s = 0; s < m_code.size(); ++s) {
      if (m_code[s].entry) visit(static_cast<int>(s), {});
    }
    for (std::size_t v = 0; v < m_visits.size(); ++v) {
      std::vector<int> way = m_visits[v].way;
      way.push_back(m_visits[v].segment);
      int cycles = 0;
      auto first = way.end();
      while (first != way.begin() && cycles < m_longest) cycles += length(*--first);
      way.erase(way.begin(), first);
      for (const int next : m_code[index(m_visits[v].segment)].successors) {
        const int to = visit(next, way);
        m_visits[v].successors.push_back(to);
      }
    }
  }

  std::vector<std::pair<int, Landing>> in_flight(int segment, const std::vector<int>& way) const {
    std::vector<std::pair<int, Landing>> found;
    int since = 0;  // cycles from the end of the segment looked at to the start of this one
    for (std::size_t i = way.size(); i-- > 0; since += length(way[i])) {
      for (const auto& [lands, landing] : m_outgoing[index(way[i])]) {
        const int cycle = lands - since;
        if (cycle >= 0 && cycle < length(segment)) found.emplace_back(cycle, landing);
      }
    }
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return found;
  }

  BitSet live_out(const Visit& visit) const {
    BitSet live(m_values.size());
    for (const int next : visit.successors) live |= m_live_in[index(next)];
    if (visit.successors.empty()) {
      for (const int value : m_live_at_exit) live.set(index(value));
    }
    return live;
  }

  // Backwards through a segment. `look` sees what is live behind the landings of a cycle.
  template <typename Look>
  BitSet backward(const Visit& visit, const Look& look) const {
    BitSet live = live_out(visit);
    auto flying = visit.in_flight.rbegin();
    std::vector<Landing> landings;
    const std::vector<CycleFacts>& facts = m_facts[index(visit.segment)];
    for (std::size_t c = facts.size(); c-- > 0;) {
      landings = facts[c].landings;
      for (; flying != visit.in_flight.rend() && index(flying->first) == c; ++flying)
        landings.push_back(flying->second);
      for (const int value : facts[c].reads) live.set(index(value));
      look(facts[c].place, landings, live);
      for (const Landing& landing : landings) {
        if (landing.kills) live.reset(index(landing.value));
      }
    }
    return live;
  }

  void solve() {
    m_live_in.assign(m_visits.size(), BitSet(m_values.size()));
    bool changed = true;
    while (changed) {
      changed = false;
      for (std::size_t v = m_visits.size(); v-- > 0;) {
        BitSet live = backward(m_visits[v], [](const Place&, const std::vector<Landing>&, const BitSet&) {});
        if (live == m_live_in[v]) continue;
        m_live_in[v] = std::move(live);
        changed = true;
      }
    }
    m_interference.assign(m_values.size(), BitSet(m_values.size()));
    for (const Visit& visit : m_visits) {
      backward(visit, [&](const Place& place, const std::vector<Landing>& landings, const BitSet& live) {
        interfere(place, landings, live, m_live[index(visit.segment)]);
      });
    }
  }

  void interfere(const Place& place, const std::vector<Landing>& landings, const BitSet& live,
                 std::array<int, k_register_files>& most) {
    for (std::size_t i = 0; i < landings.size(); ++i) {
      const std::size_t value = index(landings[i].value);
      m_interference[value] |= live;
      live.for_each([&](std::size_t other) { m_interference[other].set(value); });
      for (std::size_t j = 0; j < i; ++j) {
        const std::size_t other = index(landings[j].value);
        m_interference[value].set(other);
        m_interference[other].set(value);
      }
    }
    std::array<int, k_register_files> count{};
    live.for_each([&](std::size_t v) { ++count[static_cast<std::size_t>(m_values[v].file)]; });
    if (place.line > 0) m_last_place = place;
    for (std::size_t f = 0; f < k_register_files; ++f) {
      most[f] = std::max(most[f], count[f]);
      if (count[f] > m_pressure[f].most) m_pressure[f] = {count[f], m_last_place};
    }
  }

  const std::vector<Segment>& m_code;
  const Pipeline& m_pipeline;
  std::vector<std::array<int, k_register_files>> m_live;  // by segment
  std::vector<int> m_live_at_exit;
  std::map<Register, int> m_number;
  std::vector<Register> m_values;
  std::vector<bool> m_predicate;
  std::vector<std::vector<CycleFacts>> m_facts;
  std::vector<std::vector<std::pair<int, Landing>>> m_outgoing;  // by segment: cycles behind its end
  int m_longest = 0;                                             // latency
  std::vector<Visit> m_visits;
  std::vector<BitSet> m_live_in;  // by visit
  std::vector<BitSet> m_interference;
  std::array<RegisterPressure, k_register_files> m_pressure{};
  Place m_last_place;
};

// A register or an even pair of them to colour.
struct Node {
  std::vector<int> values;      // one, or the even and the odd one
  std::vector<int> candidates;  // registers, of a pair the even one, in the order they are tried
  std::vector<int> neighbours;  // nodes
  int colour = -1;
  bool pinned = false;  // coloured first
};

class Colouring {
 public:
  Colouring(const Liveness& liveness, const AllocationOptions& options, const std::set<Register>& paired)
      : m_liveness(liveness), m_options(options), m_paired(paired) {
    make_nodes();
    connect();
  }

  // The number of the first node that got no register, or -1.
  int run() {
    std::vector<int> by_degree = simplification_order();
    std::stable_partition(by_degree.begin(), by_degree.end(), [&](int n) { return m_nodes[index(n)].pinned; });
    if (const int failed = colour(by_degree); failed < 0) return -1;
    std::vector<int> pairs_first = by_degree;
    std::stable_partition(pairs_first.begin(), pairs_first.end(),
                          [&](int n) { return m_nodes[index(n)].pinned || m_nodes[index(n)].values.size() > 1; });
    return colour(pairs_first);
  }

  const std::vector<Node>& nodes() const { return m_nodes; }

 private:
  void make_nodes() {
    const std::vector<Register>& values = m_liveness.values();
    m_node_of.assign(values.size(), -1);
    std::map<Register, int> number;
    for (std::size_t v = 0; v < values.size(); ++v) number[values[v]] = static_cast<int>(v);
    for (std::size_t v = 0; v < values.size(); ++v) {
      if (m_node_of[v] >= 0) continue;
      Node node;
      const Register reg = values[v];
      const Register even{reg.file, static_cast<std::uint16_t>(reg.index & ~1)};
      if (m_paired.count(even) > 0) {
        for (const Register member : {even, RegisterPair{even}.high()}) {
          const auto it = number.find(member);
          node.values.push_back(it == number.end() ? -1 : it->second);  // a half that nothing uses
        }
      } else {
        node.values.push_back(static_cast<int>(v));
      }
      for (const int value : node.values) {
        if (value >= 0) m_node_of[index(value)] = static_cast<int>(m_nodes.size());
      }
      node.candidates = candidates(node, reg);
      pin(node);
      m_nodes.push_back(std::move(node));
    }
  }

  // A node with a pinned register has one candidate; an impossible one, half of a pair pinned to the wrong half, has
  // none.
  void pin(Node& node) const {
    for (std::size_t half = 0; half < node.values.size(); ++half) {
      if (node.values[half] < 0) continue;
      const auto it = m_options.pinned.find(m_liveness.values()[index(node.values[half])]);
      if (it == m_options.pinned.end()) continue;
      const int even = it->second.index - static_cast<int>(half);
      const bool possible = node.values.size() == 1 || even % 2 == 0;
      const bool other = node.pinned && node.candidates != std::vector<int>{even};
      node.candidates.assign(possible && !other ? 1 : 0, even);
      node.pinned = true;
    }
  }

  // Pairs from below, single registers from above, predicates last of all where they are not needed.
  std::vector<int> candidates(const Node& node, Register reg) const {
    int low = 0, high = k_registers_in_file[static_cast<std::size_t>(reg.file)];
    const bool halves = reg.file == RegisterFile::AR || reg.file == RegisterFile::OR;
    if (halves) (reg.scalar_side() ? low : high) = high / 2;
    const bool predicate = std::any_of(node.values.begin(), node.values.end(),
                                       [&](int v) { return v >= 0 && m_liveness.predicates()[index(v)]; });
    if (predicate) high = k_predicate_registers;
    std::vector<int> found;
    const auto free = [&](int r) { return m_options.reserved.count({reg.file, static_cast<std::uint16_t>(r)}) == 0; };
    if (node.values.size() > 1) {
      for (int r = low; r + 1 < high; r += 2) {
        if (free(r) && free(r + 1)) found.push_back(r);
      }
    } else {
      for (int r = high; r-- > low;) {
        if (free(r)) found.push_back(r);
      }
    }
    if (reg.file == RegisterFile::R && !predicate) {
      std::stable_partition(found.begin(), found.end(), [](int r) { return r >= k_predicate_registers; });
    }
    return found;
  }

  void connect() {
    for (std::size_t n = 0; n < m_nodes.size(); ++n) {
      std::set<int> neighbours;
      for (const int value : m_nodes[n].values) {
        if (value < 0) continue;
        m_liveness.interference()[index(value)].for_each([&](std::size_t other) {
          const int node = m_node_of[other];
          if (node != static_cast<int>(n) && same_file(value, static_cast<int>(other))) neighbours.insert(node);
        });
      }
      m_nodes[n].neighbours.assign(neighbours.begin(), neighbours.end());
    }
  }

  bool same_file(int a, int b) const {
    return m_liveness.values()[index(a)].file == m_liveness.values()[index(b)].file;
  }

  // Chaitin and Briggs: what is sure to find a register is coloured last; the returned order is that of colouring.
  std::vector<int> simplification_order() const {
    const int count = static_cast<int>(m_nodes.size());
    std::vector<int> degree(m_nodes.size(), 0), order;
    std::vector<bool> removed(m_nodes.size(), false);
    const auto weight = [&](int of, int on) {  // candidates of `on` that `of` can take away
      return m_nodes[index(on)].values.size() > 1 ? 1 : static_cast<int>(m_nodes[index(of)].values.size());
    };
    for (int n = 0; n < count; ++n) {
      for (const int other : m_nodes[index(n)].neighbours) degree[index(n)] += weight(other, n);
    }
    for (int left = count; left > 0; --left) {
      int best = -1;
      const auto slack = [&](int n) {
        return static_cast<int>(m_nodes[index(n)].candidates.size()) - degree[index(n)];
      };
      for (int n = 0; n < count; ++n) {
        if (!removed[index(n)] && (best < 0 || slack(n) > slack(best))) best = n;
      }
      removed[index(best)] = true;
      order.push_back(best);
      for (const int other : m_nodes[index(best)].neighbours) degree[index(other)] -= weight(best, other);
    }
    std::reverse(order.begin(), order.end());
    return order;
  }

  int colour(const std::vector<int>& order) {
    for (Node& node : m_nodes) node.colour = -1;
    for (const int n : order) {
      Node& node = m_nodes[index(n)];
      std::array<bool, 64> taken{};
      for (const int other : node.neighbours) {
        const Node& their = m_nodes[index(other)];
        if (their.colour < 0) continue;
        for (std::size_t i = 0; i < their.values.size(); ++i) taken[index(their.colour) + i] = true;
      }
      const auto it = std::find_if(node.candidates.begin(), node.candidates.end(), [&](int r) {
        return !taken[index(r)] && (node.values.size() == 1 || !taken[index(r) + 1]);
      });
      if (it == node.candidates.end()) return n;
      node.colour = *it;
    }
    return -1;
  }

  const Liveness& m_liveness;
  const AllocationOptions& m_options;
  const std::set<Register>& m_paired;
  std::vector<Node> m_nodes;
  std::vector<int> m_node_of;  // by value
};

// The even registers of the pairs that some instruction needs.
std::set<Register> find_pairs(const std::vector<Segment>& code) {
  std::set<Register> pairs;
  for (const Segment& segment : code) {
    for (const auto& cycle : segment.cycles) {
      for (const Instruction& instruction : cycle) {
        for (const Operand& operand : instruction.operands) {
          const auto* pair = std::get_if<RegisterPair>(&operand);
          if (pair != nullptr && pair->low.is_virtual()) pairs.insert(pair->low);
        }
      }
    }
  }
  return pairs;
}

}  // namespace

Allocation allocate_registers(const std::vector<Segment>& code, const Pipeline& pipeline,
                              const AllocationOptions& options) {
  const Liveness liveness(code, pipeline, options.pinned);
  const std::set<Register> pairs = find_pairs(code);
  Colouring colouring(liveness, options, pairs);
  Allocation allocation;
  allocation.pressure = liveness.pressure();
  allocation.live = liveness.live();
  allocation.undefined = liveness.undefined();
  const int failed = colouring.run();
  if (failed >= 0) {
    const Node& node = colouring.nodes()[index(failed)];
    const int value = node.values[0] >= 0 ? node.values[0] : node.values[1];
    const Register reg = liveness.values()[index(value)];
    const RegisterPressure& pressure = liveness.pressure()[static_cast<std::size_t>(reg.file)];
    const std::size_t candidates = (node.values.size() > 1 ? 2 : 1) * node.candidates.size();
    allocation.complete = false;
    allocation.failure =
        fmt::format("{} {} registers are live at once, and {} {}", pressure.most,
                    k_register_file_names[static_cast<std::size_t>(reg.file)],
                    candidates > 0 ? fmt::format("{} can hold", candidates) : "the code around leaves none for",
                    node.values.size() > 1                ? "a pair"
                    : liveness.predicates()[index(value)] ? "a predicate"
                    : reg.file == RegisterFile::AR || reg.file == RegisterFile::OR
                        ? (reg.scalar_side() ? "an address of the scalar side" : "an address of the vector side")
                        : "a value");
    allocation.failure_place = pressure.place;
    return allocation;
  }
  for (const Node& node : colouring.nodes()) {
    for (std::size_t i = 0; i < node.values.size(); ++i) {
      if (node.values[i] < 0) continue;
      const Register reg = liveness.values()[index(node.values[i])];
      allocation.physical[reg] = {reg.file, static_cast<std::uint16_t>(index(node.colour) + i)};
    }
  }
  return allocation;
}

}  // namespace mtsim::isa
