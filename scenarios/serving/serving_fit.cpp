// SPDX-License-Identifier: Apache-2.0
#include "scenarios/serving/serving_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "scenarios/error.h"
#include "scenarios/serving/plan_file.h"
#include "scenarios/serving/serve_cell.h"
#include "scenarios/table.h"
#include "scenarios/workers.h"
#include "sim/config/output_file.h"
#include "sim/config/scalar_edit.h"

namespace mtsim::scenarios {
namespace {

const std::string k_metric(k_serving_metric);

struct FitCell {
  const ServingScenario* scenario;
  ScenarioCell cell;
  const PinnedPlan& pinned() const { return scenario->pinned(cell.at); }
};

/// Micro-batches of one model's plan, each served once.
class BatchFit {
 public:
  BatchFit(std::vector<FitCell> cells, ServingCosts& costs) : m_cells(std::move(cells)), m_costs(costs) {}

  FittedBatch run() {
    std::int64_t low = 0, high = 1;  // too few, too many or without room
    while (is_too_few(high)) {
      low = high;
      high *= 2;
    }
    while (high - low > 1) {
      const std::int64_t middle = (low + high) / 2;
      (is_too_few(middle) ? low : high) = middle;
    }
    const Tried* best = nullptr;
    FittedBatch fitted;
    for (const auto& [requests, tried] : m_tried) {
      if (!tried || (best != nullptr && tried->mape_percent >= best->mape_percent)) continue;
      best = &*tried;
      fitted.requests = requests;
    }
    const ServingScenario& scenario = *m_cells.front().scenario;
    const Point& at = m_cells.front().cell.at;
    fitted.model = scenario.label(at);
    if (best == nullptr) throw UsageError(fmt::format("{}: {}", scenario.path, m_no_room));
    fitted.start = m_cells.front().pinned().batch.requests;
    fitted.prompt = at[ServingScenario::k_prompt];
    fitted.output = at[ServingScenario::k_output];
    fitted.mape_percent = best->mape_percent;
    fitted.evaluations = static_cast<int>(m_tried.size());
    fitted.residuals = best->residuals;
    return fitted;
  }

 private:
  struct Tried {
    double mape_percent = 0, bias_percent = 0;
    std::vector<BatchResidual> residuals;
  };

  bool is_too_few(std::int64_t requests) {
    const auto [known, is_new] = m_tried.try_emplace(requests);
    if (is_new) known->second = serve(requests);
    return known->second && known->second->bias_percent < 0;
  }

  /// Nothing when there is no room for so many.
  std::optional<Tried> serve(std::int64_t requests) {
    Tried tried;
    for (const FitCell& its : m_cells) {
      PinnedPlan pinned = its.pinned();
      pinned.batch.requests = requests;
      const ServingOutcome outcome =
          serve_cell(*its.scenario, its.cell, pinned, BatchRule::same_batch, m_costs, {.known = &m_groups});
      if (!outcome.fits()) {
        m_no_room =
            fmt::format("{}: {}", its.scenario->text(its.cell.at), outcome.json.at("why_not").get<std::string>());
        return std::nullopt;
      }
      const BatchResidual residual{its.scenario->name, its.scenario->text(its.cell.at), its.cell.paper.at(k_metric),
                                   outcome.metric(k_metric)};
      tried.mape_percent += std::abs(residual.error_percent());
      tried.bias_percent += residual.error_percent();
      tried.residuals.push_back(residual);
    }
    tried.mape_percent /= static_cast<double>(m_cells.size());
    return tried;
  }

  std::vector<FitCell> m_cells;
  ServingCosts& m_costs;
  GroupRuns m_groups;
  std::map<std::int64_t, std::optional<Tried>> m_tried;  // by requests
  std::string m_no_room;
};

/// The cells with a number to fit to, by model.
std::map<std::string, std::vector<FitCell>> cells_by_model(const std::vector<ServingScenario>& scenarios) {
  std::map<std::string, std::vector<FitCell>> models;
  for (const ServingScenario& scenario : scenarios) {
    for (ScenarioCell& cell : scenario.cells()) {
      if (!cell.paper.contains(k_metric) || scenario.pinned(cell.at).search) continue;
      auto& its = models[scenario.label(cell.at)];
      its.push_back({&scenario, std::move(cell)});
      for (const auto length : {ServingScenario::k_prompt, ServingScenario::k_output}) {
        const std::int64_t wanted = its.front().cell.at[length], found = its.back().cell.at[length];
        if (wanted == found) continue;
        throw UsageError(fmt::format("{}: one micro-batch is fitted at one length: {} {} and {}; name it in 'fit'",
                                     scenario.path, scenario.axes[length].name, wanted, found));
      }
    }
  }
  return models;
}

void check(const std::vector<ServingScenario>& scenarios) {
  for (const ServingScenario& scenario : scenarios) {
    if (scenario.plans_path.empty() || scenario.plans.size() != 1)
      throw UsageError(fmt::format("{}: what is fitted are the micro-batches of a file of plans; give 'plans: FILE'",
                                   scenario.path));
    if (scenario.plans_path != scenarios.front().plans_path)
      throw UsageError(fmt::format("{} and {} have different plans, {} and {}", scenarios.front().path, scenario.path,
                                   scenarios.front().plans_path, scenario.plans_path));
    if (scenario.workload.kind != WorkloadKind::uniform)
      throw UsageError(fmt::format("{}: a fit needs a uniform workload", scenario.path));
  }
}

Json to_json(const FittedBatch& batch) {
  Json residuals = Json::array();
  for (const BatchResidual& r : batch.residuals) residuals.push_back({r.scenario, r.cell, r.paper, r.fitted});
  return {batch.model,  batch.start,        batch.requests,    batch.prompt,
          batch.output, batch.mape_percent, batch.evaluations, residuals};
}
FittedBatch from_json(const Json& json) {
  FittedBatch batch{json[0], json[1], json[2], json[3], json[4], json[5], json[6], {}};
  for (const Json& r : json[7]) batch.residuals.push_back({r[0], r[1], r[2], r[3]});
  return batch;
}

}  // namespace

ServingFit fit_batches(const std::vector<ServingScenario>& scenarios, const sim::Machine& machine,
                       const MakeServingCosts& make_costs, bool in_workers, const std::function<void()>& on_model) {
  check(scenarios);
  std::vector<std::vector<FitCell>> models;
  for (auto& [label, cells] : cells_by_model(scenarios)) models.push_back(std::move(cells));
  if (models.empty())
    throw UsageError(fmt::format("{}: no cell with a number of the paper to fit to", scenarios.front().path));
  ServingFit fit;
  std::vector<std::string> sources;
  for (const ServingScenario& scenario : scenarios) sources.push_back(scenario.paper_source);
  fit.source = joined(sources, " and ");
  fit.plans_path = scenarios.front().plans_path;
  if (in_workers) {
    const auto answers = mtsim::scenarios::in_workers(
        models.size(),
        [&](std::size_t model) {
          const auto costs = make_costs(machine);
          return to_json(BatchFit(models[model], *costs).run()).dump();
        },
        on_model);
    for (const std::string& answer : answers) fit.batches.push_back(from_json(Json::parse(answer)));
    return fit;
  }
  const auto costs = make_costs(machine);
  for (const auto& cells : models) {
    fit.batches.push_back(BatchFit(cells, *costs).run());
    if (on_model) on_model();
  }
  return fit;
}

void write_batches(const ServingFit& fit) {
  std::string text = sim::read_text_file(fit.plans_path);
  const auto document = sim::YamlDocument::parse(text, fit.plans_path);
  std::vector<sim::ScalarEdit> edits;
  for (const FittedBatch& batch : fit.batches) {
    const auto plans = document.root().find("plans");
    const auto plan = plans ? plans->find(batch.model) : std::nullopt;
    const auto decode = plan ? plan->find("decode") : std::nullopt;
    const auto node = decode ? decode->find("micro_batch") : std::nullopt;
    const std::string from = fmt::format("{}, prompts of {} ({} cells, mean error {:.1f} %)", fit.source, batch.prompt,
                                         batch.residuals.size(), batch.mape_percent);
    const std::pair<const char*, std::string> facts[] = {{"value", std::to_string(batch.requests)},
                                                         {"prompt", std::to_string(batch.prompt)},
                                                         {"output", std::to_string(batch.output)},
                                                         {"source", "fitted"},
                                                         {"from", sim::double_quoted(from)}};
    for (const auto& [key, replacement] : facts) {
      const auto scalar = node && node->is_mapping() ? node->find(key) : std::nullopt;
      if (!scalar) {
        throw sim::ConfigError(fmt::format(
            "{}: the micro-batch of {} has no '{}'; write it as {{value: N, prompt: {}, output: {}, source: assumed, "
            "from: \"\"}}",
            fit.plans_path, batch.model, key, batch.prompt, batch.output));
      }
      edits.push_back({scalar->place(), replacement});
    }
  }
  sim::write_file(fit.plans_path, sim::k_fit_writer, sim::with_scalars(std::move(text), edits),
                  isa::FileUse::Purpose::update);
  const PinnedPlans written = load_pinned_plans(fit.plans_path);
  for (const FittedBatch& batch : fit.batches) {
    const auto plan = written.find(batch.model);
    if (plan == written.end() || plan->second.batch.requests != batch.requests)
      throw sim::ConfigError(fmt::format("{}: write the micro-batch of {} in one line", fit.plans_path, batch.model));
  }
}

}  // namespace mtsim::scenarios
