// SPDX-License-Identifier: Apache-2.0
#include "scenarios/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "scenarios/error.h"
#include "scenarios/table.h"

namespace mtsim::scenarios {

namespace {

constexpr int k_grid_points = 5;                // of each parameter, evenly spaced in the logarithm
constexpr double k_first_step = 0.25;           // of a value: half the ratio of two grid points or less
constexpr double k_smallest_step = 0.015;       // of a value: finer than the table's own noise
constexpr double k_sensitivity_step = 0.05;     // of a value; doubles outward
constexpr double k_worthwhile_percent = 0.005;  // a smaller gain does not move the search
// The search looks far outside what is held plausible, so that the data decide and not the range.
constexpr double k_beyond_plausible = 2.5;
constexpr int k_significant_digits = 3;  // fitted values are written with no more

double rounded(double value) {
  const double scale = std::pow(10.0, k_significant_digits - 1 - std::floor(std::log10(std::abs(value))));
  return value == 0 ? 0 : std::round(value * scale) / scale;
}

/// Evaluates points of the search space, each once.
class Objective {
 public:
  Objective(const Scenario& scenario, OperatorRunner& runner, const std::vector<FitParameter>& parameters,
            const std::function<void(const FitStep&)>& on_step)
      : m_scenario(scenario),
        m_runner(runner),
        m_parameters(parameters),
        m_on_step(on_step),
        m_base(runner.machine()) {}

  /// Inside the ranges and rounded.
  std::vector<double> feasible(std::vector<double> point) const {
    for (std::size_t i = 0; i < point.size(); ++i) {
      point[i] = rounded(std::clamp(point[i], m_parameters[i].low, m_parameters[i].high));
    }
    return point;
  }

  double operator()(const std::vector<double>& point) {
    const auto [known, is_new] = m_known.try_emplace(point);
    if (!is_new) return mape(known->second);
    known->second = run(point);
    const double error = mape(known->second);
    const bool best = m_known.size() == 1 || error < m_best_mape;
    if (best) {
      m_best_mape = error;
      m_best = point;
    }
    if (m_on_step) m_on_step({point, error, best});
    return error;
  }

  /// The best point evaluated so far.
  const std::vector<double>& best() const { return m_best; }
  int evaluations() const { return static_cast<int>(m_known.size()); }
  const ScenarioResult& result(const std::vector<double>& point) const { return m_known.at(point); }

 private:
  static double mape(const ScenarioResult& result) { return result.summary.at(std::string(k_fit_metric)).mape_percent; }

  ScenarioResult run(const std::vector<double>& point) {
    sim::Machine machine = m_base;
    for (std::size_t i = 0; i < point.size(); ++i) machine.set(m_parameters[i].key, fmt::format("{}", point[i]));
    m_runner.set_machine(std::move(machine));
    ScenarioResult result = run_scenario(m_scenario, m_runner);
    if (!result.passed())
      throw ProgramFailed("fit: a cell of the scenario faults or has findings; run the scenario first");
    return result;
  }

  const Scenario m_scenario;
  OperatorRunner& m_runner;
  const std::vector<FitParameter>& m_parameters;
  const std::function<void(const FitStep&)>& m_on_step;
  const sim::Machine m_base;
  std::map<std::vector<double>, ScenarioResult> m_known;
  double m_best_mape = 0;
  std::vector<double> m_best;
};

/// A coarse grid over the whole box, so that no start decides which valley is found.
void search_grid(Objective& objective, const std::vector<FitParameter>& parameters) {
  std::vector<double> point(parameters.size());
  const std::function<void(std::size_t)> fix = [&](std::size_t i) {
    if (i == parameters.size()) {
      objective(objective.feasible(point));
      return;
    }
    for (int step = 0; step < k_grid_points; ++step) {
      point[i] = parameters[i].low * std::pow(parameters[i].high / parameters[i].low, step / (k_grid_points - 1.0));
      fix(i + 1);
    }
  };
  fix(0);
}

/// Pattern search from the best point known: explore along each axis and each diagonal, move while that helps, halve
/// the steps when nothing does. Diagonals, because the parameters trade against each other.
void search_pattern(Objective& objective, const std::vector<FitParameter>& parameters) {
  const auto count = static_cast<int>(parameters.size());
  int directions = 1;
  for (int i = 0; i < count; ++i) directions *= 3;
  for (double step = k_first_step; step >= k_smallest_step; step /= 2) {
    for (bool moved = true; moved;) {
      moved = false;
      const std::vector<double> from = objective.best();
      for (int direction = 0; direction < directions && !moved; ++direction) {
        std::vector<double> next = from;
        for (int i = 0, digits = direction; i < count; ++i, digits /= 3) next[i] *= 1 + step * (digits % 3 - 1);
        moved = objective(objective.feasible(next)) < objective(from) - k_worthwhile_percent;
      }
    }
  }
}

/// How far parameter `i` can move in direction `sign` before the error exceeds the tolerance; linear between
/// evaluations.
double tolerable(Objective& objective, const std::vector<double>& best, std::size_t i, double sign) {
  const double limit = objective(best) + k_fit_tolerance_percent;
  double inside = best[i], inside_error = objective(best);
  for (double step = k_sensitivity_step * best[i];; step *= 2) {
    std::vector<double> point = best;
    point[i] = inside + sign * step;
    point = objective.feasible(point);
    if (point[i] == inside) return inside;  // the end of the range
    const double error = objective(point);
    if (error > limit) return inside + (point[i] - inside) * (limit - inside_error) / (error - inside_error);
    inside = point[i];
    inside_error = error;
  }
}

}  // namespace

std::vector<FitParameter> fit_parameters(const sim::Machine& machine, std::span<const std::string> keys) {
  std::vector<FitParameter> parameters;
  if (keys.empty()) throw UsageError("fit: no parameters; give --parameters KEY,KEY");
  for (const std::string& key : keys) {
    const auto& numbers = machine.numbers();
    const auto number = std::find_if(numbers.begin(), numbers.end(), [&](const auto& n) { return n.key == key; });
    std::vector<std::string_view> names;
    for (const auto& n : numbers) names.push_back(n.key);
    if (number == numbers.end())
      throw UsageError(fmt::format("fit: unknown parameter '{}'{}", key, isa::did_you_mean(key, names)));
    if (std::find(k_fittable.begin(), k_fittable.end(), key) == k_fittable.end()) {
      throw UsageError(fmt::format("fit: '{}' is {} ({}) and stays so; only {} are fitted", key,
                                   to_string(number->provenance), number->source, fmt::join(k_fittable, " and ")));
    }
    if (!(0 < number->range_low && number->range_low < number->range_high)) {
      throw UsageError(fmt::format("fit: '{}' has no plausible range above 0 in {}; give it one", key, machine.path()));
    }
    if (std::any_of(parameters.begin(), parameters.end(), [&](const auto& p) { return p.key == key; })) {
      throw UsageError(fmt::format("fit: parameter '{}' is given twice", key));
    }
    FitParameter parameter{.key = key,
                           .unit = number->unit,
                           .plausible_low = number->range_low,
                           .plausible_high = number->range_high,
                           .low = number->range_low / k_beyond_plausible,
                           .high = number->range_high * k_beyond_plausible};
    parameter.start = machine.get(key);
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

FitResult fit(const Scenario& scenario, OperatorRunner& runner, std::vector<FitParameter> parameters,
              const std::function<void(const FitStep&)>& on_step) {
  const auto cells = scenario.cells();
  if (std::none_of(cells.begin(), cells.end(),
                   [](const auto& c) { return c.paper.contains(std::string(k_fit_metric)); })) {
    throw UsageError(fmt::format("{}: has no paper values of {} to fit to", scenario.path, k_fit_metric));
  }
  FitResult result;
  Objective objective(scenario, runner, parameters, on_step);
  std::vector<double> start;
  for (const auto& p : parameters) start.push_back(p.start);
  result.start_mape_percent = objective(objective.feasible(start));
  search_grid(objective, parameters);
  search_pattern(objective, parameters);
  const std::vector<double> best = objective.best();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    parameters[i].value = best[i];
    parameters[i].sensitivity_low = tolerable(objective, best, i, -1);
    parameters[i].sensitivity_high = tolerable(objective, best, i, +1);
  }
  result.mape_percent = objective(best);
  result.evaluations = objective.evaluations();
  result.residuals = objective.result(best);
  result.parameters = std::move(parameters);
  return result;
}

}  // namespace mtsim::scenarios
