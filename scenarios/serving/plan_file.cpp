// SPDX-License-Identifier: Apache-2.0
#include "scenarios/serving/plan_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>

#include "scenarios/grid_file.h"

namespace mtsim::scenarios {
namespace {

using runtime::PipelineMode;
using runtime::Pool;
using sim::YamlNode;

/// A word among few.
template <class Value>
void read_choice(const YamlNode& root, std::string_view key, std::span<const Value> choices, Value& value) {
  const auto node = root.find(key);
  if (!node) return;
  const std::string word = node->as_string();
  std::vector<std::string_view> words;
  for (const Value choice : choices) {
    words.push_back(to_string(choice));
    if (word == words.back()) value = choice;
  }
  if (std::find(words.begin(), words.end(), word) == words.end())
    node->complain(fmt::format("unknown {} '{}'", key, word), fmt::format("known: {}", fmt::join(words, ", ")));
}

void read_count(const YamlNode& root, std::string_view key, std::int64_t least, std::int64_t& value) {
  const auto node = root.find(key);
  if (!node) return;
  value = node->as_integer();
  if (value < least) node->complain(fmt::format("{} {}", value, key), fmt::format("at least {}", least));
}

void read_source(const YamlNode& root, std::string& source, std::string& from) {
  static constexpr std::array<std::string_view, 4> k_sources = {"paper", "assumed", "fitted", "planned"};
  if (const auto node = root.find("source")) {
    source = node->as_string();
    if (std::find(k_sources.begin(), k_sources.end(), source) == k_sources.end())
      node->complain(fmt::format("unknown source '{}'", source), fmt::format("known: {}", fmt::join(k_sources, ", ")));
  }
  if (const auto node = root.find("from")) from = node->as_string();
}

/// 46, carried, or {value: 46, prompt: 512, output: 128, source: fitted, from: "..."}.
BatchSize read_batch(const YamlNode& node) {
  BatchSize batch;
  if (node.is_scalar() && !node.is_quoted() && node.as_string() == "carried") {
    batch.carried = true;
    return batch;
  }
  if (!node.is_mapping()) {
    batch.requests = node.as_integer();
  } else {
    batch.requests = node.require("value").as_integer();
    read_count(node, "prompt", 1, batch.prompt);
    read_count(node, "output", 1, batch.output);
    if ((batch.prompt > 0) != (batch.output > 0))
      node.complain("one of prompt and output", "give both lengths it is for, or none");
    read_source(node, batch.source, batch.from);
  }
  if (batch.requests < 1) node.complain(fmt::format("a micro-batch of {}", batch.requests), "at least 1");
  return batch;
}

void read_pool(const YamlNode& node, Pool& pool) {
  read_count(node, "tp", 1, pool.tp);
  read_count(node, "pp", 1, pool.pp);
  read_count(node, "dp", 1, pool.dp);
}

}  // namespace

PinnedPlan read_pinned_plan(const YamlNode& node) {
  PinnedPlan pinned;
  if (!node.is_mapping()) {
    if (node.as_string() != "search")
      node.complain(fmt::format("a plan '{}'", node.as_string()), "'search', or a mapping of its pools");
    pinned.search = true;
    return pinned;
  }
  runtime::ServingPlan& plan = pinned.plan;
  static constexpr std::array k_modes = {PipelineMode::coupled, PipelineMode::bounded, PipelineMode::unbounded};
  static constexpr std::array k_batches = {runtime::CoupledBatch::together, runtime::CoupledBatch::continuous};
  read_choice<PipelineMode>(node, "mode", k_modes, plan.mode);
  read_word(node, "execution", [&](const std::string& word) { plan.execution = runtime::ExecutionPlan::named(word); });
  read_word(node, "kv", [&](const std::string& word) { plan.kv = runtime::parse_kv_options(word); });
  if (const auto decode = node.require("decode"); !decode.is_null()) {
    read_pool(decode, plan.decode);
    if (const auto batch = decode.require("micro_batch"); !batch.is_null()) pinned.batch = read_batch(batch);
  }
  if (plan.mode == PipelineMode::coupled) {
    read_choice<runtime::CoupledBatch>(node, "batch", k_batches, plan.coupled_batch);
    read_count(node, "requests", 1, plan.kv.sequences);
    if (const auto prefill = node.find("prefill")) read_count(*prefill, "micro_batch", 1, plan.prefill.micro_batch);
  } else {
    if (const auto prefill = node.require("prefill"); !prefill.is_null()) {
      read_pool(prefill, plan.prefill);
      read_count(prefill, "micro_batch", 1, plan.prefill.micro_batch);
    }
    if (const auto buffer = node.find("buffer")) {
      read_count(*buffer, "clusters", 0, plan.buffer.clusters);
      if (const auto slack = buffer->find("slack")) plan.buffer.slack = slack->as_boolean();
    }
    if (plan.mode == PipelineMode::bounded && plan.buffer.clusters == 0 && !plan.buffer.slack)
      node.complain("a bounded buffer of nothing", "give buffer: {clusters: N} or {slack: true}");
  }
  read_source(node, pinned.source, pinned.from);
  return pinned;
}

PinnedPlans read_pinned_plans(const YamlNode& node) {
  PinnedPlans plans;
  for (const std::string& label : node.keys()) plans[label] = read_pinned_plan(*node.find(label));
  return plans;
}

PinnedPlans load_pinned_plans(const std::string& path) {
  const auto document = sim::YamlDocument::load(path);
  PinnedPlans plans;
  if (const auto node = document.root().require("plans"); !node.is_null()) plans = read_pinned_plans(node);
  document.finish();
  return plans;
}

runtime::InferencePlan inference_plan(const std::string& text) {
  if (!text.ends_with(".yaml")) return runtime::InferencePlan::parse(text);
  const ServingScenario scenario = load_serving_scenario(text);
  if (scenario.plans.size() != 1 || scenario.plans.front().size() != 1) {
    throw UsageError(fmt::format("--plan {}: has plans of {} names for {} models; one of one model says how to decode",
                                 text, scenario.plans.size(), scenario.models.size()));
  }
  const PinnedPlan& pinned = scenario.plans.front().begin()->second;
  if (pinned.search)
    throw UsageError(fmt::format("--plan {}: its plan is 'search'; `mtsim plan --yaml FILE` writes one", text));
  return {pinned.plan.execution, {pinned.plan.decode.tp, pinned.plan.decode.pp}};
}

std::string plan_yaml(const PinnedPlan& pinned, int indent) {
  const std::string blanks(static_cast<std::size_t>(indent), ' ');
  const runtime::ServingPlan& plan = pinned.plan;
  const bool coupled = plan.mode == PipelineMode::coupled;
  const auto pool = [](const Pool& p) { return fmt::format("tp: {}, pp: {}, dp: {}", p.tp, p.pp, p.dp); };
  std::string text =
      fmt::format("{0}mode: {1}\n{0}execution: {2}\n", blanks, to_string(plan.mode), plan.execution.name);
  if (coupled) {
    text += fmt::format("{}batch: {}\n{}prefill: {{micro_batch: {}}}\n", blanks, to_string(plan.coupled_batch), blanks,
                        plan.prefill.micro_batch);
  } else {
    text += fmt::format("{}prefill: {{{}, micro_batch: {}}}\n", blanks, pool(plan.prefill), plan.prefill.micro_batch);
    text += fmt::format("{}buffer: {{clusters: {}, slack: {}}}\n", blanks, plan.buffer.clusters, plan.buffer.slack);
  }
  const BatchSize& batch = pinned.batch;
  const std::string lengths =
      batch.prompt > 0 ? fmt::format(", prompt: {}, output: {}", batch.prompt, batch.output) : "";
  text += fmt::format("{}decode: {{{}, micro_batch: {{value: {}{}, source: {}}}}}\n", blanks, pool(plan.decode),
                      batch.requests, lengths, batch.source);
  text += fmt::format("{}source: {}\n", blanks, pinned.source);
  if (!pinned.from.empty()) text += fmt::format("{}from: \"{}\"\n", blanks, pinned.from);
  return text;
}

}  // namespace mtsim::scenarios
