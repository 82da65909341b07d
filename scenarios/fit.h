// SPDX-License-Identifier: Apache-2.0
// Fits numbers of the machine to the paper's values of a scenario: the only way a number becomes `fitted`.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/scenario.h"
#include "scenarios/scenario_runner.h"

namespace mtsim::scenarios {

/// The numbers that may be fitted. Everything else is known, assumed with a range, or predicted, and stays so.
/// A machine has the DDR's bandwidth and one mechanism more: a cost per broadcast step or per row of a transfer.
inline constexpr std::array<std::string_view, 3> k_fittable = {"ddr.bandwidth_gb_s", "dma.broadcast_rendezvous_us",
                                                               "ddr.row_cost_ns"};
inline constexpr std::string_view k_fit_metric = "latency_ms";
/// A value counts as equally good while the mean absolute error grows by no more than this many percent points.
inline constexpr double k_fit_tolerance_percent = 0.3;

struct FitParameter {
  std::string key;
  std::string unit;
  double plausible_low = 0, plausible_high = 0;      // the machine file's range
  double low = 0, high = 0;                          // the search box: that range and far beyond
  double start = 0;                                  // the machine file's value
  double value = 0;                                  // fitted
  double sensitivity_low = 0, sensitivity_high = 0;  // others held, error within k_fit_tolerance_percent of the best
};

struct FitStep {
  std::vector<double> values;  // one per parameter
  double mape_percent = 0;
  bool best = false;  // so far
};

struct FitResult {
  std::vector<FitParameter> parameters;
  double start_mape_percent = 0;
  double mape_percent = 0;
  int evaluations = 0;
  ScenarioResult residuals;  // the scenario at the fitted values
};

/// Checks the keys (UsageError for one that may not be fitted or has no range) and looks up ranges and values.
std::vector<FitParameter> fit_parameters(const sim::Machine& machine, std::span<const std::string> keys);

/// Minimises the scenario's mean absolute latency error: the machine's own values and a coarse grid first, then a
/// pattern search from the best of them; the same steps on every host. The result is the best point evaluated.
/// `on_step` is called after each evaluation.
FitResult fit(const Scenario& scenario, OperatorRunner& runner, std::vector<FitParameter> parameters,
              const std::function<void(const FitStep&)>& on_step = {});

}  // namespace mtsim::scenarios
