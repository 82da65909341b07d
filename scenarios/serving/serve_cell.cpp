// SPDX-License-Identifier: Apache-2.0
#include "scenarios/serving/serve_cell.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "runtime/error.h"
#include "runtime/serving/metrics.h"
#include "runtime/serving/pool_trace.h"
#include "scenarios/error.h"
#include "scenarios/serving/serving_json.h"

namespace mtsim::scenarios {
namespace {

using runtime::PipelineMode;
using runtime::ServingPlan;

constexpr std::int64_t k_batches = 4;     // of a uniform workload: the middle half has pools that are full
constexpr std::int64_t k_arrivals = 200;  // of a Poisson workload
constexpr std::int64_t k_served = 3;      // rows of a search that are served to rank them

/// A batch that is prefilled, decoded and left as one: the next one changes nothing.
bool is_one_batch(const ServingPlan& plan) {
  return plan.mode == PipelineMode::coupled && plan.coupled_batch == runtime::CoupledBatch::together;
}

/// Requests that a group has at a time.
std::int64_t batch_of(const ServingPlan& plan) {
  const std::int64_t of_replica = plan.decode.pp * plan.decode.micro_batch;
  return plan.decode.dp * (plan.kv.sequences > 0 ? std::min(plan.kv.sequences, of_replica) : of_replica);
}

class CellRun {
 public:
  CellRun(const ServingScenario& scenario, const Point& at, ServingCosts& costs, const ServeCellOptions& options)
      : m_scenario(scenario),
        m_options(options),
        m_at(at),
        m_config(scenario.config(at)),
        m_costs(costs),
        m_clusters(scenario.clusters(at, costs.clusters_per_device())) {}

  ServingOutcome pinned(const PinnedPlan& pinned, BatchRule rule) {
    ServingPlan plan = pinned.at(prompt(), output(), rule);
    ServingOutcome outcome{{{"plan", plan_json(plan)}}};
    outcome.json["plan"]["source"] = pinned.source;
    if (!pinned.from.empty()) outcome.json["plan"]["from"] = pinned.from;
    outcome.json["plan"]["batch_source"] = pinned.batch.source;
    if (!pinned.batch.from.empty()) outcome.json["plan"]["batch_from"] = pinned.batch.from;
    serve(plan, outcome);
    return outcome;
  }

  /// The planner's choice for this cell.
  ServingOutcome searched() {
    const auto [prompt_tokens, output_tokens] = typical_lengths();
    runtime::PlannerOptions options;
    options.clusters = m_clusters;
    options.clusters_per_device = m_costs.clusters_per_device();
    options.prompt_tokens = prompt_tokens;
    options.output_tokens = output_tokens;
    options.objective = m_scenario.objective;
    options.slo = m_scenario.slo;
    runtime::IterationCost& cost = m_costs.of(m_config, runtime::ExecutionPlan::named(options.execution));
    runtime::PlanSearch search = runtime::search_plans(m_config, cost, options);
    runtime::rank_by_serving(search, k_served, m_config, cost, options);
    ServingOutcome outcome;
    if (search.alive() == 0) {
      outcome.json["plan"] = {{"text", "none"}, {"source", "planned"}};
      does_not_fit(outcome, fmt::format("no plan for {} on {} clusters: {}", m_config.name, m_clusters,
                                        search.rows.empty() ? "" : search.rows.front().why));
      return outcome;
    }
    const ServingPlan& plan = search.rows.front().plan;
    outcome.json["plan"] = plan_json(plan);
    outcome.json["plan"]["source"] = "planned";
    outcome.json["plan"]["batch_source"] = "planned";
    serve(plan, outcome);
    return outcome;
  }

 private:
  std::int64_t prompt() const { return m_at[ServingScenario::k_prompt]; }
  std::int64_t output() const { return m_at[ServingScenario::k_output]; }
  bool is_trace() const { return m_scenario.workload.kind == WorkloadKind::trace; }

  static void does_not_fit(ServingOutcome& outcome, const std::string& why) {
    outcome.json["status"] = "does_not_fit";
    outcome.json["why_not"] = why;
    outcome.json["metrics"] = Json::object();
  }

  runtime::Workload trace() const {
    const WorkloadSpec& spec = m_scenario.workload;
    return runtime::trace_workload(spec.trace, {spec.first, spec.requests > 0 ? spec.requests : -1, spec.speed});
  }

  /// What a plan is made for: the means of a trace.
  std::pair<std::int64_t, std::int64_t> typical_lengths() const {
    if (!is_trace()) return {prompt(), output()};
    double prompts = 0, outputs = 0;
    const runtime::Workload workload = trace();
    for (const runtime::Request& request : workload) {
      prompts += static_cast<double>(request.prompt_tokens);
      outputs += static_cast<double>(request.output_tokens);
    }
    const auto count = static_cast<double>(workload.size());
    return {std::lround(prompts / count), std::max(std::lround(outputs / count), 1L)};
  }

  /// What one of `groups` gets of it: all groups alike, of a trace every so manieth request.
  runtime::Workload share(const ServingPlan& plan, std::int64_t groups) const {
    const WorkloadSpec& spec = m_scenario.workload;
    const auto requests = [&](std::int64_t usual) { return spec.requests > 0 ? spec.requests : usual; };
    if (spec.kind == WorkloadKind::uniform) {
      const std::int64_t usual = batch_of(plan) * (is_one_batch(plan) ? 1 : k_batches);
      return runtime::uniform_workload(requests(usual), prompt(), output());
    }
    if (spec.kind == WorkloadKind::poisson) {
      return runtime::poisson_workload(requests(k_arrivals), m_scenario.rate(m_at) / static_cast<double>(groups),
                                       prompt(), output(), spec.seed);
    }
    runtime::Workload its;
    const runtime::Workload all = trace();
    for (std::size_t i = 0; i < all.size(); i += static_cast<std::size_t>(groups)) {
      its.push_back(all[i]);
      its.back().id = static_cast<std::int64_t>(its.size()) - 1;
    }
    return its;
  }

  const runtime::ServingResult& run(const ServingPlan& plan, std::int64_t groups, runtime::ServeOptions options) {
    const bool is_uniform = m_scenario.workload.kind == WorkloadKind::uniform;
    const std::string key =
        fmt::format("{} {} prompt {} output {} groups {} rate {} events {}", m_config.name, plan_json(plan).dump(),
                    prompt(), output(), is_uniform ? 1 : groups, m_scenario.rate(m_at), options.keep_events);
    GroupRuns& runs = m_options.known != nullptr ? *m_options.known : m_own;
    if (const auto* known = runs.find(key); known != nullptr && m_options.trace.empty()) return *known;
    std::optional<runtime::PoolTrace> trace;
    if (!m_options.trace.empty()) options.observer = &trace.emplace(m_options.trace, plan);
    const auto& result =
        runs.keep(key, runtime::serve(plan, share(plan, groups), m_costs.of(m_config, plan.execution), options));
    if (trace) trace->finish();
    return result;
  }

  void serve(const ServingPlan& plan, ServingOutcome& outcome) {
    const std::int64_t groups = m_clusters / plan.clusters();
    outcome.json["clusters"] = m_clusters;
    outcome.json["groups"] = groups;
    outcome.json["idle_clusters"] = m_clusters - groups * plan.clusters();
    if (groups == 0) {
      return does_not_fit(outcome, fmt::format("a pool takes {} clusters, there are {}", plan.clusters(), m_clusters));
    }
    runtime::ServeOptions options;
    options.context = m_config.max_positions;
    options.keep_events = m_options.events;
    options.clusters_per_device = m_costs.clusters_per_device();
    try {
      const runtime::ServingResult& result = run(plan, groups, options);
      // A uniform workload is a piece of one without end: filling and draining are left out.
      const bool is_steady = m_scenario.workload.kind == WorkloadKind::uniform && !is_one_batch(plan);
      describe_run(result, groups, is_steady, m_scenario.slo, outcome.json);
      if (m_options.events) describe_events(result, outcome.json);
    } catch (const runtime::RuntimeError& error) {
      does_not_fit(outcome, error.what());
    }
  }

  const ServingScenario& m_scenario;
  const ServeCellOptions& m_options;
  const Point& m_at;
  const models::LlamaConfig& m_config;
  ServingCosts& m_costs;
  const std::int64_t m_clusters;
  GroupRuns m_own;
};

}  // namespace

const runtime::ServingResult* GroupRuns::find(const std::string& key) const {
  const auto run = m_runs.find(key);
  return run == m_runs.end() ? nullptr : &run->second;
}
const runtime::ServingResult& GroupRuns::keep(const std::string& key, runtime::ServingResult result) {
  return m_runs.insert_or_assign(key, std::move(result)).first->second;
}

ServingOutcome serve_cell(const ServingScenario& scenario, const ScenarioCell& cell, const PinnedPlan& pinned,
                          BatchRule rule, ServingCosts& costs, const ServeCellOptions& options) {
  CellRun run(scenario, cell.at, costs, options);
  return pinned.search ? run.searched() : run.pinned(pinned, rule);
}

}  // namespace mtsim::scenarios
