// SPDX-License-Identifier: Apache-2.0
// The operator graph of one iteration of a model (paper, Fig. 4): what is computed from what, with the work of each
// operator, and nothing of how or where.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/config.h"
#include "models/model_part.h"

namespace mtsim::models {

enum class TensorKind : std::uint8_t {
  activation,
  received,  // an activation that another cluster made
  weight,
  cache,
  ids
};
/// What moves with the tokens, wherever it was made.
inline bool is_activation(TensorKind kind) { return kind == TensorKind::activation || kind == TensorKind::received; }

struct GraphTensor {
  std::string name;  // "layers.3.gate"
  TensorKind kind = TensorKind::activation;
  std::int64_t rows = 0, columns = 0;

  double elements() const { return static_cast<double>(rows) * static_cast<double>(columns); }
};

enum class NodeKind : std::uint8_t {
  gather,  // rows of the embedding
  select,  // some rows of an activation
  rmsnorm,
  linear,
  bias,
  rope,
  kv_append,  // K and V of the new tokens into the cache
  scores,     // Q K^T
  scale,
  mask,
  softmax,
  values,  // weights times V
  add,
  silu,
  mul,
  all_reduce,  // the sum over a tensor-parallel group, of which each cluster has a part
  other,       // of a graph that is no Llama's
};
std::string_view to_string(NodeKind kind);

struct Node {
  std::string name;  // "layers.3.scores"
  NodeKind kind = NodeKind::other;
  int layer = -1;            // -1: before the first or behind the last
  std::vector<int> inputs;   // tensors
  std::vector<int> outputs;  // tensors, each of one node
  double macs = 0;           // multiply-accumulates; an operation on an element counts as one
};

struct Graph {
  std::vector<GraphTensor> tensors;
  std::vector<Node> nodes;  // in any order

  int add(GraphTensor tensor);
  int add(Node node);
  /// Nodes so that each comes behind those it needs; of those that might come next the first one. Throws ModelError for
  /// a cycle, a tensor that two nodes make, an activation that none makes, and indices that there are not.
  std::vector<int> order() const;

  /// Arithmetic density as fusion sees it: multiply-accumulates per element of the activations a node reads and writes.
  /// Weights and caches come from the DDR whatever is fused. Infinite where there are no activations.
  double density(const Node& node) const;
  /// Multiply-accumulates per byte of all it reads and writes, at so many bytes an element: its place in the roofline.
  double intensity(const Node& node, std::int64_t bytes_per_element) const;
};

/// Who makes and who reads each tensor of a graph. Throws ModelError for a tensor that two nodes make, and for indices
/// that there are not.
struct GraphEdges {
  explicit GraphEdges(const Graph& graph);

  std::vector<int> producer;                // of each tensor; -1: no node
  std::vector<std::vector<int>> consumers;  // of each tensor, by index; a node that reads it twice is there twice
};

/// New tokens of one sequence.
struct SequenceStep {
  std::int64_t tokens = 0;   // new
  std::int64_t context = 0;  // already in the cache
};

/// One iteration: linear layers work on the tokens of all sequences together, attention sequence by sequence.
struct IterationShape {
  std::vector<SequenceStep> sequences;
  bool all_logits = false;  // of each token, else of the last one of each sequence

  std::int64_t tokens() const;
  std::int64_t logits_rows() const;
  /// Scores of one head, without those that the causal mask hides.
  double scores() const;
};

/// Of the layers of `part`, and of its share of them. `whole`: the model's. A part without embedding begins with the
/// tensor "stream" of kind received; the result of the last node is logits, or the stream for the next stage.
Graph llama_graph(const LlamaConfig& whole, const IterationShape& iteration, const ModelPart& part);
Graph llama_graph(const LlamaConfig& whole, const IterationShape& iteration);

}  // namespace mtsim::models
