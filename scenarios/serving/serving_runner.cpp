// SPDX-License-Identifier: Apache-2.0
#include "scenarios/serving/serving_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "scenarios/error.h"
#include "scenarios/workers.h"

namespace mtsim::scenarios {
namespace {

/// All that is run of a cell.
struct Served {
  ServingOutcome outcome;
  std::map<std::string, ServingOutcome> beside;
  std::optional<Band> band;
  runtime::InterpolationError interpolation;  // so far
};

/// The cells of one model, on one set of costs.
class ModelRun {
 public:
  ModelRun(const ServingScenario& scenario, const sim::Machine& machine, ServingCosts& costs,
           const ServingRunOptions& options)
      : m_scenario(scenario), m_machine(machine), m_costs(costs), m_options(options) {}

  Served run(const ScenarioCell& cell) {
    const PinnedPlan& pinned = m_scenario.pinned(cell.at);
    Served served;
    served.outcome = outcome(cell, pinned, m_scenario.batch_rule, true);
    if (!pinned.search) {
      for (const BatchRule rule : m_scenario.beside)
        served.beside[std::string(to_string(rule))] = outcome(cell, pinned, rule);
    }
    PinnedPlan search;
    search.search = true;
    if (m_scenario.search_beside && !pinned.search)
      served.beside[std::string(k_search)] = outcome(cell, search, m_scenario.batch_rule);
    served.interpolation = m_costs.error();
    if (m_options.samples > 0 && served.outcome.fits() && !pinned.search) served.band = band(cell, pinned);
    return served;
  }

 private:
  ServingOutcome outcome(const ScenarioCell& cell, const PinnedPlan& pinned, BatchRule rule, bool watched = false) {
    ServeCellOptions options;
    options.known = &m_groups;
    if (watched) {
      options.events = m_options.events;
      options.trace = m_options.trace;
    }
    try {
      return serve_cell(m_scenario, cell, pinned, rule, m_costs, options);
    } catch (const UsageError& error) {
      throw UsageError(
          fmt::format("{}: cell {}: {}", m_scenario.grid_place.str(), m_scenario.text(cell.at), error.what()));
    }
  }

  /// Of machines that differ in links and hosts, as shares of this one's value. Groups all do the same under a uniform
  /// workload: cells that differ in their number share it.
  Band band(const ScenarioCell& cell, const PinnedPlan& pinned) {
    const std::vector<std::int64_t> key = {cell.at[ServingScenario::k_plan], cell.at[ServingScenario::k_prompt],
                                           cell.at[ServingScenario::k_output]};
    const bool is_shared = m_scenario.workload.kind == WorkloadKind::uniform;
    if (const auto known = m_bands.find(key); is_shared && known != m_bands.end()) return known->second;
    const auto tokens_s = [&] {
      return serve_cell(m_scenario, cell, pinned, m_scenario.batch_rule, m_costs).metric(k_serving_metric);
    };
    const double its_own = tokens_s();
    std::vector<double> shares;
    for (std::int64_t i = 0; i < m_options.samples; ++i) {
      m_costs.set_between(draw_machine(m_machine, m_options.seed, static_cast<std::size_t>(i), Uncertain::between));
      shares.push_back(tokens_s() / its_own);
    }
    m_costs.set_between(m_machine);
    return m_bands[key] = band_of(std::move(shares));
  }

  const ServingScenario& m_scenario;
  const sim::Machine& m_machine;
  ServingCosts& m_costs;
  const ServingRunOptions& m_options;
  GroupRuns m_groups;  // on the machine itself
  std::map<std::vector<std::int64_t>, Band> m_bands;
};

Json to_json(const Served& served) {
  Json json = {{"outcome", served.outcome.json}, {"beside", Json::object()}};
  for (const auto& [name, outcome] : served.beside) json["beside"][name] = outcome.json;
  if (served.band) json["band"] = {served.band->low, served.band->median, served.band->high};
  const runtime::InterpolationError& error = served.interpolation;
  json["interpolation"] = {error.interpolated, error.sampled, error.mean_percent, error.worst_percent,
                           error.worst_batch};
  return json;
}

Served from_json(const Json& json) {
  Served served;
  served.outcome.json = json.at("outcome");
  for (const auto& [name, outcome] : json.at("beside").items()) served.beside[name].json = outcome;
  if (json.contains("band")) served.band = Band{json["band"][0], json["band"][1], json["band"][2]};
  const Json& error = json.at("interpolation");
  served.interpolation = {error[0], error[1], error[2], error[3], error[4]};
  return served;
}

/// Cells of each model, by index: those share what the clusters take.
std::vector<std::vector<std::size_t>> by_model(const std::vector<ScenarioCell>& cells) {
  std::map<std::int64_t, std::vector<std::size_t>> models;
  for (std::size_t i = 0; i < cells.size(); ++i) models[cells[i].at[ServingScenario::k_model]].push_back(i);
  std::vector<std::vector<std::size_t>> result;
  for (auto& [model, its] : models) result.push_back(std::move(its));
  return result;
}

std::vector<Served> serve_all(const ServingScenario& scenario, const sim::Machine& machine,
                              const MakeServingCosts& make_costs, const ServingRunOptions& options,
                              const std::vector<ScenarioCell>& cells, const std::function<void()>& on_cell) {
  const auto models = by_model(cells);
  std::vector<Served> served(cells.size());
  if (!options.in_workers) {
    const auto costs = make_costs(machine);
    for (const auto& its : models) {
      ModelRun run(scenario, machine, *costs, options);
      for (const std::size_t i : its) {
        served[i] = run.run(cells[i]);
        if (on_cell) on_cell();
      }
    }
    return served;
  }
  const std::vector<std::string> answers = in_workers(
      models.size(),
      [&](std::size_t model) {
        const auto costs = make_costs(machine);
        ModelRun run(scenario, machine, *costs, options);
        Json answer = Json::array();
        for (const std::size_t i : models[model]) answer.push_back(to_json(run.run(cells[i])));
        return answer.dump();
      },
      on_cell);
  for (std::size_t model = 0; model < models.size(); ++model) {
    const Json answer = Json::parse(answers[model]);
    for (std::size_t i = 0; i < models[model].size(); ++i) served[models[model][i]] = from_json(answer[i]);
  }
  return served;
}

/// Rows one behind the other, column by column.
void add_steps(const ServingScenario& scenario, ServingRun& run) {
  const std::string metric(k_serving_metric);
  const auto &rows = scenario.axes[scenario.rows].values, &columns = scenario.axes[scenario.columns].values;
  const std::size_t table = rows.size() * columns.size();
  for (std::size_t first = 0; first < run.cells.size(); first += table) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      for (std::size_t r = 0; r + 1 < rows.size(); ++r) {
        const std::size_t from = first + r * columns.size() + c, to = from + columns.size();
        const ServingCell &before = run.cells[from], &after = run.cells[to];
        if (!before.error_percent.contains(metric) || !after.error_percent.contains(metric)) continue;
        const ServingStep step{from, to, after.cell.paper.at(metric) / before.cell.paper.at(metric),
                               after.outcome.metric(metric) / before.outcome.metric(metric)};
        run.step_summary.add(step.error_percent(), run.steps.size());
        run.steps.push_back(step);
      }
    }
  }
}

}  // namespace

ServingRun run_serving(const ServingScenario& scenario, const sim::Machine& machine, const MakeServingCosts& make_costs,
                       const ServingRunOptions& options, const std::function<void()>& on_cell) {
  const auto start = std::chrono::steady_clock::now();
  ServingRun run;
  std::vector<ScenarioCell> cells = scenario.cells();
  if (!options.trace.empty() && cells.size() > 1) {
    throw UsageError(fmt::format("--trace: {} has {} cells; choose one, as in --set model=7b --set prompt=512",
                                 scenario.path, cells.size()));
  }
  std::vector<Served> served = serve_all(scenario, machine, make_costs, options, cells, on_cell);
  if (options.samples > 0) run.drawn = uncertain_numbers(machine, Uncertain::between);
  const std::string metric(k_serving_metric);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    ServingCell cell{std::move(cells[i]), std::move(served[i].outcome), std::move(served[i].beside), {}, {}};
    if (served[i].interpolation.worst_percent >= run.interpolation.worst_percent)
      run.interpolation = served[i].interpolation;
    const std::int64_t column = cell.cell.at[scenario.columns];
    const auto paper = cell.cell.paper.find(metric);
    if (paper != cell.cell.paper.end()) {
      if (cell.outcome.fits()) {
        const double error = 100 * (cell.outcome.metric(metric) / paper->second - 1);
        cell.error_percent[metric] = error;
        run.summary.add(error, i);
        run.by_column[column].add(error, i);
      }
      for (const auto& [name, outcome] : cell.beside) {
        if (!outcome.fits()) continue;
        const double error = 100 * (outcome.metric(metric) / paper->second - 1);
        run.beside[name].add(error, i);
        run.beside_by_column[name][column].add(error, i);
      }
    }
    if (served[i].band) {
      const double value = cell.outcome.metric(metric);
      cell.band = Band{value * served[i].band->low, value * served[i].band->median, value * served[i].band->high};
    }
    run.cells.push_back(std::move(cell));
  }
  if (scenario.steps) add_steps(scenario, run);
  run.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return run;
}

}  // namespace mtsim::scenarios
