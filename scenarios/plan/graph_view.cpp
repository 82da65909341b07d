// SPDX-License-Identifier: Apache-2.0
#include "scenarios/plan/graph_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/config.h"
#include "models/graph.h"
#include "runtime/graph/fusion.h"
#include "runtime/lower/operator_plans.h"
#include "runtime/weights/device_model.h"
#include "scenarios/error.h"
#include "scenarios/report.h"
#include "scenarios/table.h"

namespace mtsim::scenarios {

namespace {

constexpr std::int64_t k_largest_batch = 1 << 16;

/// A unit and what stands around it, named.
class UnitView {
 public:
  UnitView(const models::Graph& graph, const runtime::FusionTarget& target, std::int64_t bytes)
      : m_graph(graph), m_target(target), m_bytes(bytes) {}

  Json json(const runtime::FusionUnit& unit) const {
    Json json = {{"operators", Json::array()},
                 {"on_chip", Json::array()},
                 {"gsm_bytes", unit.gsm_bytes},
                 {"stops", Json::array()}};
    for (const int i : unit.nodes) {
      const models::Node& node = m_graph.nodes[static_cast<std::size_t>(i)];
      const double density = m_graph.density(node);
      const runtime::OnChip works = m_target.working_set(node);
      json["operators"].push_back({{"name", node.name},
                                   {"kind", to_string(node.kind)},
                                   {"density", std::isfinite(density) ? Json(density) : Json(nullptr)},
                                   {"high", density >= runtime::k_high_density},
                                   {"macs", node.macs},
                                   {"macs_per_byte", m_graph.intensity(node, m_bytes)},
                                   {"sm_bytes", works.sm},
                                   {"am_bytes", works.am},
                                   {"gsm_bytes", works.gsm}});
    }
    for (const int t : unit.on_chip) {
      json["on_chip"].push_back(
          {{"tensor", name(t)}, {"bytes", bytes(t)}, {"where", in_gsm(unit, t) ? "gsm" : "blocks"}});
    }
    for (const runtime::FusionStop& stop : unit.stops)
      json["stops"].push_back({{"from", node_name(stop.from)}, {"to", node_name(stop.to)}, {"why", stop.why}});
    return json;
  }

  std::string text(const runtime::FusionUnit& unit, int number) const {
    std::string pattern;
    Table table({Align::left, Align::left, Align::right, Align::right, Align::right, Align::right, Align::right},
                {"operator", "density", "MACs/element", "MAC/B", "SM", "AM", "GSM"});
    for (const int i : unit.nodes) {
      const models::Node& node = m_graph.nodes[static_cast<std::size_t>(i)];
      const double density = m_graph.density(node);
      const bool high = density >= runtime::k_high_density;
      const std::string word = high ? "high" : "low";
      if (pattern.empty() || !pattern.ends_with(word)) pattern += (pattern.empty() ? "" : "-") + word;
      const runtime::OnChip works = m_target.working_set(node);
      const auto size = [](std::int64_t bytes) { return bytes > 0 ? bytes_text(bytes) : ""; };
      table.add({node.name, word, fmt::format("{:.1f}", density),
                 fmt::format("{:.2f}", m_graph.intensity(node, m_bytes)), size(works.sm), size(works.am),
                 size(works.gsm)});
    }
    std::string text = fmt::format("unit {}: [{}], GSM {} of {}\n{}", number, pattern, bytes_text(unit.gsm_bytes),
                                   bytes_text(m_target.capacity.gsm), table.text(2));
    for (const int t : unit.on_chip) {
      text += fmt::format("  stays on chip: {}, {}{}\n", name(t), bytes_text(bytes(t)),
                          in_gsm(unit, t) ? " in GSM" : ", block by block");
    }
    for (const runtime::FusionStop& stop : unit.stops)
      text += fmt::format("  stops between {} and {}: {}\n", node_name(stop.from), node_name(stop.to), stop.why);
    return text;
  }

 private:
  const std::string& name(int tensor) const { return m_graph.tensors[static_cast<std::size_t>(tensor)].name; }
  const std::string& node_name(int node) const { return m_graph.nodes[static_cast<std::size_t>(node)].name; }
  std::int64_t bytes(int tensor) const {
    return static_cast<std::int64_t>(m_graph.tensors[static_cast<std::size_t>(tensor)].elements()) * m_bytes;
  }
  static bool in_gsm(const runtime::FusionUnit& unit, int tensor) {
    return std::find(unit.in_gsm.begin(), unit.in_gsm.end(), tensor) != unit.in_gsm.end();
  }

  const models::Graph& m_graph;
  const runtime::FusionTarget& m_target;
  const std::int64_t m_bytes;
};

}  // namespace

GraphView show_graph(const GraphRequest& options, const sim::Machine& machine) {
  const auto dtype = kernels::parse_dtype(options.dtype);
  if (!dtype) throw UsageError(fmt::format("--dtype '{}': f32 or f16", options.dtype));
  models::LlamaConfig config = models::load_config(options.model);
  const float scale = 1 / std::sqrt(static_cast<float>(config.head_dim));
  config.head_dim = runtime::HeadLayout::of(config).padded;
  if (options.layer >= config.layers)
    throw UsageError(fmt::format("--layer {}: {} has layers 0 to {}", options.layer, config.name, config.layers - 1));
  if (options.tokens > config.max_positions || options.context > config.max_positions - options.tokens) {
    throw UsageError(fmt::format("--tokens {} behind --context {}: the context of {} holds {}", options.tokens,
                                 options.context, config.name, config.max_positions));
  }
  if (options.batch > k_largest_batch)
    throw UsageError(fmt::format("--batch {}: at most {} sequences", options.batch, k_largest_batch));
  const runtime::ExecutionPlan plan = runtime::ExecutionPlan::named(options.plan);
  const models::IterationShape shape{
      std::vector<models::SequenceStep>(static_cast<std::size_t>(options.batch), {options.tokens, options.context})};
  models::ModelPart part = models::ModelPart::whole(config);
  part.layers = options.layer + 1;
  const models::Graph graph = models::llama_graph(config, shape, part);
  const std::int64_t longest = (options.tokens + options.context + 3) / 4 * 4;
  const runtime::BatchShape batch = runtime::BatchShape::of(shape.sequences, longest);
  const runtime::OperatorPlans plans(graph, config, *dtype, scale, batch, plan, machine.config());
  const runtime::FusionTarget target = plans.fusion_target();
  const runtime::Fusion fusion = plan.fusion ? runtime::fuse(graph, target) : runtime::no_fusion(graph);

  const UnitView view(graph, target, bytes_of(*dtype));
  Json json = {{"command", "plan"},      {"model", config.name},     {"dtype", to_string(*dtype)},
               {"plan", plan.name},      {"tokens", options.tokens}, {"context", options.context},
               {"batch", options.batch}, {"layer", options.layer},   {"units", Json::array()}};
  std::string text =
      fmt::format("{}, layer {} of {}: {} sequence{} of {} new token{} behind {}, {}, plan {}\n", config.name,
                  options.layer, config.layers, options.batch, options.batch == 1 ? "" : "s", options.tokens,
                  options.tokens == 1 ? "" : "s", options.context, to_string(*dtype), plan.name);
  int number = 0;
  for (const runtime::FusionUnit& unit : fusion.units) {
    if (graph.nodes[static_cast<std::size_t>(unit.nodes.front())].layer != options.layer) continue;
    json["units"].push_back(view.json(unit));
    text += view.text(unit, ++number);
  }
  json["machine"] = machine_json(machine);
  return {std::move(json), std::move(text)};
}

}  // namespace mtsim::scenarios
