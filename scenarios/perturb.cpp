// SPDX-License-Identifier: Apache-2.0
#include "scenarios/perturb.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "scenarios/error.h"
#include "scenarios/operands.h"
#include "scenarios/scenario_runner.h"
#include "scenarios/workers.h"

namespace mtsim::scenarios {

Band band_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(std::lround(share * static_cast<double>(values.size() - 1)))];
  };
  return {at(0.05), at(0.5), at(0.95)};
}

std::vector<sim::MachineNumber> uncertain_numbers(const sim::Machine& machine, Uncertain what) {
  std::vector<sim::MachineNumber> numbers;
  for (const sim::MachineNumber& n : machine.numbers()) {
    const bool is_size =
        n.unit == "B" || n.unit == "cores" || n.unit == "count" || n.unit == "clusters" || n.unit == "flag";
    const bool is_between = n.key.starts_with("link.") || n.key.starts_with("host.");
    if (is_between ? what == Uncertain::cluster : what == Uncertain::between) continue;
    const bool is_what_if = n.overridden && n.provenance == sim::Provenance::assumed;
    if (!is_size && !is_what_if && n.range_low < n.range_high) numbers.push_back(n);
  }
  return numbers;
}

sim::Machine draw_machine(const sim::Machine& machine, std::uint64_t seed, std::size_t index, Uncertain what) {
  const std::vector<sim::MachineNumber> numbers = uncertain_numbers(machine, what);
  // One stream a sample: another sample count draws the same first ones.
  const std::vector<float> draws =
      random_values(static_cast<std::int64_t>(numbers.size()), seed + 0x9E3779B97F4A7C15U * (index + 1));
  sim::Machine drawn = machine;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const sim::MachineNumber& n = numbers[i];
    const double share = (static_cast<double>(draws[i]) + 1) / 2;
    if (n.unit == "cycles")
      drawn.set(n.key, std::to_string(std::lround(n.range_low + share * (n.range_high - n.range_low))));
    else
      drawn.set(n.key, fmt::format("{:.6g}", n.range_low + share * (n.range_high - n.range_low)));
  }
  return drawn;
}

Perturbation perturb(const Scenario& scenario, const sim::Machine& machine, std::int64_t samples, std::uint64_t seed,
                     const std::function<void()>& on_sample) {
  Perturbation result{samples, seed, uncertain_numbers(machine), {}};
  if (result.drawn.empty()) {
    throw UsageError(fmt::format("--perturb: {} gives no number a plausible range; use a machine that extends mt3000",
                                 machine.path()));
  }
  Scenario alone = scenario;
  alone.beside.reset();
  const std::vector<std::string> answers = in_workers(
      static_cast<std::size_t>(samples),
      [&](std::size_t index) {
        OperatorRunner runner(draw_machine(machine, seed, index));
        Json cells = Json::array();
        for (const CellResult& cell : run_scenario(alone, runner).cells) {
          Json metrics = Json::object();
          for (const auto& [metric, value] : cell.metrics) metrics[metric] = value;
          cells.push_back(std::move(metrics));
        }
        return cells.dump();
      },
      on_sample);
  std::vector<std::map<std::string, std::vector<double>>> values(scenario.cells().size());
  for (const std::string& answer : answers) {
    const Json cells = Json::parse(answer);
    for (std::size_t c = 0; c < values.size(); ++c) {
      for (const auto& [metric, value] : cells.at(c).items()) values[c][metric].push_back(value);
    }
  }
  for (auto& cell : values) {
    std::map<std::string, Band>& bands = result.bands.emplace_back();
    for (auto& [metric, of_samples] : cell) bands[metric] = band_of(std::move(of_samples));
  }
  return result;
}

}  // namespace mtsim::scenarios
