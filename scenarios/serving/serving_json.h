// SPDX-License-Identifier: Apache-2.0
// What a serving run did, as JSON: the form in which cells pass between processes, go to files and are explained.
#pragma once

#include <cstdint>

#include "runtime/planner/planner.h"
#include "runtime/serving/serve.h"
#include "scenarios/operator.h"

namespace mtsim::scenarios {

/// Pools, buffer, micro-batch, clusters, and "text".
Json plan_json(const runtime::ServingPlan& plan);

/// status, metrics, pools, buffer, KV: of one group, tokens/s of all. `is_steady`: tokens_s leaves filling and draining
/// out.
void describe_run(const runtime::ServingResult& result, std::int64_t groups, bool is_steady,
                  const runtime::ServiceLevel& slo, Json& json);

/// requests, events and occupancy: what `mtsim explain` reads.
void describe_events(const runtime::ServingResult& result, Json& json);

}  // namespace mtsim::scenarios
