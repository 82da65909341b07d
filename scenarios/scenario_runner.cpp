// SPDX-License-Identifier: Apache-2.0
#include "scenarios/scenario_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "kernels/library.h"
#include "scenarios/error.h"

namespace mtsim::scenarios {

namespace {

/// What cannot be run is the scenario's mistake: its place goes in front.
OperatorOutcome run_cell(const Scenario& scenario, OperatorRunner& runner, const ScenarioCell& cell,
                         const std::vector<std::string>& variant) {
  const auto place = [&] { return fmt::format("{}: cell {}", scenario.grid_place.str(), scenario.text(cell.at)); };
  try {
    return runner.run(scenario.request(cell, variant));
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", place(), error.what()));
  } catch (const kernels::KernelError& error) {
    const bool is_result = scenario.sweeps_tiles() && dynamic_cast<const kernels::CapacityError*>(&error) != nullptr;
    if (is_result) throw;
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

std::optional<double> CellResult::paper_utilisation() const {
  const auto reported = cell.paper.find("latency_ms");
  if (reported == cell.paper.end() || outcome.gmac_s == 0) return std::nullopt;
  return outcome.utilisation * outcome.latency_ms / reported->second;
}

ScenarioResult run_scenario(const Scenario& scenario, OperatorRunner& runner, const std::function<void()>& on_cell) {
  const auto start = std::chrono::steady_clock::now();
  ScenarioResult result;
  for (ScenarioCell& cell : scenario.cells()) {
    CellResult done;
    const auto run = [&](const std::vector<std::string>& variant) -> std::optional<OperatorOutcome> {
      try {
        return run_cell(scenario, runner, cell, variant);
      } catch (const kernels::CapacityError& error) {
        done.misfit = {error.needs(), error.what()};
        return std::nullopt;
      }
    };
    if (scenario.beside) done.beside = run(*scenario.beside);
    done.misfit.reset();  // of the one beside: that there is none says enough
    if (auto outcome = run(scenario.variant)) {
      done.outcome = std::move(*outcome);
      done.metrics = {{"latency_ms", done.outcome.latency_ms}, {"ddr_gb_s", done.outcome.ddr_gb_s}};
    }
    if (done.outcome.gmac_s > 0) done.metrics["gmac_s"] = done.outcome.gmac_s;
    for (const auto& [metric, paper] : cell.paper) {
      if (done.misfit) break;
      const auto simulated = done.metrics.find(metric);
      if (simulated == done.metrics.end())
        throw UsageError(fmt::format("{}: {} has no {}", scenario.path, scenario.op->info().name, metric));
      const double error = 100 * (simulated->second / paper - 1);
      done.error_percent[metric] = error;
      result.summary[metric].add(error, result.cells.size());
      if (scenario.tables) result.table_summary[cell.at[*scenario.tables]][metric].add(error, result.cells.size());
    }
    done.cell = std::move(cell);
    result.cells.push_back(std::move(done));
    if (on_cell) on_cell();
  }
  result.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace mtsim::scenarios
