// SPDX-License-Identifier: Apache-2.0
#include "scenarios/serving/serving_scenario.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace mtsim::scenarios {

std::string_view to_string(BatchRule rule) { return rule == BatchRule::kv_budget ? "kv_budget" : "same_batch"; }

std::string_view to_string(WorkloadKind kind) {
  switch (kind) {
    case WorkloadKind::uniform: return "uniform";
    case WorkloadKind::poisson: return "poisson";
    case WorkloadKind::trace: return "trace";
  }
  return "";
}

std::int64_t BatchSize::at(std::int64_t its_prompt, std::int64_t its_output, BatchRule rule) const {
  if (rule == BatchRule::same_batch || prompt == 0 || its_prompt + its_output == 0) return requests;
  const double budget = static_cast<double>(requests * (prompt + output));
  return std::max<std::int64_t>(1, std::lround(budget / static_cast<double>(its_prompt + its_output)));
}

runtime::ServingPlan PinnedPlan::at(std::int64_t prompt, std::int64_t output, BatchRule rule) const {
  runtime::ServingPlan its = plan;
  its.decode.micro_batch = batch.at(prompt, output, rule);
  return its;
}

double ServingScenario::rate(const Point& at) const {
  const Axis& axis = axes[k_rate];
  return axis.words.empty() ? 0 : std::strtod(axis.text(at[k_rate]).c_str(), nullptr);
}

ServingScenario ServingScenario::for_fit() const {
  ServingScenario scenario = *this;
  scenario.beside.clear();
  scenario.search_beside = false;
  scenario.axes = restricted(std::move(scenario.axes), fit);
  return scenario;
}

}  // namespace mtsim::scenarios
