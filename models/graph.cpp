// SPDX-License-Identifier: Apache-2.0
#include "models/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <queue>

#include "models/error.h"

namespace mtsim::models {

std::string_view to_string(NodeKind kind) {
  constexpr std::array<std::string_view, 17> names = {
      "gather", "select",  "rmsnorm", "linear", "bias", "rope", "kv_append",  "scores", "scale",
      "mask",   "softmax", "values",  "add",    "silu", "mul",  "all_reduce", "other"};
  return names[static_cast<std::size_t>(kind)];
}

int Graph::add(GraphTensor tensor) {
  tensors.push_back(std::move(tensor));
  return static_cast<int>(tensors.size()) - 1;
}

int Graph::add(Node node) {
  nodes.push_back(std::move(node));
  return static_cast<int>(nodes.size()) - 1;
}

GraphEdges::GraphEdges(const Graph& graph) : producer(graph.tensors.size(), -1), consumers(graph.tensors.size()) {
  const auto checked = [&](const Node& node, int tensor) {
    if (tensor < 0 || tensor >= static_cast<int>(graph.tensors.size()))
      throw ModelError(fmt::format("graph: {} names tensor {}, there are {}", node.name, tensor, graph.tensors.size()));
    return static_cast<std::size_t>(tensor);
  };
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    for (const int tensor : node.outputs) {
      int& maker = producer[checked(node, tensor)];
      if (maker >= 0) {
        throw ModelError(fmt::format("graph: {} is made by {} and by {}",
                                     graph.tensors[static_cast<std::size_t>(tensor)].name,
                                     graph.nodes[static_cast<std::size_t>(maker)].name, node.name));
      }
      maker = static_cast<int>(i);
    }
    for (const int tensor : node.inputs) consumers[checked(node, tensor)].push_back(static_cast<int>(i));
  }
}

std::vector<int> Graph::order() const {
  const GraphEdges edges(*this);
  std::vector<int> missing(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const int tensor : nodes[i].inputs) {
      const auto at = static_cast<std::size_t>(tensor);
      if (edges.producer[at] >= 0) {
        ++missing[i];
      } else if (tensors[at].kind == TensorKind::activation) {
        throw ModelError(fmt::format("graph: {} reads {}, which no operator makes", nodes[i].name, tensors[at].name));
      }
    }
  }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (missing[i] == 0) ready.push(static_cast<int>(i));
  }
  std::vector<int> result;
  while (!ready.empty()) {
    const int node = ready.top();
    ready.pop();
    result.push_back(node);
    for (const int tensor : nodes[static_cast<std::size_t>(node)].outputs) {
      for (const int follower : edges.consumers[static_cast<std::size_t>(tensor)]) {
        if (--missing[static_cast<std::size_t>(follower)] == 0) ready.push(follower);
      }
    }
  }
  if (result.size() != nodes.size()) {
    const auto stuck = std::find_if(missing.begin(), missing.end(), [](int count) { return count > 0; });
    throw ModelError(fmt::format("graph: {} needs, through others, what it makes itself",
                                 nodes[static_cast<std::size_t>(stuck - missing.begin())].name));
  }
  return result;
}

double Graph::density(const Node& node) const {
  double elements = 0;
  for (const auto* list : {&node.inputs, &node.outputs}) {
    for (const int tensor : *list) {
      const GraphTensor& t = tensors[static_cast<std::size_t>(tensor)];
      if (is_activation(t.kind)) elements += t.elements();
    }
  }
  return elements > 0 ? node.macs / elements : node.macs > 0 ? std::numeric_limits<double>::infinity() : 0;
}

double Graph::intensity(const Node& node, std::int64_t bytes_per_element) const {
  double elements = 0;
  for (const auto* list : {&node.inputs, &node.outputs}) {
    for (const int tensor : *list) elements += tensors[static_cast<std::size_t>(tensor)].elements();
  }
  return elements > 0 ? node.macs / (elements * static_cast<double>(bytes_per_element)) : 0;
}

std::int64_t IterationShape::tokens() const {
  std::int64_t sum = 0;
  for (const SequenceStep& sequence : sequences) sum += sequence.tokens;
  return sum;
}

std::int64_t IterationShape::logits_rows() const {
  return all_logits ? tokens() : static_cast<std::int64_t>(sequences.size());
}

double IterationShape::scores() const {
  double sum = 0;
  for (const SequenceStep& sequence : sequences)
    sum += static_cast<double>(sequence.tokens) *
           (static_cast<double>(sequence.context) + static_cast<double>(sequence.tokens + 1) / 2);
  return sum;
}

namespace {

/// Adds nodes with the names of one layer, or of none.
class Builder {
 public:
  Builder(Graph& graph, const LlamaConfig& whole, const IterationShape& iteration, const ModelPart& part)
      : m_graph(graph),
        m_part(part),
        m_config(part.config(whole)),
        m_head_rows(part.head_rows(whole)),
        m_iteration(iteration),
        m_tokens(iteration.tokens()) {}

  int embedding() {
    const int ids = m_graph.add(GraphTensor{"ids", TensorKind::ids, m_tokens, 1});
    const int table = m_graph.add(GraphTensor{"embedding", TensorKind::weight, m_tokens, m_config.hidden_size});
    return op(NodeKind::gather, "embed", {ids, table}, m_tokens, m_config.hidden_size, 0);
  }

  int stream() { return m_graph.add(GraphTensor{"stream", TensorKind::received, m_tokens, m_config.hidden_size}); }

  /// Returns the residual stream behind the layer.
  int layer(int index, int x) {
    m_layer = index;
    const LlamaConfig& c = m_config;
    const int normed = norm("attention_norm", x, m_tokens);
    int q = linear("q", normed, c.q_width(), c.qkv_bias);
    int k = linear("k", normed, c.kv_width(), c.qkv_bias);
    const int v = linear("v", normed, c.kv_width(), c.qkv_bias);
    q = op(NodeKind::rope, "rope_q", {q}, m_tokens, c.q_width(), 2);
    k = op(NodeKind::rope, "rope_k", {k}, m_tokens, c.kv_width(), 2);
    const int attended = attention(q, append(k, v));
    int o = sum("o_sum", linear("o", attended, c.hidden_size, false));
    if (c.o_bias) o = bias("o", o);
    x = op(NodeKind::add, "add_attention", {x, o}, m_tokens, c.hidden_size, 1);
    const int ffn_normed = norm("ffn_norm", x, m_tokens);
    const int gate = linear("gate", ffn_normed, c.intermediate_size, false);
    const int silu = op(NodeKind::silu, "silu", {gate}, m_tokens, c.intermediate_size, 4);
    const int up = linear("up", ffn_normed, c.intermediate_size, false);
    const int gated = op(NodeKind::mul, "mul", {silu, up}, m_tokens, c.intermediate_size, 1);
    const int down = sum("down_sum", linear("down", gated, c.hidden_size, false));
    return op(NodeKind::add, "add_ffn", {x, down}, m_tokens, c.hidden_size, 1);
  }

  void head(int x) {
    m_layer = -1;
    const std::int64_t rows = m_iteration.logits_rows();
    if (rows != m_tokens) x = op(NodeKind::select, "last_tokens", {x}, rows, m_config.hidden_size, 0);
    linear("head", norm("final_norm", x, rows), m_head_rows, false);
  }

 private:
  std::string name(std::string_view what) const {
    return m_layer < 0 ? std::string(what) : fmt::format("layers.{}.{}", m_layer, what);
  }
  int tensor(std::string_view what, TensorKind kind, std::int64_t rows, std::int64_t columns) {
    return m_graph.add(GraphTensor{name(what), kind, rows, columns});
  }
  /// An operator with one result [rows, columns] named like itself, of `work` operations an element of it.
  int op(NodeKind kind, std::string_view what, std::vector<int> inputs, std::int64_t rows, std::int64_t columns,
         double work) {
    const int result = tensor(what, TensorKind::activation, rows, columns);
    m_graph.add(Node{name(what), kind, m_layer, std::move(inputs), {result}, work * m_graph.tensors.back().elements()});
    return result;
  }
  int norm(std::string_view what, int x, std::int64_t rows) {
    const int weight = tensor(fmt::format("{}.weight", what), TensorKind::weight, 1, m_config.hidden_size);
    return op(NodeKind::rmsnorm, what, {x, weight}, rows, m_config.hidden_size, 2);
  }
  int linear(std::string_view what, int x, std::int64_t width, bool has_bias) {
    const GraphTensor input = m_graph.tensors[static_cast<std::size_t>(x)];
    const int weight = tensor(fmt::format("{}.weight", what), TensorKind::weight, width, input.columns);
    const int y = op(NodeKind::linear, what, {x, weight}, input.rows, width, static_cast<double>(input.columns));
    return has_bias ? bias(what, y) : y;
  }
  int bias(std::string_view what, int y) {
    const GraphTensor its = m_graph.tensors[static_cast<std::size_t>(y)];
    const int weight = tensor(fmt::format("{}.bias", what), TensorKind::weight, 1, its.columns);
    return op(NodeKind::bias, fmt::format("{}_bias", what), {y, weight}, its.rows, its.columns, 1);
  }
  /// Over the tensor-parallel group.
  int sum(std::string_view what, int part) {
    if (m_part.tp == 1) return part;
    return op(NodeKind::all_reduce, what, {part}, m_tokens, m_config.hidden_size, static_cast<double>(m_part.tp - 1));
  }
  /// The cache with the new tokens in it.
  int append(int k, int v) {
    std::int64_t positions = 0;
    for (const SequenceStep& sequence : m_iteration.sequences) positions += sequence.context + sequence.tokens;
    const int cache = tensor("cache", TensorKind::cache, positions, 2 * m_config.kv_width());
    m_graph.add(Node{name("kv_append"), NodeKind::kv_append, m_layer, {k, v}, {cache}, 0});
    return cache;
  }
  int attention(int q, int cache) {
    const double all = m_iteration.scores() * static_cast<double>(m_config.heads);
    const auto columns = static_cast<std::int64_t>(all) / std::max<std::int64_t>(m_tokens, 1);  // a token, on average
    const auto d = static_cast<double>(m_config.head_dim);
    int s = op(NodeKind::scores, "scores", {q, cache}, m_tokens, columns, d);
    s = op(NodeKind::scale, "scale", {s}, m_tokens, columns, 1);
    s = op(NodeKind::mask, "mask", {s}, m_tokens, columns, 1);
    s = op(NodeKind::softmax, "softmax", {s}, m_tokens, columns, 4);
    const int result = op(NodeKind::values, "values", {s, cache}, m_tokens, m_config.q_width(), 0);
    m_graph.nodes.back().macs = all * d;
    return result;
  }

  Graph& m_graph;
  const ModelPart& m_part;
  const LlamaConfig m_config;
  const std::int64_t m_head_rows;
  const IterationShape& m_iteration;
  const std::int64_t m_tokens;
  int m_layer = -1;
};

}  // namespace

Graph llama_graph(const LlamaConfig& whole, const IterationShape& iteration, const ModelPart& part) {
  Graph graph;
  Builder builder(graph, whole, iteration, part);
  int x = part.embedding ? builder.embedding() : builder.stream();
  for (std::int64_t layer = 0; layer < part.layers; ++layer)
    x = builder.layer(static_cast<int>(part.first_layer + layer), x);
  if (part.head) builder.head(x);
  return graph;
}

Graph llama_graph(const LlamaConfig& whole, const IterationShape& iteration) {
  return llama_graph(whole, iteration, ModelPart::whole(whole));
}

}  // namespace mtsim::models
