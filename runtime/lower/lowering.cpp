// SPDX-License-Identifier: Apache-2.0
#include "runtime/lower/lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "runtime/error.h"
#include "runtime/lower/arena.h"
#include "runtime/lower/library.h"
#include "sim/arena.h"

namespace mtsim::runtime {
namespace {

using models::Graph;
using models::Node;
using models::NodeKind;
using models::TensorKind;

/// Nodes that one operator of the library computes, and the unit it is in.
struct Group {
  std::vector<int> nodes;  // in order; the last one's result is the operator's
  int unit = 0;
};

class Lowering {
 public:
  Lowering(sim::Cluster& cluster, const Graph& graph, const Fusion& fusion, const DeviceModel& model,
           const OperatorPlans& plans, const ExecutionPlan& plan, const BatchShape& batch, const BatchInput& input)
      : m_cluster(cluster),
        m_graph(graph),
        m_fusion(fusion),
        m_plans(plans),
        m_part(model.part()),
        m_library(Library::of(plan.operators,
                              {cluster, model, plans, batch, input, [this](int tensor) { return place(tensor); }})),
        m_bytes(bytes_of(model.dtype())),
        m_places(graph.tensors.size()),
        m_grouped(graph.nodes.size()),
        m_edges(graph) {}

  LoweredIteration run() {
    make_groups();
    place_values();
    m_library->prepare();
    m_result.host_work = m_library->host_work();
    m_kept = m_cluster.allocations();
    for (std::size_t t = 0; t < m_graph.tensors.size(); ++t) {
      if (m_graph.tensors[t].kind == TensorKind::received) m_result.stream = m_places[t];
    }
    for (std::size_t g = 0; g < m_groups.size(); ++g) {
      if (m_groups[g].unit != m_unit) enter_unit(m_groups[g].unit);
      m_result.steps.push_back(build(g));
      free_scratch();
    }
    m_result.result = place(m_graph.nodes[index(m_groups.back().nodes.back())].outputs.front());
    return std::move(m_result);
  }

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  const Node& node(int i) const { return m_graph.nodes[index(i)]; }
  const Node& first(const Group& group) const { return node(group.nodes.front()); }
  const Node& last(const Group& group) const { return node(group.nodes.back()); }
  const models::GraphTensor& tensor(int i) const { return m_graph.tensors[index(i)]; }
  sim::Pointer place(int tensor) const { return m_places[index(tensor)]; }

  // --- Which nodes one operator takes.

  void make_groups() {
    for (std::size_t unit = 0; unit < m_fusion.units.size(); ++unit) {
      for (const int i : m_fusion.units[unit].nodes) {
        if (m_grouped[index(i)]) continue;
        Group group{members(i), static_cast<int>(unit)};
        if (group.nodes.empty()) continue;  // SiLU: comes with its product
        for (const int member : group.nodes) m_grouped[index(member)] = true;
        m_groups.push_back(std::move(group));
      }
    }
  }

  std::vector<int> members(int i) const {
    switch (node(i).kind) {
      case NodeKind::linear: {
        const auto rope = only_consumer(i, NodeKind::rope);
        if (rope && same_unit(i, *rope) && m_plans.linear(node(i), &node(*rope))) return {i, *rope};
        return {i};
      }
      case NodeKind::add: {
        const auto norm = consumer(i, NodeKind::rmsnorm);
        if (norm && same_unit(i, *norm) && !m_grouped[index(*norm)]) return {i, *norm};
        return {i};
      }
      case NodeKind::scores: {  // one operator of the library, fused or not
        std::vector<int> group{i};
        for (const NodeKind kind : {NodeKind::scale, NodeKind::mask, NodeKind::softmax, NodeKind::values})
          group.push_back(require_consumer(group.back(), kind));
        return group;
      }
      case NodeKind::silu: require_consumer(i, NodeKind::mul); return {};
      case NodeKind::mul: return {require_producer(i, NodeKind::silu), i};
      case NodeKind::gather:
      case NodeKind::select:
      case NodeKind::rmsnorm:
      case NodeKind::bias:
      case NodeKind::rope:
      case NodeKind::all_reduce:
      case NodeKind::kv_append: return {i};
      default: refuse(i, "the library has no operator of this kind");
    }
  }
  [[noreturn]] void refuse(int i, const char* why) const {
    throw RuntimeError(fmt::format("{} ({}) cannot run: {}", node(i).name, to_string(node(i).kind), why));
  }
  bool same_unit(int a, int b) const { return m_fusion.unit_of[index(a)] == m_fusion.unit_of[index(b)]; }
  std::optional<int> consumer(int i, NodeKind kind) const {
    for (const int c : m_edges.consumers[index(node(i).outputs.front())]) {
      if (node(c).kind == kind) return c;
    }
    return std::nullopt;
  }
  std::optional<int> only_consumer(int i, NodeKind kind) const {
    return m_edges.consumers[index(node(i).outputs.front())].size() == 1 ? consumer(i, kind) : std::nullopt;
  }
  int require_consumer(int i, NodeKind kind) const {
    const auto found = only_consumer(i, kind);
    if (!found) refuse(i, "the library has it only together with what follows in a Llama layer");
    return *found;
  }
  int require_producer(int i, NodeKind kind) const {
    for (const int input : node(i).inputs) {
      const int maker = m_edges.producer[index(input)];
      if (maker >= 0 && node(maker).kind == kind) return maker;
    }
    refuse(i, "the library has it only together with what comes before in a Llama layer");
  }

  // --- Where values lie. What passes inside an operator has no place.

  void place_values() {
    std::vector<int> in_ddr;
    std::vector<Lifetime> lives;
    m_gsm_of_unit.resize(m_fusion.units.size());
    std::vector<std::vector<int>> in_gsm(m_fusion.units.size());
    std::vector<std::vector<Lifetime>> gsm_lives(m_fusion.units.size());
    std::vector<int> group_of(m_graph.nodes.size());
    for (std::size_t g = 0; g < m_groups.size(); ++g) {
      for (const int i : m_groups[g].nodes) group_of[index(i)] = static_cast<int>(g);
    }
    for (std::size_t g = 0; g < m_groups.size(); ++g) {
      const auto unit = static_cast<std::size_t>(m_groups[g].unit);
      const auto& gsm = m_fusion.units[unit].in_gsm;
      for (const int i : m_groups[g].nodes) {
        for (const int t : node(i).outputs) {
          if (tensor(t).kind != TensorKind::activation) continue;
          int end = static_cast<int>(g);
          bool inside = !m_edges.consumers[index(t)].empty();
          for (const int c : m_edges.consumers[index(t)]) {
            end = std::max(end, group_of[index(c)]);
            inside = inside && group_of[index(c)] == static_cast<int>(g);
          }
          if (inside) continue;
          const Lifetime life{static_cast<std::int64_t>(tensor(t).elements()) * m_bytes, static_cast<int>(g), end};
          const bool on_chip = std::find(gsm.begin(), gsm.end(), t) != gsm.end();
          (on_chip ? in_gsm[unit] : in_ddr).push_back(t);
          (on_chip ? gsm_lives[unit] : lives).push_back(life);
        }
      }
    }
    add_received(group_of, in_ddr, lives);
    const std::size_t values = lives.size();
    for (std::size_t g = 0; g < m_groups.size(); ++g) {  // what the others send for a sum, one behind the other
      if (first(m_groups[g]).kind == NodeKind::all_reduce)
        lives.push_back({(m_part.tp - 1) * part_pitch(m_groups[g]), static_cast<int>(g), static_cast<int>(g)});
    }
    const ArenaPlan arena = plan_arena(lives, sim::Arena::k_alignment);
    const sim::Pointer base = m_cluster.ddr_malloc(std::max<std::int64_t>(arena.bytes, 1));
    for (std::size_t i = 0; i < in_ddr.size(); ++i) m_places[index(in_ddr[i])] = base + arena.offsets[i];
    for (std::size_t i = values; i < lives.size(); ++i)
      m_parts[static_cast<std::size_t>(lives[i].first)] = base + arena.offsets[i];
    for (std::size_t unit = 0; unit < in_gsm.size(); ++unit) {
      const ArenaPlan plan = plan_arena(gsm_lives[unit], sim::Arena::k_alignment);
      m_gsm_of_unit[unit] = plan.bytes;
      m_result.gsm_bytes = std::max(m_result.gsm_bytes, plan.bytes);
      for (std::size_t i = 0; i < in_gsm[unit].size(); ++i)
        m_places[index(in_gsm[unit][i])] = {sim::Space::gsm, -1, static_cast<std::uint64_t>(plan.offsets[i])};
    }
  }

  /// What another stage sends is there from the beginning.
  void add_received(const std::vector<int>& group_of, std::vector<int>& in_ddr, std::vector<Lifetime>& lives) {
    for (std::size_t t = 0; t < m_graph.tensors.size(); ++t) {
      if (m_graph.tensors[t].kind != TensorKind::received) continue;
      int end = 0;
      for (const int c : m_edges.consumers[t]) end = std::max(end, group_of[index(c)]);
      in_ddr.push_back(static_cast<int>(t));
      lives.push_back({static_cast<std::int64_t>(m_graph.tensors[t].elements()) * m_bytes, 0, end});
    }
  }
  std::int64_t part_bytes(const Group& group) const {
    return static_cast<std::int64_t>(tensor(first(group).inputs.front()).elements()) * m_bytes;
  }
  std::int64_t part_pitch(const Group& group) const {
    return (part_bytes(group) + sim::Arena::k_alignment - 1) / sim::Arena::k_alignment * sim::Arena::k_alignment;
  }
  PartialSums partial_sums(const Group& group, std::size_t at) const {
    PartialSums sums{{}, part_bytes(group)};
    sim::Pointer others = m_parts.at(at);
    for (std::int64_t rank = 0; rank < m_part.tp; ++rank) {
      const bool is_own = rank == m_part.tp_rank;
      sums.parts.push_back(is_own ? place(first(group).inputs.front()) : others);
      if (!is_own) others = others + part_pitch(group);
    }
    return sums;
  }

  void enter_unit(int unit) {
    m_unit = unit;
    m_cluster.release(m_kept);
    if (m_gsm_of_unit[index(unit)] > 0) m_cluster.gsm_malloc(m_gsm_of_unit[index(unit)]);
    m_unit_gsm = m_cluster.allocations().gsm;
  }

  /// What a program works in is free for the next one.
  void free_scratch() { m_cluster.release({m_kept.ddr, m_unit_gsm}); }

  // --- Operators.

  OperatorStep build(std::size_t at) {
    const Group& group = m_groups[at];
    OperatorStep step;
    if (first(group).kind == NodeKind::all_reduce) step.sums = partial_sums(group, at);
    step.layer = last(group).layer;
    step.name = name_of(group);
    for (const int i : group.nodes) {
      const NodeKind kind = node(i).kind;
      if (kind == NodeKind::linear || kind == NodeKind::scores || kind == NodeKind::values) step.macs += node(i).macs;
    }
    OperatorPrograms made = step.sums ? m_library->sum(first(group), step.sums->parts) : programs(group);
    step.kernel = std::move(made.kernel);
    step.programs = std::move(made.programs);
    return step;
  }

  std::string name_of(const Group& group) const {
    const char* together = first(group).kind == NodeKind::scores ? "attention"
                           : first(group).kind == NodeKind::silu ? "silu_mul"
                                                                 : nullptr;
    if (together == nullptr) return first(group).name;
    const int layer = first(group).layer;
    return layer < 0 ? together : fmt::format("layers.{}.{}", layer, together);
  }

  OperatorPrograms programs(const Group& group) {
    const Node& n = first(group);
    const bool is_one = group.nodes.size() == 1;
    switch (n.kind) {
      case NodeKind::gather: return m_library->gather(n);
      case NodeKind::select: return m_library->select(n);
      case NodeKind::rmsnorm: return m_library->rmsnorm(n);
      case NodeKind::linear:
        if (m_plans.is_head(n)) return m_library->head(n);
        return is_one ? m_library->linear(n) : m_library->linear_rope(n, last(group));
      case NodeKind::bias: return m_library->bias(n);
      case NodeKind::rope: return m_library->rope(n);
      case NodeKind::kv_append: return m_library->kv_append(n);
      case NodeKind::scores: return m_library->attention(n, last(group));
      case NodeKind::add: return is_one ? m_library->add(n) : m_library->add_rmsnorm(n, last(group));
      default: return m_library->silu_mul(n, last(group));
    }
  }

  sim::Cluster& m_cluster;
  const Graph& m_graph;
  const Fusion& m_fusion;
  const OperatorPlans& m_plans;
  const models::ModelPart& m_part;
  const std::unique_ptr<Library> m_library;
  const std::int64_t m_bytes;
  std::vector<Group> m_groups;
  std::vector<sim::Pointer> m_places;           // of tensors
  std::map<std::size_t, sim::Pointer> m_parts;  // by group that sums: where the others' parts go
  std::vector<bool> m_grouped;
  const models::GraphEdges m_edges;
  std::vector<std::int64_t> m_gsm_of_unit;
  sim::Cluster::Allocations m_kept;  // operands of the iteration included
  int m_unit = -1;
  std::int64_t m_unit_gsm = 0;
  LoweredIteration m_result;
};

}  // namespace

LoweredIteration lower(sim::Cluster& cluster, const models::Graph& graph, const Fusion& fusion,
                       const DeviceModel& model, const OperatorPlans& plans, const ExecutionPlan& plan,
                       const BatchShape& batch, const BatchInput& input) {
  return Lowering(cluster, graph, fusion, model, plans, plan, batch, input).run();
}

}  // namespace mtsim::runtime
