// SPDX-License-Identifier: Apache-2.0
#include "scenarios/scenario_runner.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace mtsim::scenarios {

bool ScenarioResult::passed() const {
  return std::all_of(cells.begin(), cells.end(), [](const CellResult& cell) {
    return cell.outcome.passed() && (!cell.beside || cell.beside->passed());
  });
}

ScenarioResult run_scenario(const Scenario& scenario, GemmRunner& runner, const std::function<void()>& on_cell) {
  const auto start = std::chrono::steady_clock::now();
  ScenarioResult result;
  for (ScenarioCell& cell : scenario.cells()) {
    CellResult done;
    const GemmRequest request{
        .shape = cell.shape, .sequence = scenario.sequence, .tiles = scenario.tiles, .depth = scenario.depth};
    done.outcome = runner.run(request);
    if (scenario.beside) {
      GemmRequest other = request;
      other.sequence = *scenario.beside;
      done.beside = runner.run(other);
    }
    done.metrics = {{"latency_ms", done.outcome.latency_ms}, {"gmac_s", done.outcome.gmac_s}};
    for (const auto& [metric, paper] : cell.paper) {
      const double error = 100 * (done.metrics.at(metric) / paper - 1);
      done.error_percent[metric] = error;
      MetricSummary& summary = result.summary[metric];
      summary.mape_percent += std::abs(error);
      if (summary.cells++ == 0 || std::abs(error) > std::abs(summary.worst_percent)) {
        summary.worst_percent = error;
        summary.worst_cell = result.cells.size();
      }
    }
    done.cell = std::move(cell);
    result.cells.push_back(std::move(done));
    if (on_cell) on_cell();
  }
  for (auto& [metric, summary] : result.summary) summary.mape_percent /= summary.cells;
  result.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace mtsim::scenarios
