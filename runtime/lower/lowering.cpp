// SPDX-License-Identifier: Apache-2.0
#include "runtime/lower/lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "kernels/add/add.h"
#include "kernels/bias/bias.h"
#include "kernels/gather/gather.h"
#include "kernels/kv_append/kv_append.h"
#include "kernels/move/move.h"
#include "kernels/rmsnorm/rmsnorm.h"
#include "kernels/rope/rope.h"
#include "kernels/silu_mul/silu_mul.h"
#include "runtime/error.h"
#include "runtime/lower/arena.h"

namespace mtsim::runtime {
namespace {

using kernels::DType;
using models::Graph;
using models::Node;
using models::NodeKind;
using models::TensorKind;

constexpr std::int64_t k_alignment = 256;  // of values in DDR and GSM, as of ddr_malloc

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
        m_model(model),
        m_plans(plans),
        m_plan(plan),
        m_batch(batch),
        m_input(input),
        m_bytes(bytes_of(model.dtype())),
        m_places(graph.tensors.size()),
        m_grouped(graph.nodes.size()) {
    m_producer.assign(graph.tensors.size(), -1);
    m_consumers.resize(graph.tensors.size());
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      for (const int tensor : graph.nodes[i].outputs) m_producer[index(tensor)] = static_cast<int>(i);
      for (const int tensor : graph.nodes[i].inputs) m_consumers[index(tensor)].push_back(static_cast<int>(i));
    }
  }

  LoweredIteration run() {
    make_groups();
    place_values();
    m_kept = m_cluster.allocations();
    for (const Group& group : m_groups) {
      if (group.unit != m_unit) enter_unit(group.unit);
      m_result.steps.push_back(build(group));
      free_scratch();
    }
    m_result.logits = place(m_graph.nodes[index(m_groups.back().nodes.back())].outputs.front());
    return std::move(m_result);
  }

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  const Node& node(int i) const { return m_graph.nodes[index(i)]; }
  const Node& first(const Group& group) const { return node(group.nodes.front()); }
  const Node& last(const Group& group) const { return node(group.nodes.back()); }
  const models::GraphTensor& tensor(int i) const { return m_graph.tensors[index(i)]; }
  sim::Pointer place(int tensor) const { return m_places[index(tensor)]; }
  sim::Pointer weight(const Node& node) const { return m_model.weight(tensor(node.inputs[1]).name); }

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
      case NodeKind::kv_append: return {i};
      default: refuse(i, "the library has no operator of this kind");
    }
  }
  [[noreturn]] void refuse(int i, const char* why) const {
    throw RuntimeError(fmt::format("{} ({}) cannot run: {}", node(i).name, to_string(node(i).kind), why));
  }
  bool same_unit(int a, int b) const { return m_fusion.unit_of[index(a)] == m_fusion.unit_of[index(b)]; }
  std::optional<int> consumer(int i, NodeKind kind) const {
    for (const int c : m_consumers[index(node(i).outputs.front())]) {
      if (node(c).kind == kind) return c;
    }
    return std::nullopt;
  }
  std::optional<int> only_consumer(int i, NodeKind kind) const {
    return m_consumers[index(node(i).outputs.front())].size() == 1 ? consumer(i, kind) : std::nullopt;
  }
  int require_consumer(int i, NodeKind kind) const {
    const auto found = only_consumer(i, kind);
    if (!found) refuse(i, "the library has it only together with what follows in a Llama layer");
    return *found;
  }
  int require_producer(int i, NodeKind kind) const {
    for (const int input : node(i).inputs) {
      const int maker = m_producer[index(input)];
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
          bool inside = !m_consumers[index(t)].empty();
          for (const int c : m_consumers[index(t)]) {
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
    const ArenaPlan arena = plan_arena(lives, k_alignment);
    m_result.activation_bytes = arena.bytes;
    const sim::Pointer base = m_cluster.ddr_malloc(std::max<std::int64_t>(arena.bytes, 1));
    for (std::size_t i = 0; i < in_ddr.size(); ++i) m_places[index(in_ddr[i])] = base + arena.offsets[i];
    for (std::size_t unit = 0; unit < in_gsm.size(); ++unit) {
      const ArenaPlan plan = plan_arena(gsm_lives[unit], k_alignment);
      m_gsm_of_unit[unit] = plan.bytes;
      m_result.gsm_bytes = std::max(m_result.gsm_bytes, plan.bytes);
      for (std::size_t i = 0; i < in_gsm[unit].size(); ++i)
        m_places[index(in_gsm[unit][i])] = {sim::Space::gsm, -1, static_cast<std::uint64_t>(plan.offsets[i])};
    }
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

  OperatorStep build(const Group& group) {
    OperatorStep step;
    step.name = first(group).name;
    step.layer = last(group).layer;
    step.unit = group.unit;
    for (const int i : group.nodes) {
      const NodeKind kind = node(i).kind;
      if (kind == NodeKind::linear || kind == NodeKind::scores || kind == NodeKind::values) step.macs += node(i).macs;
    }
    switch (first(group).kind) {
      case NodeKind::gather: gather(group, step); break;
      case NodeKind::select: select(group, step); break;
      case NodeKind::rmsnorm: rmsnorm(group, step); break;
      case NodeKind::linear: m_plans.is_head(first(group)) ? head(group, step) : linear(group, step); break;
      case NodeKind::bias: bias(group, step); break;
      case NodeKind::rope: rope(group, step); break;
      case NodeKind::kv_append: kv_append(group, step); break;
      case NodeKind::scores: attention(group, step); break;
      case NodeKind::add: add(group, step); break;
      default: silu_mul(group, step); break;
    }
    return step;
  }

  void gather(const Group& group, OperatorStep& step) {
    step.kernel = "gather";
    const Node& n = first(group);
    step.programs.push_back(kernels::gather(m_cluster, m_model.config().hidden_size * m_bytes,
                                            m_model.config().vocab_size,
                                            {weight(n), place(n.outputs.front()), m_input.ids}));
  }

  void select(const Group& group, OperatorStep& step) {
    step.kernel = "select";
    const Node& n = first(group);
    const std::int64_t bytes = m_model.config().hidden_size * m_bytes;
    std::vector<kernels::RowsMove> moves;
    for (std::size_t i = 0; i < m_input.logits_rows.size(); ++i) {
      moves.push_back({place(n.inputs.front()) + m_input.logits_rows[i] * bytes,
                       {1, bytes, 0},
                       place(n.outputs.front()) + static_cast<std::int64_t>(i) * bytes,
                       {1, bytes, 0}});
    }
    step.programs.push_back(kernels::move_rows(std::move(moves)));
  }

  kernels::RmsNormShape norm_shape(const Node& n) const {
    const models::GraphTensor& x = m_plans.input(n);
    return {x.rows, x.columns, m_model.dtype(), DType::f32, static_cast<float>(m_model.config().rms_norm_eps)};
  }
  void rmsnorm(const Group& group, OperatorStep& step) {
    step.kernel = "rmsnorm";
    const Node& n = first(group);
    step.programs.push_back(kernels::rmsnorm(m_cluster, kernels::plan_rmsnorm(norm_shape(n), 0, m_cluster.machine()),
                                             {place(n.inputs[0]), weight(n), place(n.outputs[0])}));
  }

  void linear(const Group& group, OperatorStep& step) {
    const Node& n = first(group);
    const Node* rotation = group.nodes.size() > 1 ? &last(group) : nullptr;
    const kernels::GemmPlan plan = *m_plans.linear(n, rotation);
    step.kernel = fmt::format("gemm {}{}", plan.dataflow == kernels::GemmDataflow::small_m ? "small_m" : "large_m",
                              rotation == nullptr ? "" : " + rope");
    kernels::GemmOperands operands{place(n.inputs[0]), weight(n), place(last(group).outputs.front())};
    if (rotation != nullptr)
      operands.frequencies = m_model.frequencies(kernels::gemm_frequencies(plan, m_model.inv_freq()));
    step.programs.push_back(kernels::gemm_program(m_cluster, plan, operands));
  }

  /// In parts of as many rows as the kernel for [out, in] takes.
  void head(const Group& group, OperatorStep& step) {
    step.kernel = "gemm small_m, W as [out, in]";
    const Node& n = first(group);
    const models::GraphTensor &x = m_plans.input(n), &y = m_plans.output(n);
    const std::int64_t most = m_plans.head_rows(n);
    for (std::int64_t row = 0; row < x.rows; row += most) {
      const kernels::GemmPlan plan = m_plans.head(n, std::min(most, x.rows - row));
      step.programs.push_back(kernels::gemm_program(m_cluster, plan,
                                                    {place(n.inputs[0]) + row * x.columns * m_bytes, weight(n),
                                                     place(n.outputs[0]) + row * y.columns * m_bytes}));
    }
  }

  void bias(const Group& group, OperatorStep& step) {
    step.kernel = "bias";
    const Node& n = first(group);
    const models::GraphTensor& x = m_plans.input(n);
    const kernels::StreamPlan plan = kernels::plan_bias(x.rows, x.columns, m_model.dtype(), 0, m_cluster.machine());
    step.programs.push_back(
        kernels::bias(m_cluster, plan, m_model.dtype(), {place(n.inputs[0]), weight(n), place(n.outputs[0])}));
  }

  void rope(const Group& group, OperatorStep& step) {
    step.kernel = "rope";
    const Node& n = first(group);
    const models::GraphTensor& x = m_plans.input(n);
    const auto& config = m_model.config();
    const auto pairs =
        config.rope_pairs == models::RopePairs::half ? kernels::RopePairs::half : kernels::RopePairs::interleaved;
    const kernels::RopePlan plan = kernels::plan_rope({x.rows, x.columns / config.head_dim, config.head_dim}, pairs,
                                                      m_model.dtype(), {0, m_batch.positions}, 0, m_cluster.machine());
    step.programs.push_back(kernels::rope(
        m_cluster, plan,
        {place(n.inputs[0]), m_model.frequencies(plan.layout.frequencies(m_model.inv_freq())), place(n.outputs[0])}));
  }

  void kv_append(const Group& group, OperatorStep& step) {
    step.kernel = "kv_append";
    const Node& n = first(group);
    const auto& config = m_model.config();
    const kernels::KvAppendShape shape{config.kv_heads, config.head_dim, m_batch.kv_block, m_model.dtype()};
    std::vector<kernels::KvAppend> appends;
    std::int64_t row = 0;
    for (std::size_t i = 0; i < m_batch.sequences.size(); ++i) {
      const auto [tokens, context] = m_batch.sequences[i];
      const std::int64_t offset = row * shape.row() * m_bytes;
      appends.push_back(
          {context, tokens, place(n.inputs[0]) + offset, place(n.inputs[1]) + offset, m_input.blocks(i, n.layer)});
      row += tokens;
    }
    step.programs.push_back(kernels::kv_append(m_cluster, shape, appends));
  }

  /// Sequences with one new token in one launch, the others one by one.
  void attention(const Group& group, OperatorStep& step) {
    const Node& n = first(group);
    step.name = n.layer < 0 ? "attention" : fmt::format("layers.{}.attention", n.layer);
    const sim::Pointer q = place(n.inputs[0]), o = place(last(group).outputs[0]);
    const std::int64_t row_bytes = m_model.config().q_width() * m_bytes;
    const std::int64_t requests = m_plans.decoding();
    if (requests > 0) {
      step.kernel = "attention decode";
      std::vector<kernels::AttentionCache> caches;
      for (std::size_t i = 0; i < static_cast<std::size_t>(requests); ++i)
        caches.push_back({m_batch.sequences[i].context + 1, {}, {}, m_input.blocks(i, n.layer)});
      step.programs.push_back(kernels::attention_decode(m_cluster, m_plans.decode(requests), q, o, caches));
      free_scratch();
    }
    std::int64_t row = requests;
    for (auto i = static_cast<std::size_t>(requests); i < m_batch.sequences.size(); ++i) {
      const kernels::AttentionPlan plan = m_plans.attention(m_batch.sequences[i]);
      step.kernel += fmt::format("{}attention {}", step.kernel.empty() ? "" : ", ", to_string(plan.choice.variant));
      for (sim::DspProgram& program : kernels::attention_programs(
               m_cluster, plan, {q + row * row_bytes, {}, {}, o + row * row_bytes, m_input.blocks(i, n.layer)}))
        step.programs.push_back(std::move(program));
      row += m_batch.sequences[i].tokens;
      free_scratch();
    }
  }

  void add(const Group& group, OperatorStep& step) {
    const Node& n = first(group);
    const models::GraphTensor& x = m_plans.input(n);
    if (group.nodes.size() > 1) {
      const Node& norm = last(group);
      step.kernel = "add + rmsnorm";
      step.programs.push_back(kernels::add_rmsnorm(
          m_cluster, kernels::plan_add_rmsnorm(norm_shape(norm), 0, m_cluster.machine()),
          {place(n.inputs[0]), place(n.inputs[1]), weight(norm), place(n.outputs[0]), place(norm.outputs[0])}));
      return;
    }
    step.kernel = "add";
    const kernels::StreamPlan plan = kernels::plan_add(x.rows * x.columns, m_model.dtype(), 0, m_cluster.machine());
    step.programs.push_back(
        kernels::add(m_cluster, plan, m_model.dtype(), {place(n.inputs[0]), place(n.inputs[1]), place(n.outputs[0])}));
  }

  void silu_mul(const Group& group, OperatorStep& step) {
    step.kernel = "silu_mul";
    step.name = fmt::format("layers.{}.silu_mul", first(group).layer);
    const Node &silu = first(group), &mul = last(group);
    const int gate = silu.inputs.front();
    const int up = mul.inputs[0] == silu.outputs.front() ? mul.inputs[1] : mul.inputs[0];
    const models::GraphTensor& x = tensor(gate);
    const kernels::StreamPlan plan =
        kernels::plan_silu_mul(x.rows * x.columns, m_model.dtype(), 0, m_cluster.machine());
    step.programs.push_back(
        kernels::silu_mul(m_cluster, plan, m_model.dtype(), {place(gate), place(up), place(mul.outputs[0])}));
  }

  sim::Cluster& m_cluster;
  const Graph& m_graph;
  const Fusion& m_fusion;
  const DeviceModel& m_model;
  const OperatorPlans& m_plans;
  const ExecutionPlan& m_plan;
  const BatchShape& m_batch;
  const BatchInput& m_input;
  const std::int64_t m_bytes;
  std::vector<int> m_producer;
  std::vector<std::vector<int>> m_consumers;
  std::vector<Group> m_groups;
  std::vector<sim::Pointer> m_places;  // of tensors
  std::vector<bool> m_grouped;
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
