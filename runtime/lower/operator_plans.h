// SPDX-License-Identifier: Apache-2.0
// What the operator library makes of the nodes of a graph: plans of its kernels, and what they take on chip.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/gemm/gemm.h"
#include "models/graph.h"
#include "runtime/graph/fusion.h"
#include "runtime/plan.h"
#include "sim/config/machine.h"

namespace mtsim::runtime {

/// The new tokens of a batch, as all plans see them.
struct BatchShape {
  std::vector<models::SequenceStep> sequences;
  std::vector<std::int64_t> positions;  // of each token, sequence after sequence
  std::int64_t kv_block = 0;

  static BatchShape of(const std::vector<models::SequenceStep>& sequences, std::int64_t kv_block);
};

class OperatorPlans {
 public:
  OperatorPlans(const models::Graph& graph, const models::LlamaConfig& config, kernels::DType dtype,
                float attention_scale, const BatchShape& batch, const ExecutionPlan& plan,
                const sim::MachineConfig& machine);

  /// [rows, in] times the node's weights, with the rotation of `rope` behind it; without a plan when the two do not go
  /// together.
  std::optional<kernels::GemmPlan> linear(const models::Node& node, const models::Node* rope = nullptr) const;
  /// Of rows of the head, whose weights are [out, in]: in parts of at most so many rows as fit.
  kernels::GemmPlan head(const models::Node& node, std::int64_t rows) const;
  /// Most rows of head() at a time.
  std::int64_t head_rows(const models::Node& node) const;
  kernels::AttentionPlan attention(const models::SequenceStep& sequence) const;
  /// One token each of the first `requests` sequences.
  kernels::AttentionPlan decode(std::int64_t requests) const;

  /// Sequences with one new token, which come first: their heads are dealt to the cores in one launch. None in the
  /// plans before that (III-C3), where attention goes head by head.
  std::int64_t decoding() const;
  FusionTarget fusion_target() const;

  const models::GraphTensor& input(const models::Node& node) const {
    return m_graph.tensors[static_cast<std::size_t>(node.inputs.front())];
  }
  const models::GraphTensor& output(const models::Node& node) const {
    return m_graph.tensors[static_cast<std::size_t>(node.outputs.front())];
  }
  bool is_head(const models::Node& node) const { return node.kind == models::NodeKind::linear && node.layer < 0; }

 private:
  OnChip working_set(const models::Node& node) const;
  kernels::AttentionShape attention_shape() const;

  const models::Graph& m_graph;
  const models::LlamaConfig& m_config;
  kernels::DType m_dtype;
  float m_scale;
  const BatchShape& m_batch;
  const ExecutionPlan& m_plan;
  const sim::MachineConfig& m_machine;
};

}  // namespace mtsim::runtime
