// SPDX-License-Identifier: Apache-2.0
// Sections of docs/fidelity.md about models on many clusters.
#pragma once

#include <string>

#include "scenarios/operator.h"

namespace mtsim::scenarios {

/// From the JSON of `mtsim run` of a serving scenario.
std::string serving_fidelity_section(const Json& run);
/// From the JSON of `mtsim fit` of serving scenarios.
std::string batches_section(const Json& fit);
/// Pools that nobody has printed, over all runs' JSON.
std::string assumed_plans_section(const std::vector<Json>& runs);

}  // namespace mtsim::scenarios
