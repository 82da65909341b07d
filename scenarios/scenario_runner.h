// SPDX-License-Identifier: Apache-2.0
// Runs every cell of a scenario on one elaborated cluster and compares it with the paper.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/library.h"
#include "scenarios/operator_runner.h"
#include "scenarios/perturb.h"
#include "scenarios/scenario.h"
#include "sim/config/machine.h"

namespace mtsim::scenarios {

/// Block sizes that some memory does not hold.
struct Misfit {
  kernels::CapacityError::Needs needs;
  std::string message;
};

struct CellResult {
  ScenarioCell cell;
  std::optional<Misfit> misfit;  // of a scenario that sweeps block sizes: there is no outcome then
  OperatorOutcome outcome;
  std::optional<OperatorOutcome> beside;        // of the scenario's second variant
  std::map<std::string, double> metrics;        // as simulated; gmac_s of operators that multiply only
  std::map<std::string, double> error_percent;  // signed, for the metrics the paper has

  /// 0..1 of the simulated machine's peak, by eq. (23) from the paper's latency; absent without one or without MACs.
  std::optional<double> paper_utilisation() const;
};

struct ScenarioResult {
  std::vector<CellResult> cells;
  std::map<std::string, MetricSummary> summary;
  std::map<std::int64_t, std::map<std::string, MetricSummary>> table_summary;  // of each value of the tables' axis
  double wall_s = 0;
  std::optional<Perturbation> perturbation;  // whoever asks for bands sets it

  bool passed() const;  // no fault, no finding
};

/// `on_cell` is called after each cell, e.g. to move a progress bar.
ScenarioResult run_scenario(const Scenario& scenario, OperatorRunner& runner,
                            const std::function<void()>& on_cell = {});

}  // namespace mtsim::scenarios
