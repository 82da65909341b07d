// SPDX-License-Identifier: Apache-2.0
// One plan in one cell of a serving scenario: its workload, its pool group, its numbers.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "runtime/serving/serve.h"
#include "scenarios/operator.h"
#include "scenarios/serving/serving_costs.h"
#include "scenarios/serving/serving_scenario.h"

namespace mtsim::scenarios {

/// A cell's plan as served. `json`: status, plan, groups, metrics, pools, buffer, and with events the requests and what
/// each stage did. Passes between processes as it is.
struct ServingOutcome {
  Json json = Json::object();

  bool fits() const { return json.at("status") == "done"; }
  double metric(std::string_view name) const { return json.at("metrics").at(name).get<double>(); }
  std::string plan_text() const { return json.at("plan").at("text").get<std::string>(); }
};

/// What groups did whose plan and workload are the same: cells that differ in the number of groups share it. Good as
/// long as the costs stay what they are.
class GroupRuns {
 public:
  const runtime::ServingResult* find(const std::string& key) const;
  const runtime::ServingResult& keep(const std::string& key, runtime::ServingResult result);

 private:
  std::map<std::string, runtime::ServingResult> m_runs;
};

struct ServeCellOptions {
  bool events = false;         // each stage's work in the outcome
  std::string trace;           // for ui.perfetto.dev; "": none
  GroupRuns* known = nullptr;  // may be absent
};

ServingOutcome serve_cell(const ServingScenario& scenario, const ScenarioCell& cell, const PinnedPlan& pinned,
                          BatchRule rule, ServingCosts& costs, const ServeCellOptions& options = {});

}  // namespace mtsim::scenarios
