// SPDX-License-Identifier: Apache-2.0
// The table a planner searched, the best first, what died of what; and the best as YAML.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/planner/planner.h"
#include "scenarios/operator.h"
#include "sim/config/machine.h"

namespace mtsim::scenarios {

struct PlanReport {
  std::string model;  // as the user named it
  models::LlamaConfig config;
  runtime::PlannerOptions options;
  runtime::PlanSearch search;
  std::int64_t top = 10;  // rows to print
  bool all = false;       // all of them, and the dead
};

Json plan_report_json(const PlanReport& report, const sim::Machine& machine);
std::string plan_report_text(const PlanReport& report, const sim::Machine& machine);
/// A scenario of kind serving with the best plan. Nothing is alive: our own bug.
std::string plan_report_yaml(const PlanReport& report, const sim::Machine& machine);

}  // namespace mtsim::scenarios
