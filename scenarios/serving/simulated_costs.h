// SPDX-License-Identifier: Apache-2.0
// Costs from simulated clusters.
#pragma once

#include <memory>

#include "scenarios/serving/serving_costs.h"

namespace mtsim::scenarios {

/// MakeServingCosts of `mtsim run`, `plan` and `fit`: in timing depth, on one elaborated cluster.
std::unique_ptr<ServingCosts> simulated_costs(const sim::Machine& machine);

}  // namespace mtsim::scenarios
