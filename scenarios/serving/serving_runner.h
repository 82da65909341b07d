// SPDX-License-Identifier: Apache-2.0
// Runs every cell of a serving scenario: its plan on one pool group, as often as the group fits the cell's clusters.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/serving/iteration_cost.h"
#include "scenarios/perturb.h"
#include "scenarios/serving/serve_cell.h"
#include "scenarios/serving/serving_costs.h"
#include "scenarios/serving/serving_scenario.h"
#include "scenarios/table.h"
#include "sim/config/machine.h"

namespace mtsim::scenarios {

inline constexpr std::string_view k_search = "search";  // beside: the planner's own choice

struct ServingRunOptions {
  std::int64_t samples = 0;  // machines whose links and hosts are drawn from their ranges; 0: no band
  std::uint64_t seed = 1;
  bool events = false;      // each stage's work in the outcome, for `mtsim explain`
  std::string trace;        // of the only cell, for ui.perfetto.dev; "": none
  bool in_workers = false;  // a process a model
};

struct ServingCell {
  ScenarioCell cell;
  ServingOutcome outcome;
  std::map<std::string, ServingOutcome> beside;  // by the rule's name, or k_search
  std::map<std::string, double> error_percent;   // signed, for the metrics the paper has
  std::optional<Band> band;                      // of tokens/s
};

/// From a row of the table to the next one, in a column: what a step of an ablation brings.
struct ServingStep {
  std::size_t from = 0, to = 0;  // cells
  double paper = 0, simulated = 0;
  double error_percent() const { return 100 * (simulated / paper - 1); }
};

struct ServingRun {
  std::vector<ServingCell> cells;
  MetricSummary summary;                            // of tokens/s
  std::map<std::int64_t, MetricSummary> by_column;  // of each value of the columns' axis
  std::map<std::string, MetricSummary> beside;      // what stands beside, against the paper
  std::map<std::string, std::map<std::int64_t, MetricSummary>> beside_by_column;
  std::vector<ServingStep> steps;             // of a scenario that asks for them
  MetricSummary step_summary;                 // worst_cell: of `steps`
  std::vector<sim::MachineNumber> drawn;      // of the band
  runtime::InterpolationError interpolation;  // the worst of the models'
  double wall_s = 0;
};

/// Runs them one after the other, or a process a model. `make_costs` is called once in each process. UsageError where
/// a cell cannot be run as the file asks, with its place; a plan that needs more than there is is a result.
ServingRun run_serving(const ServingScenario& scenario, const sim::Machine& machine, const MakeServingCosts& make_costs,
                       const ServingRunOptions& options, const std::function<void()>& on_cell = {});

}  // namespace mtsim::scenarios
