// SPDX-License-Identifier: Apache-2.0
// What a plan keeps in the DDR of a cluster of each pool: eqs. (12) to (16), and the room of the buffer.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/serving/iteration_cost.h"
#include "runtime/serving/serving_plan.h"

namespace mtsim::runtime {

/// Bytes of the fullest cluster of a pool.
struct ClusterMemory {
  std::int64_t weights = 0;   // eqs. (12), (14)
  std::int64_t kv = 0;        // at most: eq. (15); of a prefill pool the caches that are made and those that leave
  std::int64_t overhead = 0;  // eq. (16)
  std::int64_t there = 0;

  std::int64_t slack() const { return there - weights - kv - overhead; }
};

/// Positions of the longest request.
struct LongestRequest {
  std::int64_t prompt = 0;   // tokens that are prefilled together
  std::int64_t context = 0;  // in its cache when it ends
};

struct PlanMemory {
  ClusterMemory prefill, decode;     // prefill: all zero when coupled
  std::int64_t prefill_caches = 0;   // micro-batches a stage has room for: one that is made, one that leaves
  std::int64_t kv_budget = 0;        // of a decode cluster, for the caches of its stage
  std::int64_t position = 0;         // bytes there of one position of a sequence
  std::int64_t buffer = 0;           // Buf_max: of the pool's clusters and the slack of the others
  std::int64_t buffer_clusters = 0;  // that keep it
};

/// Throws RuntimeError where a stage's weights, one request or a reserved batch do not fit: bytes needed and there.
PlanMemory memory_of(const ServingPlan& plan, const IterationCost& cost, const LongestRequest& longest);

/// Positions that the caches of a decode cluster have room for, beside weights and overhead. Throws as memory_of.
std::int64_t decode_positions(const ServingPlan& plan, const IterationCost& cost);

}  // namespace mtsim::runtime
