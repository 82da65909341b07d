// SPDX-License-Identifier: Apache-2.0
// Which operators fusion puts together, why it stops, and that what it gives can run: of Llama layers and of graphs
// that are none.
#include "runtime/graph/fusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <set>

#include "models/error.h"
#include "models/graph.h"
#include "runtime/lower/operator_plans.h"
#include "tests/runtime/support.h"

using namespace mtsim;
using namespace mtsim::runtime;
using namespace mtsim::runtime::test;
using models::Graph;
using models::GraphEdges;
using models::GraphTensor;
using models::Node;
using models::NodeKind;
using models::TensorKind;

namespace {

using Names = std::set<std::string>;

std::size_t index(int i) { return static_cast<std::size_t>(i); }

Names node_names(const Graph& graph, const std::vector<int>& nodes) {
  Names names;
  for (const int node : nodes) names.insert(graph.nodes[index(node)].name);
  return names;
}
Names tensor_names(const Graph& graph, const std::vector<int>& tensors) {
  Names names;
  for (const int tensor : tensors) names.insert(graph.tensors[index(tensor)].name);
  return names;
}
std::set<Names> units(const Graph& graph, const Fusion& fusion) {
  std::set<Names> all;
  for (const FusionUnit& unit : fusion.units) all.insert(node_names(graph, unit.nodes));
  return all;
}
const FusionUnit& unit_with(const Graph& graph, const Fusion& fusion, const std::string& node) {
  for (const FusionUnit& unit : fusion.units) {
    if (node_names(graph, unit.nodes).contains(node)) return unit;
  }
  FAIL("no unit has " << node);
  return fusion.units.front();
}
/// Why units end between two nodes; "" when none says.
std::string why(const Graph& graph, const Fusion& fusion, const std::string& from, const std::string& to) {
  for (const FusionUnit& unit : fusion.units) {
    for (const FusionStop& stop : unit.stops) {
      if (graph.nodes[index(stop.from)].name == from && graph.nodes[index(stop.to)].name == to) return stop.why;
    }
  }
  return "";
}

models::LlamaConfig llama_7b() {
  models::LlamaConfig c = small_model().config;
  c.name = "7B";
  c.hidden_size = 4096;
  c.intermediate_size = 11008;
  c.layers = 3;
  c.heads = c.kv_heads = 32;
  c.head_dim = 128;
  c.vocab_size = 32000;
  c.max_positions = 4096;
  return c;
}

/// Of a Llama on the shipped machine.
struct Planned {
  Graph graph;
  BatchShape batch;
  ExecutionPlan plan = ExecutionPlan::named("a2");
  models::LlamaConfig config;
  std::unique_ptr<OperatorPlans> plans;

  Planned(const models::LlamaConfig& llama, const std::vector<models::SequenceStep>& sequences)
      : batch(BatchShape::of(sequences, 4096)), config(llama) {
    graph = models::llama_graph(config, {sequences, false});
    plan_again();
  }
  void plan_again() {
    plans = std::make_unique<OperatorPlans>(graph, config, kernels::DType::f16,
                                            1 / std::sqrt(static_cast<float>(config.head_dim)), batch, plan, machine());
  }
  Planned(const Planned&) = delete;
  Planned& operator=(const Planned&) = delete;
  Fusion fuse() const { return runtime::fuse(graph, plans->fusion_target()); }
};

/// Fig. 4 (regions 1, 3, 4, 5 and 2), and what is before and behind the layers.
std::set<Names> regions_of_fig_4(std::int64_t layers) {
  std::set<Names> all{{"embed"}};
  for (std::int64_t i = 0; i < layers; ++i) {
    for (const Names& region : std::vector<Names>{{"attention_norm", "q", "k", "v", "rope_q", "rope_k", "kv_append"},
                                                  {"scores", "scale", "mask", "softmax", "values"},
                                                  {"o", "add_attention", "ffn_norm"},
                                                  {"gate", "silu", "up", "mul"},
                                                  {"down", "add_ffn"}}) {
      Names named;
      for (const std::string& name : region) named.insert(fmt::format("layers.{}.{}", i, name));
      all.insert(named);
    }
  }
  return all;
}

/// A target where everything fits and nothing has an epilogue.
FusionTarget roomy(std::int64_t gsm = std::int64_t{1} << 40) {
  FusionTarget target;
  target.capacity = {1 << 20, 1 << 20, gsm};
  target.bytes_per_element = 4;
  target.working_set = [](const Node&) { return OnChip{}; };
  target.has_epilogue = [](const Node&, const Node&) { return false; };
  return target;
}

/// Builds graphs that are no Llama's. Tensors are [rows, columns] = [64, 64] but for weights.
struct Sketch {
  Graph graph;
  int tensor(const std::string& name, TensorKind kind = TensorKind::activation) {
    return graph.add(GraphTensor{name, kind, 64, 64});
  }
  /// Its result is named like it. 64 columns a weight: a density of 32.
  int linear(const std::string& name, std::vector<int> inputs, int layer = 0) {
    inputs.push_back(tensor(name + ".weight", TensorKind::weight));
    return op(name, NodeKind::linear, std::move(inputs), 64 * 64 * 64, layer);
  }
  int low(const std::string& name, std::vector<int> inputs, int layer = 0, NodeKind kind = NodeKind::other) {
    return op(name, kind, std::move(inputs), 64 * 64, layer);
  }
  int op(const std::string& name, NodeKind kind, std::vector<int> inputs, double macs, int layer) {
    const int result = tensor(name);
    graph.add(Node{name, kind, layer, std::move(inputs), {result}, macs});
    return result;
  }
  int source() { return op("source", NodeKind::gather, {tensor("table", TensorKind::weight)}, 0, -1); }
};

/// Nodes and tensors in another order.
Graph shuffled(const Graph& graph, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int> new_place(graph.tensors.size());
  std::iota(new_place.begin(), new_place.end(), 0);
  std::shuffle(new_place.begin(), new_place.end(), random);
  Graph result;
  result.tensors.resize(graph.tensors.size());
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) result.tensors[index(new_place[i])] = graph.tensors[i];
  result.nodes = graph.nodes;
  for (Node& node : result.nodes) {
    for (auto* list : {&node.inputs, &node.outputs}) {
      for (int& tensor : *list) tensor = new_place[index(tensor)];
    }
  }
  std::shuffle(result.nodes.begin(), result.nodes.end(), random);
  return result;
}

/// Each node once, a unit's nodes behind what they need, units behind what they need; convex then, since a path that
/// leaves a unit and comes back would need a unit both before and behind it.
void check_order(const Graph& graph, const Fusion& fusion) {
  std::vector<int> place(graph.nodes.size(), -1);
  int next = 0;
  for (std::size_t unit = 0; unit < fusion.units.size(); ++unit) {
    for (const int node : fusion.units[unit].nodes) {
      REQUIRE(place[index(node)] == -1);
      place[index(node)] = next++;
      REQUIRE(fusion.unit_of[index(node)] == static_cast<int>(unit));
    }
  }
  REQUIRE(next == static_cast<int>(graph.nodes.size()));
  const GraphEdges edges(graph);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const int tensor : graph.nodes[i].inputs) {
      const int maker = edges.producer[index(tensor)];
      if (maker < 0) continue;
      INFO(graph.nodes[i].name << " needs " << graph.nodes[index(maker)].name);
      REQUIRE(place[index(maker)] < place[i]);
    }
  }
}

/// Bytes of GSM a unit holds at most, found anew: what is made and read in the unit alone, from its maker to its last
/// reader, and the working set of whoever is at work.
std::int64_t gsm_of(const Graph& graph, const FusionUnit& unit, const FusionTarget& target) {
  std::int64_t most = 0;
  for (std::size_t now = 0; now < unit.nodes.size(); ++now) {
    std::int64_t held = target.working_set(graph.nodes[index(unit.nodes[now])]).gsm;
    for (const int tensor : unit.in_gsm) {
      bool made = false, wanted = false;
      for (std::size_t i = 0; i <= now; ++i) {
        const auto& outputs = graph.nodes[index(unit.nodes[i])].outputs;
        made = made || std::find(outputs.begin(), outputs.end(), tensor) != outputs.end();
      }
      for (std::size_t i = now; i < unit.nodes.size(); ++i) {
        const auto& inputs = graph.nodes[index(unit.nodes[i])].inputs;
        wanted = wanted || std::find(inputs.begin(), inputs.end(), tensor) != inputs.end();
      }
      if (made && wanted)
        held += static_cast<std::int64_t>(graph.tensors[index(tensor)].elements()) * target.bytes_per_element;
    }
    most = std::max(most, held);
  }
  return most;
}

}  // namespace

TEST_CASE("the units of a decoded token are the regions of Fig. 4, and what they make stays on chip", "[fusion]") {
  const std::int64_t sequences = GENERATE(1, 16);
  const Planned planned(llama_7b(), std::vector<models::SequenceStep>(index(static_cast<int>(sequences)), {1, 511}));
  const Fusion fusion = planned.fuse();
  check_order(planned.graph, fusion);
  std::set<Names> expected = regions_of_fig_4(3);
  expected.insert({"final_norm", "head"});
  CHECK(units(planned.graph, fusion) == expected);
  // What other units read does not stay: Q, the cache, what attention gives, the residual stream, ffn_norm, mul.
  Names stays;
  for (const FusionUnit& unit : fusion.units) {
    const Names its = tensor_names(planned.graph, unit.on_chip);
    stays.insert(its.begin(), its.end());
  }
  Names should{"final_norm"};
  for (int i = 0; i < 3; ++i) {
    for (const char* name : {"attention_norm", "q", "k", "v", "rope_k", "scores", "scale", "mask", "softmax", "o",
                             "gate", "silu", "up", "down"})
      should.insert(fmt::format("layers.{}.{}", i, name));
  }
  CHECK(stays == should);
}

TEST_CASE("the order of nodes and tensors in a graph changes no unit", "[fusion]") {
  Planned planned(llama_7b(), {{1, 100}, {7, 0}});
  const std::set<Names> expected = units(planned.graph, planned.fuse());
  const Graph original = planned.graph;
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    planned.graph = shuffled(original, seed);
    planned.plan_again();
    const Fusion fusion = planned.fuse();
    check_order(planned.graph, fusion);
    CHECK(units(planned.graph, fusion) == expected);
  }
}

TEST_CASE("a prefill that the GSM does not hold is fused less, and says with which bytes", "[fusion]") {
  const Planned planned(llama_7b(), {{2048, 0}});
  const Fusion fusion = planned.fuse();
  check_order(planned.graph, fusion);
  const FusionTarget target = planned.plans->fusion_target();
  for (const FusionUnit& unit : fusion.units) {
    if (unit.nodes.size() > 1) CHECK(unit.gsm_bytes <= target.capacity.gsm);
  }
  // [2048, 11008] of FP16.
  const std::string reason = why(planned.graph, fusion, "layers.0.gate", "layers.0.silu") +
                             why(planned.graph, fusion, "layers.0.silu", "layers.0.mul") +
                             why(planned.graph, fusion, "layers.0.up", "layers.0.mul");
  CHECK_THAT(reason, Catch::Contains("on-chip memory: "));
  CHECK_THAT(reason, Catch::Contains("45088768 for layers.0."));
  CHECK_THAT(reason, Catch::Contains("; 6291456 available"));
  // Attention goes by blocks of rows whatever their number.
  const Names attention = node_names(planned.graph, unit_with(planned.graph, fusion, "layers.1.scores").nodes);
  for (const char* name : {"scale", "mask", "softmax", "values"})
    CHECK(attention.contains(fmt::format("layers.1.{}", name)));
}

TEST_CASE("without fusion each node is a unit", "[fusion]") {
  const Planned planned(llama_7b(), {{5, 0}});
  const Fusion fusion = no_fusion(planned.graph);
  check_order(planned.graph, fusion);
  CHECK(fusion.units.size() == planned.graph.nodes.size());
  CHECK(unit_with(planned.graph, fusion, "layers.0.q").high);
  CHECK_FALSE(unit_with(planned.graph, fusion, "layers.0.add_ffn").high);
}

TEST_CASE("units do not cross from layer to layer", "[fusion]") {
  Sketch s;
  const int a = s.linear("a", {s.source()}, 0);
  s.low("b", {a}, 1);
  const Fusion fusion = fuse(s.graph, roomy());
  CHECK(units(s.graph, fusion) == std::set<Names>{{"source"}, {"a"}, {"b"}});
  CHECK(why(s.graph, fusion, "a", "b") == "b belongs to another layer, and a pipeline stage may end between");
}

TEST_CASE("operators nobody has heard of fuse by their density, or it is said why not", "[fusion]") {
  Sketch s;
  const int x = s.source();
  const int before = s.low("before", {x});
  const int high = s.linear("high", {before});
  const int behind = s.low("behind", {high});
  const int further = s.low("further", {behind, high});
  s.linear("second", {further});
  s.low("aside", {x});
  const Fusion fusion = fuse(s.graph, roomy());
  check_order(s.graph, fusion);
  CHECK(units(s.graph, fusion) ==
        std::set<Names>{{"source"}, {"before", "high", "behind", "further"}, {"second"}, {"aside"}});
  CHECK_THAT(why(s.graph, fusion, "further", "second"),
             Catch::StartsWith("second is of high density and begins a unit: "));
  CHECK(tensor_names(s.graph, unit_with(s.graph, fusion, "high").on_chip) == Names{"before", "high", "behind"});
}

TEST_CASE("an unknown operator in a Llama layer fuses with what it stands behind", "[fusion]") {
  Planned planned(llama_7b(), {{1, 40}});
  // A gate on the result of down, before the residual is added.
  for (Node& node : planned.graph.nodes) {
    if (node.name != "layers.1.add_ffn") continue;
    const int down = node.inputs[1];
    node.inputs[1] = planned.graph.add(GraphTensor{"layers.1.gate_of_layer", TensorKind::activation, 1, 4096});
    planned.graph.add(Node{"layers.1.gate_of_layer",
                           NodeKind::other,
                           1,
                           {down},
                           {static_cast<int>(planned.graph.tensors.size()) - 1},
                           4096});
    break;
  }
  planned.plan_again();
  const Fusion fusion = planned.fuse();
  check_order(planned.graph, fusion);
  std::set<Names> expected = regions_of_fig_4(3);
  expected.erase({"layers.1.down", "layers.1.add_ffn"});
  expected.insert({"layers.1.down", "layers.1.gate_of_layer", "layers.1.add_ffn"});
  expected.insert({"final_norm", "head"});
  CHECK(units(planned.graph, fusion) == expected);
}

TEST_CASE("a value that two units read leaves the chip, and its maker's unit says so", "[fusion]") {
  Sketch s;
  const int x = s.source();
  const int shared = s.low("shared", {x});
  const int a = s.linear("a", {shared}), other = s.low("other", {x});
  s.linear("b", {other, shared, a});
  s.linear("c", {s.low("apart", {shared, other})});
  const Fusion fusion = fuse(s.graph, roomy());
  check_order(s.graph, fusion);
  CHECK(unit_with(s.graph, fusion, "shared").nodes.size() == 1);
  const FusionUnit& unit = unit_with(s.graph, fusion, "shared");
  REQUIRE(!unit.stops.empty());
  bool said = false;
  for (const FusionStop& stop : unit.stops)
    said = said || stop.why.find("shared is read in more than one unit") != std::string::npos;
  CHECK(said);
}

TEST_CASE("a path that leaves a unit and comes back is refused", "[fusion]") {
  Sketch s;
  const int a = s.linear("a", {s.source()});
  const int b = s.linear("b", {s.low("before_b", {a})});
  s.low("sum", {a, b});  // the latest maker is b: it goes there
  s.low("late", {b, a});
  const Fusion fusion = fuse(s.graph, roomy());
  check_order(s.graph, fusion);
  CHECK(unit_with(s.graph, fusion, "sum").nodes == unit_with(s.graph, fusion, "b").nodes);
  // A node whose latest maker is in a unit from which another of its inputs comes too, by way of a third.
  Sketch t;
  const int y = t.source();
  const int first = t.linear("first", {y}, 0);
  const int away = t.low("away", {first}, 1);  // of another layer: not in the unit
  const int sibling = t.linear("sibling", {y}, 0);
  t.low("back", {away, sibling}, 0);
  const Fusion refused = fuse(t.graph, roomy());
  check_order(t.graph, refused);
  CHECK(units(t.graph, refused) == std::set<Names>{{"source"}, {"first", "sibling"}, {"away"}, {"back"}});
  CHECK(why(t.graph, refused, "sibling", "back") == "back also needs away, which in turn needs what the unit makes");
}

TEST_CASE("two units of siblings that need each other's results are not both made", "[fusion]") {
  // a, b read x and c, d read y; c also reads what a makes, and b what d makes.
  Sketch s;
  const int x = s.source(), y = s.op("source_2", NodeKind::gather, {s.tensor("table_2", TensorKind::weight)}, 0, -1);
  const int a = s.linear("a", {x}), d = s.linear("d", {y});
  s.linear("c", {y, a});
  s.linear("b", {x, d});
  const Fusion fusion = fuse(s.graph, roomy());
  check_order(s.graph, fusion);
}

TEST_CASE("graphs that are none are refused with names", "[fusion]") {
  const auto complaint = [](const Graph& graph) -> std::string {
    try {
      fuse(graph, roomy());
    } catch (const models::ModelError& error) {
      return error.what();
    }
    return "no complaint";
  };
  Sketch s;
  const int x = s.source();
  const int a = s.low("a", {x}), b = s.low("b", {a});
  CHECK(complaint(s.graph) == "no complaint");
  Graph twice = s.graph;
  twice.nodes.push_back(Node{"again", NodeKind::other, 0, {x}, {b}, 1});
  CHECK(complaint(twice) == "graph: b is made by b and by again");
  Graph cycle = s.graph;
  cycle.nodes[1].inputs.push_back(b);
  CHECK(complaint(cycle) == "graph: a needs, through others, what it makes itself");
  Graph unmade = s.graph;
  unmade.nodes[2].inputs.push_back(unmade.add(GraphTensor{"nothing", TensorKind::activation, 1, 1}));
  CHECK(complaint(unmade) == "graph: b reads nothing, which no operator makes");
  Graph outside = s.graph;
  outside.nodes[2].inputs.push_back(99);
  CHECK_THAT(complaint(outside), Catch::Contains("b names tensor 99, there are"));
  outside.nodes[2].inputs.back() = -1;
  CHECK_THAT(complaint(outside), Catch::Contains("b names tensor -1, there are"));
}

TEST_CASE("of 300 random graphs no unit needs more than the chip has, each node is in one, and all can run",
          "[fusion]") {
  std::size_t fused = 0, stopped_by_memory = 0, largest = 0;
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&](int end) { return static_cast<int>(random() % static_cast<std::uint32_t>(end)); };
    Graph graph;
    std::vector<int> made;
    const int count = 3 + below(28), layers = 1 + below(3);
    std::vector<OnChip> works;
    for (int i = 0; i < count; ++i) {
      Node node{fmt::format("n{}", i), NodeKind::other, i * layers / count, {}, {}, 0};
      for (int inputs = made.empty() ? 0 : 1 + below(3); inputs > 0; --inputs)
        node.inputs.push_back(made[index(std::max(0, static_cast<int>(made.size()) - 1 - below(6)))]);
      const bool high = below(3) == 0;
      if (node.inputs.empty() || (high && below(3) > 0))
        node.inputs.push_back(graph.add(GraphTensor{fmt::format("w{}", i), TensorKind::weight, 8, 8}));
      double elements = 0;
      for (const int t : node.inputs) elements += graph.tensors[index(t)].elements();
      for (int outputs = below(6) == 0 ? 2 : 1; outputs > 0; --outputs) {
        const int t = graph.add(
            GraphTensor{fmt::format("t{}_{}", i, outputs), TensorKind::activation, 1 + below(40), 1 + below(40)});
        node.outputs.push_back(t);
        elements += graph.tensors[index(t)].elements();
      }
      node.macs = elements * (high ? 40 : 1);
      for (const int t : node.outputs) made.push_back(t);
      node.layer = i * layers / count;
      node.name = fmt::format("n{}", i);
      graph.add(node);
      works.push_back({below(100), below(100), below(2000)});
    }
    FusionTarget target;
    // The kernel of a node alone always fits.
    target.capacity = {100, 100, 2000 + below(6000)};
    target.bytes_per_element = 4;
    target.working_set = [&](const Node& node) {
      return works[static_cast<std::size_t>(std::stoi(node.name.substr(1)))];
    };
    target.has_epilogue = [](const Node& high, const Node& low) {
      return (high.name.size() + low.name.size()) % 2 == 0;
    };
    graph = shuffled(graph, seed);
    const Fusion fusion = fuse(graph, target);
    check_order(graph, fusion);
    const GraphEdges edges(graph);
    for (const FusionUnit& unit : fusion.units) {
      const std::int64_t bytes = gsm_of(graph, unit, target);
      REQUIRE(unit.gsm_bytes >= bytes);
      REQUIRE(unit.gsm_bytes <= target.capacity.gsm);
      fused += unit.nodes.size() > 1 ? 1 : 0;
      largest = std::max(largest, unit.nodes.size());
      for (const int t : unit.on_chip) {  // nobody outside reads it
        for (const int consumer : edges.consumers[index(t)]) {
          REQUIRE(std::find(unit.nodes.begin(), unit.nodes.end(), consumer) != unit.nodes.end());
        }
      }
      for (const FusionStop& stop : unit.stops) {
        REQUIRE(fusion.unit_of[index(stop.from)] != fusion.unit_of[index(stop.to)]);
        REQUIRE(!stop.why.empty());
        stopped_by_memory += stop.why.find("on-chip memory") != std::string::npos ? 1 : 0;
      }
    }
    // A unit of low density alone says why it is alone, if it stands beside anything.
    for (const FusionUnit& unit : fusion.units) {
      if (unit.high || unit.nodes.size() > 1) continue;
      const Node& node = graph.nodes[index(unit.nodes.front())];
      bool beside = false;
      for (const int t : node.inputs) beside = beside || edges.producer[index(t)] >= 0;
      for (const int t : node.outputs) beside = beside || !edges.consumers[index(t)].empty();
      INFO(node.name);
      if (beside) REQUIRE(!unit.stops.empty());
    }
  }
  CHECK(fused > 500);  // the property is not empty
  CHECK(stopped_by_memory > 100);
  CHECK(largest >= 6);
}
