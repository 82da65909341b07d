// SPDX-License-Identifier: Apache-2.0
#include "runtime/lower/operator_plans.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "kernels/add/add.h"
#include "kernels/library.h"
#include "kernels/rmsnorm/rmsnorm.h"
#include "kernels/silu_mul/silu_mul.h"
#include "runtime/weights/device_model.h"

namespace mtsim::runtime {

using models::Node;
using models::NodeKind;

BatchShape BatchShape::of(const std::vector<models::SequenceStep>& sequences, std::int64_t kv_block) {
  BatchShape batch{sequences, {}, kv_block};
  for (const models::SequenceStep& sequence : sequences) {
    for (std::int64_t i = 0; i < sequence.tokens; ++i) batch.positions.push_back(sequence.context + i);
  }
  return batch;
}

OperatorPlans::OperatorPlans(const models::Graph& graph, const models::LlamaConfig& config, kernels::DType dtype,
                             float attention_scale, const BatchShape& batch, const ExecutionPlan& plan,
                             const sim::MachineConfig& machine)
    : m_graph(graph),
      m_config(config),
      m_dtype(dtype),
      m_scale(attention_scale),
      m_batch(batch),
      m_plan(plan),
      m_machine(machine) {}

std::optional<kernels::GemmPlan> OperatorPlans::linear(const Node& node, const Node* rope) const {
  const models::GraphTensor &x = input(node), &y = output(node);
  kernels::GemmChoice choice;
  if (rope != nullptr)
    choice.epilogue = kernels::RopeEpilogue{rope_pairs(m_config), m_config.head_dim, 0, {0, m_batch.positions}};
  try {
    return kernels::plan_gemm({x.rows, y.columns, x.columns}, m_dtype, kernels::GemmTiles::of(m_dtype, choice), choice,
                              m_machine);
  } catch (const kernels::KernelError&) {
    if (rope == nullptr) throw;
    return std::nullopt;
  }
}

kernels::GemmPlan OperatorPlans::head(const Node& node, std::int64_t rows) const {
  const models::GraphTensor &x = input(node), &y = output(node);
  const kernels::GemmChoice choice{.weights = kernels::GemmWeights::out_in};
  return kernels::plan_gemm({rows, y.columns, x.columns}, m_dtype, kernels::GemmTiles::of(m_dtype, choice), choice,
                            m_machine);
}

std::int64_t OperatorPlans::head_rows(const Node& node) const {
  for (std::int64_t rows = input(node).rows;; rows = (rows + 1) / 2) {
    try {
      head(node, rows);
      return rows;
    } catch (const kernels::KernelError&) {
      if (rows == 1) throw;
    }
  }
}

kernels::AttentionShape OperatorPlans::attention_shape() const {
  kernels::AttentionShape shape;
  shape.heads = m_config.heads;
  shape.kv_heads = m_config.kv_heads;
  shape.head_dim = m_config.head_dim;
  shape.dtype = m_dtype;
  shape.scale = m_scale;
  shape.kv_block = m_batch.kv_block;
  return shape;
}

kernels::AttentionShape OperatorPlans::attention_shape(const models::SequenceStep& sequence) const {
  kernels::AttentionShape shape = attention_shape();
  shape.seq_q = sequence.tokens;
  shape.seq_k = sequence.context + sequence.tokens;
  shape.causal = true;
  return shape;
}

kernels::AttentionPlan OperatorPlans::attention(const models::SequenceStep& sequence) const {
  return kernels::plan_attention(attention_shape(sequence), {}, {m_plan.attention, kernels::AttentionSequence::best},
                                 m_machine);
}

kernels::AttentionPlan OperatorPlans::decode(std::int64_t requests) const {
  kernels::AttentionShape shape = attention_shape();
  shape.batch = requests;
  shape.seq_q = 1;
  for (std::int64_t i = 0; i < requests; ++i)
    shape.seq_k = std::max(shape.seq_k, m_batch.sequences[static_cast<std::size_t>(i)].context + 1);
  return kernels::plan_attention_decode(shape, {}, m_machine);
}

std::int64_t OperatorPlans::decoding() const {
  if (m_plan.attention == kernels::AttentionVariant::unfused) return 0;
  const auto& all = m_batch.sequences;
  return std::find_if(all.begin(), all.end(), [](const auto& s) { return s.tokens != 1; }) - all.begin();
}

OnChip OperatorPlans::working_set(const Node& node) const {
  const auto of_stream = [](const kernels::StreamPlan& plan) { return OnChip{0, plan.am_bytes, 0}; };
  switch (node.kind) {
    case NodeKind::linear: {
      const kernels::GemmPlan plan = is_head(node) ? head(node, head_rows(node)) : *linear(node);
      return {plan.sm_bytes, plan.am_bytes, plan.gsm_bytes};
    }
    case NodeKind::scores:
    case NodeKind::values: {
      OnChip most;
      const auto take = [&](const kernels::AttentionPlan& plan) {
        most = {std::max(most.sm, plan.sm_bytes), std::max(most.am, plan.am_bytes), std::max(most.gsm, plan.gsm_bytes)};
      };
      const std::int64_t requests = decoding();
      if (requests > 0) take(decode(requests));
      for (std::size_t i = static_cast<std::size_t>(requests); i < m_batch.sequences.size(); ++i)
        take(attention(m_batch.sequences[i]));
      return most;
    }
    case NodeKind::rmsnorm: {
      kernels::RmsNormShape shape{input(node).rows, input(node).columns, m_dtype};
      return of_stream(kernels::plan_rmsnorm(shape, 0, m_machine).stream);
    }
    case NodeKind::add:
    case NodeKind::all_reduce:
    case NodeKind::mul:
    case NodeKind::silu:
      return of_stream(kernels::plan_add(output(node).rows * output(node).columns, m_dtype, 0, m_machine));
    default: return {};
  }
}

FusionTarget OperatorPlans::fusion_target() const {
  FusionTarget target;
  target.capacity = {m_machine.core.sm_bytes, m_machine.core.am_bytes, m_machine.cluster.gsm_bytes};
  target.bytes_per_element = bytes_of(m_dtype);
  target.working_set = [this](const Node& node) { return working_set(node); };
  target.one_kernel = [](const Node& maker, const Node& reader) {
    constexpr std::pair<NodeKind, NodeKind> together[] = {
        {NodeKind::scores, NodeKind::scale},   {NodeKind::scale, NodeKind::mask}, {NodeKind::mask, NodeKind::softmax},
        {NodeKind::softmax, NodeKind::values}, {NodeKind::silu, NodeKind::mul},   {NodeKind::add, NodeKind::rmsnorm}};
    return std::find(std::begin(together), std::end(together), std::pair(maker.kind, reader.kind)) !=
           std::end(together);
  };
  target.has_epilogue = [this](const Node& high, const Node& low) {
    return high.kind == NodeKind::linear && low.kind == NodeKind::rope && linear(high, &low).has_value();
  };
  return target;
}

}  // namespace mtsim::runtime
