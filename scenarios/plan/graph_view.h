// SPDX-License-Identifier: Apache-2.0
// How a layer's graph is cut into units for a cluster, and why so: `mtsim plan --show-graph`.
#pragma once

#include <cstdint>
#include <string>

#include "scenarios/operator.h"
#include "sim/config/machine.h"

namespace mtsim::scenarios {

struct GraphRequest {
  std::string model;
  std::int64_t tokens = 512, context = 0, batch = 1, layer = 0;  // new tokens and cached ones of each sequence
  std::string dtype = "f16", plan = "a2";
};

struct GraphView {
  Json json;
  std::string text;
};

/// Throws UsageError for what the model does not have.
GraphView show_graph(const GraphRequest& request, const sim::Machine& machine);

}  // namespace mtsim::scenarios
