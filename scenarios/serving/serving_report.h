// SPDX-License-Identifier: Apache-2.0
// Results of serving scenarios and of the planner, as text and JSON.
#pragma once

#include <string>

#include "scenarios/serving/serving_fit.h"
#include "scenarios/serving/serving_runner.h"
#include "sim/config/machine.h"

namespace mtsim::scenarios {

/// cases, summary, machine, assumed, host: as DESIGN of `mtsim run`, with plans, bands and what stands beside.
Json serving_json(const ServingScenario& scenario, const ServingRun& run, const sim::Machine& machine);
/// The paper's table: per cell the paper's value, the simulated one, its band, the signed error, what stands beside.
std::string serving_text(const ServingScenario& scenario, const ServingRun& run, const sim::Machine& machine);

Json serving_fit_json(const ServingFit& fit);
std::string serving_fit_text(const ServingFit& fit);

}  // namespace mtsim::scenarios
