// SPDX-License-Identifier: Apache-2.0
#include "runtime/graph/fusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "sim/arena.h"

namespace mtsim::runtime {
namespace {

using models::Graph;
using models::Node;
using models::NodeKind;
using models::TensorKind;

class Fuser {
 public:
  Fuser(const Graph& graph, const FusionTarget& target)
      : m_graph(graph), m_target(target), m_order(graph.order()), m_edges(graph), m_unit_of(graph.nodes.size(), -1) {
    m_place.resize(graph.nodes.size());
    for (std::size_t i = 0; i < m_order.size(); ++i) m_place[index(m_order[i])] = static_cast<int>(i);
    for (const Node& node : graph.nodes) m_works.push_back(target.working_set(node));
    for (std::size_t tensor = 0; tensor < graph.tensors.size(); ++tensor)
      m_blocked.push_back(blocked(static_cast<int>(tensor)));
  }

  Fusion run() {
    for (const int node : m_order) {
      if (is_sum(node))
        meet_others(node);
      else if (is_high(node))
        place_high(node);
    }
    for (const int node : m_order) {
      if (m_unit_of[index(node)] < 0) trail(node);
    }
    for (auto it = m_order.rbegin(); it != m_order.rend(); ++it) {
      if (m_unit_of[index(*it)] < 0) lead(*it);
    }
    for (const int node : m_order) {
      if (m_unit_of[index(node)] < 0) stay_alone(node);
    }
    return result();
  }

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  const Node& at(int node) const { return m_graph.nodes[index(node)]; }
  const std::string& tensor_name(int tensor) const { return m_graph.tensors[index(tensor)].name; }
  bool is_activation(int tensor) const { return m_graph.tensors[index(tensor)].kind == TensorKind::activation; }
  bool is_high(int node) const { return m_graph.density(at(node)) >= k_high_density; }
  /// Over clusters: all of its operand leaves this one, and what it gives comes from the others.
  bool is_sum(int node) const { return at(node).kind == NodeKind::all_reduce; }
  bool has_weights(int node) const {
    return std::any_of(at(node).inputs.begin(), at(node).inputs.end(),
                       [&](int t) { return m_graph.tensors[index(t)].kind == TensorKind::weight; });
  }
  std::int64_t bytes(int tensor) const {
    return static_cast<std::int64_t>(m_graph.tensors[index(tensor)].elements()) * m_target.bytes_per_element;
  }

  void begin_unit(int node) {
    m_unit_of[index(node)] = static_cast<int>(m_members.size());
    m_members.push_back({node});
  }
  void join(int node, int unit) {
    m_unit_of[index(node)] = unit;
    m_members[index(unit)].push_back(node);
  }
  void stop(int from, int to, std::string why) { m_stops[{from, to}] = {from, to, std::move(why)}; }

  /// Whether what `node` needs from outside the unit can be had before the unit begins: no path leaves it and comes
  /// back.
  std::optional<int> needs_later(int node, int unit) const {
    for (const int tensor : at(node).inputs) {
      const int maker = m_edges.producer[index(tensor)];
      if (maker >= 0 && m_unit_of[index(maker)] != unit && reaches(unit, maker)) return maker;
    }
    return std::nullopt;
  }
  /// Whether `node` needs, through others, what the unit makes. Who needs one node of a unit needs all of that unit: it
  /// runs as a whole.
  bool reaches(int unit, int node) const {
    std::vector<int> open;
    std::vector<bool> seen(m_graph.nodes.size());
    const auto visit = [&](int one) {
      if (seen[index(one)]) return;
      seen[index(one)] = true;
      open.push_back(one);
    };
    visit(node);
    while (!open.empty()) {
      const int now = open.back();
      open.pop_back();
      const int its = m_unit_of[index(now)];
      if (its == unit) return true;
      if (its >= 0) {
        for (const int member : m_members[index(its)]) visit(member);
      }
      for (const int tensor : at(now).inputs) {
        if (m_edges.producer[index(tensor)] >= 0) visit(m_edges.producer[index(tensor)]);
      }
    }
    return false;
  }

  void meet_others(int node) {
    begin_unit(node);
    for (const int tensor : at(node).inputs) {
      if (m_edges.producer[index(tensor)] >= 0) stop_at_sum(m_edges.producer[index(tensor)], node);
    }
  }
  void stop_at_sum(int from, int to) {
    stop(from, to, fmt::format("{} is a sum over clusters, through their DDR", at(is_sum(to) ? to : from).name));
  }

  // --- High-density operators.

  void place_high(int node) {
    std::string why = has_weights(node) ? "it has weights, which would stream again for every block of rows"
                                        : "what it reads comes from one with weights, which has to be complete first";
    for (const int tensor : at(node).inputs) {
      if (!is_activation(tensor)) continue;
      if (has_weights(node)) {
        for (const int sibling : m_edges.consumers[index(tensor)]) {
          const int unit = m_unit_of[index(sibling)];
          if (sibling == node || unit < 0 || !is_high(sibling) || !has_weights(sibling)) continue;
          if (at(sibling).layer != at(node).layer || needs_later(node, unit)) continue;
          join(node, unit);
          const std::string short_of = shortage(unit);
          if (short_of.empty()) return;
          leave(node, unit);
          why = short_of;
        }
      } else if (const std::optional<int> unit = row_unit(tensor)) {
        const std::string refusal = join_rows(node, tensor, *unit);
        if (refusal.empty()) return;
        why = refusal;
      }
    }
    begin_unit(node);
    for (const int tensor : at(node).inputs) {
      if (is_activation(tensor) && m_edges.producer[index(tensor)] >= 0)
        stop(m_edges.producer[index(tensor)], node,
             fmt::format("{} is of high density and begins a unit: {}", at(node).name, why));
    }
  }
  /// The unit of the high-density operator without weights from which `tensor` comes through low ones alone.
  std::optional<int> row_unit(int tensor) const {
    const int maker = m_edges.producer[index(tensor)];
    if (maker < 0 || m_edges.consumers[index(tensor)].size() != 1) return std::nullopt;
    if (is_high(maker)) return has_weights(maker) ? std::nullopt : std::optional(m_unit_of[index(maker)]);
    for (const int input : at(maker).inputs) {
      if (is_activation(input)) {
        if (const auto unit = row_unit(input)) return unit;
      }
    }
    return std::nullopt;
  }
  /// With the low-density operators between, if all of them can; else why not.
  std::string join_rows(int node, int tensor, int unit) {
    std::vector<int> chain{node};
    for (int maker = m_edges.producer[index(tensor)]; m_unit_of[index(maker)] != unit;) {
      chain.push_back(maker);
      const auto& inputs = at(maker).inputs;
      maker = m_edges.producer[index(*std::find_if(inputs.begin(), inputs.end(), [&](int input) {
        return is_activation(input) && row_unit(input) == std::optional(unit);
      }))];
    }
    for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
      std::string refusal;
      if (m_unit_of[index(*it)] >= 0) {
        refusal = fmt::format("{} is in another unit", at(*it).name);
      } else if (at(*it).layer != at(node).layer) {
        refusal = fmt::format("{} belongs to another layer, and a pipeline stage may end between", at(*it).name);
      } else if (const auto later = needs_later(*it, unit)) {
        refusal =
            fmt::format("{} also needs {}, which in turn needs what the unit makes", at(*it).name, at(*later).name);
      } else {
        join(*it, unit);
        refusal = shortage(unit);
      }
      if (refusal.empty()) continue;
      for (const int member : chain) leave(member, unit);
      return refusal;
    }
    return "";
  }
  void leave(int node, int unit) {
    if (m_unit_of[index(node)] != unit) return;
    m_unit_of[index(node)] = -1;
    std::erase(m_members[index(unit)], node);
  }

  // --- Low-density operators.

  void trail(int node) {
    int unit = -1, from = -1;
    for (const int tensor : at(node).inputs) {
      const int maker = m_edges.producer[index(tensor)];
      if (maker < 0 || m_unit_of[index(maker)] < 0) continue;
      if (is_sum(maker)) {
        stop_at_sum(maker, node);
        continue;
      }
      if (from < 0 || m_place[index(maker)] > m_place[index(from)]) {
        unit = m_unit_of[index(maker)];
        from = maker;
      }
    }
    if (unit < 0) return;
    if (at(from).layer != at(node).layer) {
      return stop(from, node,
                  fmt::format("{} belongs to another layer, and a pipeline stage may end between", at(node).name));
    }
    if (const auto later = needs_later(node, unit)) {
      return stop(
          from, node,
          fmt::format("{} also needs {}, which in turn needs what the unit makes", at(node).name, at(*later).name));
    }
    try_join(node, unit, from, node);
  }

  void lead(int node) {
    int unit = -1, to = -1;
    for (const int tensor : at(node).outputs) {
      for (const int consumer : m_edges.consumers[index(tensor)]) {
        const int its = m_unit_of[index(consumer)];
        if (is_sum(consumer)) return stop_at_sum(node, consumer);
        if (at(consumer).layer != at(node).layer) {
          return stop(
              node, consumer,
              fmt::format("{} belongs to another layer, and a pipeline stage may end between", at(consumer).name));
        }
        if (its < 0) {
          return stop(node, consumer,
                      fmt::format("{} is in no unit with an operator of high density", at(consumer).name));
        }
        if (unit >= 0 && its != unit) {
          return stop(
              node, consumer,
              fmt::format("the data dependence is not closed: {} is read in more than one unit", tensor_name(tensor)));
        }
        unit = its;
        to = consumer;
      }
    }
    if (to >= 0) try_join(node, unit, node, to);
  }

  void stay_alone(int node) {
    begin_unit(node);
    for (const int tensor : at(node).inputs) {
      const int maker = m_edges.producer[index(tensor)];
      if (maker < 0 || m_stops.contains({maker, node})) continue;
      stop(maker, node, fmt::format("{} is in no unit with an operator of high density", at(node).name));
    }
  }

  void try_join(int node, int unit, int from, int to) {
    join(node, unit);
    if (const std::string why = shortage(unit); !why.empty()) {
      leave(node, unit);
      stop(from, to, why);
    }
  }

  // --- Capacity.

  /// Values in GSM have their places while the unit runs, and the largest working set lies behind them: so much is
  /// enough however long each is needed.
  struct Holding {
    std::vector<int> on_chip, in_gsm;
    std::int64_t most = 0;   // bytes of GSM
    std::int64_t works = 0;  // of them for the node that needs most
    int busiest = -1;        // which that is
  };

  std::vector<int> sorted(int unit) const {
    std::vector<int> nodes = m_members[index(unit)];
    std::sort(nodes.begin(), nodes.end(), [&](int a, int b) { return m_place[index(a)] < m_place[index(b)]; });
    return nodes;
  }
  bool closed(int tensor, int unit) const {
    const auto& consumers = m_edges.consumers[index(tensor)];
    return is_activation(tensor) && !consumers.empty() &&
           std::all_of(consumers.begin(), consumers.end(), [&](int c) { return m_unit_of[index(c)] == unit; });
  }
  /// Whether only blocks of the tensor are there at a time: it passes between operators on rows, or is finished in AM.
  bool blocked(int tensor) const {
    const int maker = m_edges.producer[index(tensor)];
    if (maker < 0) return false;
    const auto& consumers = m_edges.consumers[index(tensor)];
    const auto on_rows = [&](int node) { return !is_high(node) || !has_weights(node); };
    if (consumers.size() == 1 && is_high(maker) && m_target.has_epilogue(at(maker), at(consumers.front()))) return true;
    return on_rows(maker) && std::all_of(consumers.begin(), consumers.end(), [&](int c) {
             return on_rows(c) && (!m_target.one_kernel || m_target.one_kernel(at(maker), at(c)));
           });
  }

  Holding holding(int unit) const {
    Holding result;
    std::int64_t held = 0;
    for (const int node : sorted(unit)) {
      for (const int tensor : at(node).outputs) {
        if (!closed(tensor, unit)) continue;
        result.on_chip.push_back(tensor);
        if (m_blocked[index(tensor)]) continue;
        result.in_gsm.push_back(tensor);
        held += (bytes(tensor) + sim::Arena::k_alignment - 1) / sim::Arena::k_alignment * sim::Arena::k_alignment;
      }
      const std::int64_t works = m_works[index(node)].gsm;
      if (works > result.works || result.busiest < 0) {
        result.works = works;
        result.busiest = node;
      }
    }
    result.most = held + result.works;
    return result;
  }

  std::string shortage(int unit) const {
    const OnChip& has = m_target.capacity;
    const Holding now = holding(unit);
    if (now.most > has.gsm) {
      std::string text = fmt::format("{} bytes of GSM for {} at work", now.works, at(now.busiest).name);
      for (const int tensor : now.in_gsm) text += fmt::format(", {} for {}", bytes(tensor), tensor_name(tensor));
      return fmt::format("on-chip memory: {}; {} available", text, has.gsm);
    }
    for (const int node : m_members[index(unit)]) {
      const OnChip& needs = m_works[index(node)];
      if (needs.am > has.am)
        return fmt::format("on-chip memory: {} needs {} bytes of AM, {} available", at(node).name, needs.am, has.am);
      if (needs.sm > has.sm)
        return fmt::format("on-chip memory: {} needs {} bytes of SM, {} available", at(node).name, needs.sm, has.sm);
    }
    return "";
  }

  // --- The result: units by their last node, since whoever reads what a unit makes comes behind all of it.

  Fusion result() const {
    const std::vector<int> ordered = order_units();
    Fusion fusion;
    fusion.unit_of.resize(m_graph.nodes.size());
    for (const int unit : ordered) {
      FusionUnit made;
      made.nodes = sorted(unit);
      const Holding holds = holding(unit);
      made.on_chip = holds.on_chip;
      made.in_gsm = holds.in_gsm;
      made.gsm_bytes = holds.most;
      for (const int node : made.nodes) {
        fusion.unit_of[index(node)] = static_cast<int>(fusion.units.size());
        made.high = made.high || is_high(node);
      }
      fusion.units.push_back(std::move(made));
    }
    for (const auto& [key, one] : m_stops) {
      const int from = fusion.unit_of[index(one.from)], to = fusion.unit_of[index(one.to)];
      if (from == to) continue;  // joined otherwise, later
      fusion.units[index(from)].stops.push_back(one);
      fusion.units[index(to)].stops.push_back(one);
    }
    return fusion;
  }

  std::vector<int> order_units() const {
    std::vector<std::set<int>> followers(m_members.size());
    std::vector<int> missing(m_members.size());
    for (const int node : m_order) {
      const int unit = m_unit_of[index(node)];
      for (const int tensor : at(node).inputs) {
        const int maker = m_edges.producer[index(tensor)];
        if (maker < 0 || m_unit_of[index(maker)] == unit) continue;
        if (followers[index(m_unit_of[index(maker)])].insert(unit).second) ++missing[index(unit)];
      }
    }
    std::set<std::pair<int, int>> ready;  // place of the first node, unit
    const auto add = [&](int unit) { ready.emplace(m_place[index(sorted(unit).front())], unit); };
    for (std::size_t unit = 0; unit < m_members.size(); ++unit) {
      if (missing[unit] == 0) add(static_cast<int>(unit));
    }
    std::vector<int> result;
    while (!ready.empty()) {
      const int unit = ready.begin()->second;
      ready.erase(ready.begin());
      result.push_back(unit);
      for (const int follower : followers[index(unit)]) {
        if (--missing[index(follower)] == 0) add(follower);
      }
    }
    return result;
  }

  const Graph& m_graph;
  const FusionTarget& m_target;
  const std::vector<int> m_order;
  std::vector<int> m_place;  // of a node in m_order
  const models::GraphEdges m_edges;
  std::vector<OnChip> m_works;  // of each node
  std::vector<bool> m_blocked;  // of each tensor
  std::vector<int> m_unit_of;
  std::vector<std::vector<int>> m_members;
  std::map<std::pair<int, int>, FusionStop> m_stops;
};

}  // namespace

Fusion fuse(const models::Graph& graph, const FusionTarget& target) { return Fuser(graph, target).run(); }

Fusion no_fusion(const models::Graph& graph) {
  Fusion fusion;
  fusion.unit_of.resize(graph.nodes.size());
  for (const int node : graph.order()) {
    fusion.unit_of[static_cast<std::size_t>(node)] = static_cast<int>(fusion.units.size());
    FusionUnit unit;
    unit.nodes = {node};
    unit.high = graph.density(graph.nodes[static_cast<std::size_t>(node)]) >= k_high_density;
    fusion.units.push_back(unit);
  }
  return fusion;
}

}  // namespace mtsim::runtime
