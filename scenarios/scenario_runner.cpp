// SPDX-License-Identifier: Apache-2.0
#include "scenarios/scenario_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "scenarios/error.h"

namespace mtsim::scenarios {

namespace {

/// What cannot be run is the scenario's mistake: its place goes in front.
GemmOutcome run_cell(const Scenario& scenario, GemmRunner& runner, const GemmRequest& request) {
  const auto place = [&] {
    return fmt::format("{}: cell m={} n={} k={}", scenario.grid_place.str(), request.shape.m, request.shape.n,
                       request.shape.k);
  };
  try {
    return runner.run(request);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", place(), error.what()));
  } catch (const kernels::KernelError& error) {
    throw UsageError(fmt::format("{}: {}", place(), error.what()));
  } catch (const ProgramFailed& error) {
    throw ProgramFailed(fmt::format("{}: {}", place(), error.what()));
  }
}

}  // namespace

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
    done.outcome = run_cell(scenario, runner, request);
    if (scenario.beside) {
      GemmRequest other = request;
      other.sequence = *scenario.beside;
      done.beside = run_cell(scenario, runner, other);
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
