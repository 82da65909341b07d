// SPDX-License-Identifier: Apache-2.0
#include "runtime/graph/fusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace mtsim::runtime {
namespace {

using models::Graph;
using models::Node;
using models::TensorKind;

class Fuser {
 public:
  Fuser(const Graph& graph, const FusionTarget& target)
      : m_graph(graph), m_target(target), m_order(graph.order()), m_unit_of(graph.nodes.size(), -1) {
    m_place.resize(graph.nodes.size());
    for (std::size_t i = 0; i < m_order.size(); ++i) m_place[index(m_order[i])] = static_cast<int>(i);
    m_producer.assign(graph.tensors.size(), -1);
    m_consumers.resize(graph.tensors.size());
    for (const int node : m_order) {
      for (const int tensor : at(node).outputs) m_producer[index(tensor)] = node;
      for (const int tensor : at(node).inputs) m_consumers[index(tensor)].push_back(node);
    }
  }

  Fusion run() {
    for (const int node : m_order) {
      if (is_high(node)) place_high(node);
    }
    for (const int node : m_order) {
      if (m_unit_of[index(node)] < 0) trail(node);
    }
    for (auto it = m_order.rbegin(); it != m_order.rend(); ++it) {
      if (m_unit_of[index(*it)] < 0) lead(*it);
    }
    for (const int node : m_order) {
      if (m_unit_of[index(node)] < 0) begin_unit(node);
    }
    return result();
  }

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  const Node& at(int node) const { return m_graph.nodes[index(node)]; }
  const std::string& tensor_name(int tensor) const { return m_graph.tensors[index(tensor)].name; }
  bool is_activation(int tensor) const { return m_graph.tensors[index(tensor)].kind == TensorKind::activation; }
  bool is_high(int node) const { return m_graph.density(at(node)) >= k_high_density; }
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
      const int maker = m_producer[index(tensor)];
      if (maker >= 0 && m_unit_of[index(maker)] != unit && reaches(unit, maker)) return maker;
    }
    return std::nullopt;
  }
  /// Whether `node` needs, through others, what the unit makes.
  bool reaches(int unit, int node) const {
    int first = m_place[index(m_members[index(unit)].front())];  // what comes before it needs nothing of the unit
    for (const int member : m_members[index(unit)]) first = std::min(first, m_place[index(member)]);
    std::vector<int> open{node};
    std::set<int> seen{node};
    while (!open.empty()) {
      const int now = open.back();
      open.pop_back();
      for (const int tensor : at(now).inputs) {
        const int maker = m_producer[index(tensor)];
        if (maker < 0) continue;
        if (m_unit_of[index(maker)] == unit) return true;
        if (m_place[index(maker)] > first && seen.insert(maker).second) open.push_back(maker);
      }
    }
    return false;
  }

  // --- High-density operators.

  void place_high(int node) {
    for (const int tensor : at(node).inputs) {
      if (!is_activation(tensor)) continue;
      if (has_weights(node)) {
        for (const int sibling : m_consumers[index(tensor)]) {
          const int unit = m_unit_of[index(sibling)];
          if (sibling == node || unit < 0 || !is_high(sibling) || !has_weights(sibling)) continue;
          if (at(sibling).layer == at(node).layer && !needs_later(node, unit)) return join(node, unit);
        }
      } else if (const std::optional<int> unit = row_unit(tensor)) {
        if (join_rows(node, tensor, *unit)) return;
      }
    }
    begin_unit(node);
    const char* why = has_weights(node) ? "it has weights, which would stream again for every block of rows"
                                        : "what it reads comes from one with weights, which has to be complete first";
    for (const int tensor : at(node).inputs) {
      if (is_activation(tensor) && m_producer[index(tensor)] >= 0)
        stop(m_producer[index(tensor)], node,
             fmt::format("{} is of high density and begins a unit: {}", at(node).name, why));
    }
  }
  /// The unit of the high-density operator without weights from which `tensor` comes through low ones alone.
  std::optional<int> row_unit(int tensor) const {
    const int maker = m_producer[index(tensor)];
    if (maker < 0 || m_consumers[index(tensor)].size() != 1) return std::nullopt;
    if (is_high(maker)) return has_weights(maker) ? std::nullopt : std::optional(m_unit_of[index(maker)]);
    for (const int input : at(maker).inputs) {
      if (is_activation(input)) {
        if (const auto unit = row_unit(input)) return unit;
      }
    }
    return std::nullopt;
  }
  /// With the low-density operators between, if all of them can.
  bool join_rows(int node, int tensor, int unit) {
    std::vector<int> chain{node};
    for (int maker = m_producer[index(tensor)]; m_unit_of[index(maker)] != unit;) {
      chain.push_back(maker);
      const auto& inputs = at(maker).inputs;
      maker = m_producer[index(*std::find_if(inputs.begin(), inputs.end(), [&](int input) {
        return is_activation(input) && row_unit(input) == std::optional(unit);
      }))];
    }
    for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
      const bool possible = m_unit_of[index(*it)] < 0 && at(*it).layer == at(node).layer && !needs_later(*it, unit);
      if (possible) join(*it, unit);
      if (possible && shortage(unit).empty()) continue;
      for (const int member : chain) leave(member, unit);
      return false;
    }
    return true;
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
      const int maker = m_producer[index(tensor)];
      if (maker < 0 || m_unit_of[index(maker)] < 0) continue;
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
    bool closed = true;
    for (const int tensor : at(node).outputs) {
      for (const int consumer : m_consumers[index(tensor)]) {
        const int its = m_unit_of[index(consumer)];
        if (unit >= 0 && its != unit) closed = false;
        unit = its;
        to = consumer;
        if (unit < 0) closed = false;
      }
    }
    if (to < 0) return;
    if (at(to).layer != at(node).layer) {
      return stop(node, to,
                  fmt::format("{} belongs to another layer, and a pipeline stage may end between", at(to).name));
    }
    if (!closed) {
      return stop(node, to,
                  fmt::format("the data dependence is not closed: {} is read in more than one unit",
                              tensor_name(at(node).outputs.front())));
    }
    try_join(node, unit, node, to);
  }

  void try_join(int node, int unit, int from, int to) {
    join(node, unit);
    if (const std::string why = shortage(unit); !why.empty()) {
      leave(node, unit);
      stop(from, to, why);
    }
  }

  // --- Capacity.

  struct Holding {
    std::vector<int> on_chip, in_gsm;
    std::int64_t most = 0;  // bytes of GSM
    int busiest = -1;       // node at which
    std::vector<int> held;  // tensors in GSM then
  };

  std::vector<int> sorted(int unit) const {
    std::vector<int> nodes = m_members[index(unit)];
    std::sort(nodes.begin(), nodes.end(), [&](int a, int b) { return m_place[index(a)] < m_place[index(b)]; });
    return nodes;
  }
  bool closed(int tensor, int unit) const {
    const auto& consumers = m_consumers[index(tensor)];
    return is_activation(tensor) && !consumers.empty() &&
           std::all_of(consumers.begin(), consumers.end(), [&](int c) { return m_unit_of[index(c)] == unit; });
  }
  /// Whether only blocks of the tensor are there at a time: it passes between operators on rows, or is finished in AM.
  bool blocked(int tensor) const {
    const int maker = m_producer[index(tensor)];
    const auto& consumers = m_consumers[index(tensor)];
    const auto on_rows = [&](int node) { return !is_high(node) || !has_weights(node); };
    if (consumers.size() == 1 && is_high(maker) && m_target.has_epilogue(at(maker), at(consumers.front()))) return true;
    return on_rows(maker) && std::all_of(consumers.begin(), consumers.end(), on_rows);
  }

  Holding holding(int unit) const {
    Holding result;
    const std::vector<int> nodes = sorted(unit);
    std::map<int, int> last_use;  // of tensors in GSM
    std::vector<int> live;
    for (const int node : nodes) {
      for (const int tensor : at(node).outputs) {
        if (!closed(tensor, unit)) continue;
        result.on_chip.push_back(tensor);
        if (blocked(tensor)) continue;
        result.in_gsm.push_back(tensor);
        live.push_back(tensor);
        for (const int consumer : m_consumers[index(tensor)])
          last_use[tensor] = std::max(last_use[tensor], m_place[index(consumer)]);
      }
      std::int64_t now = m_target.working_set(at(node)).gsm;
      for (const int tensor : live) now += bytes(tensor);
      if (now > result.most || result.busiest < 0) {
        result.most = now;
        result.busiest = node;
        result.held = live;
      }
      live.erase(std::remove_if(live.begin(), live.end(), [&](int t) { return last_use[t] <= m_place[index(node)]; }),
                 live.end());
    }
    return result;
  }

  std::string shortage(int unit) const {
    const OnChip& has = m_target.capacity;
    const Holding now = holding(unit);
    if (now.most > has.gsm) {
      std::string text = fmt::format("{} bytes of GSM for {} at work", m_target.working_set(at(now.busiest)).gsm,
                                     at(now.busiest).name);
      for (const int tensor : now.held) text += fmt::format(", {} for {}", bytes(tensor), tensor_name(tensor));
      return fmt::format("on-chip memory: {}; {} available", text, has.gsm);
    }
    for (const int node : m_members[index(unit)]) {
      const OnChip needs = m_target.working_set(at(node));
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
        const int maker = m_producer[index(tensor)];
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
  std::vector<int> m_producer;
  std::vector<std::vector<int>> m_consumers;
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
