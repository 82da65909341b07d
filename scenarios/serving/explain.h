// SPDX-License-Identifier: Apache-2.0
// From a request of a serving run to what made it slow: its phases, the stage that took most of it, and in a layer of
// that stage the kernel, and what bounds that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/config.h"
#include "models/graph.h"
#include "runtime/backend/backend.h"
#include "runtime/plan.h"
#include "scenarios/operator.h"
#include "sim/config/machine.h"

namespace mtsim::scenarios {

/// Seconds of a request, in the order in which they pass; they sum to its time from arrival to end.
struct RequestPhases {
  double queue_s = 0;      // until prefill begins
  double prefill_s = 0;    // until the first token
  double migration_s = 0;  // its cache on the way, or waiting in the buffer, until decode begins
  double decode_s = 0;     // all tokens behind the first
  double sum_s() const { return queue_s + prefill_s + migration_s + decode_s; }
};

/// What a stage did for the request.
struct StageShare {
  std::string pool;
  std::int64_t pool_index = 0, replica = 0, stage = 0;
  std::int64_t iterations = 0;
  double kernels_s = 0, launches_s = 0, all_reduce_s = 0;
  double slowest_s = 0;  // of one iteration
  std::vector<models::SequenceStep> slowest_batch;
  double busy_s() const { return kernels_s + launches_s + all_reduce_s; }
};

struct ExplainedRequest {
  std::int64_t id = 0, prompt_tokens = 0, output_tokens = 0, preemptions = 0;
  std::string cell;  // "model=7b devices=8 prompt=512"
  RequestPhases phases;
  std::vector<StageShare> stages;  // the busiest first
  double waiting_s = 0;  // in prefill and decode, but in no stage: behind other micro-batches, on links, on the hosts

  // Of the run, to simulate the slowest stage again.
  std::string model, execution;
  std::int64_t tp = 1;
};

/// `run`: JSON of `mtsim run --events`; `cell`: which of its cases, or the only one that has events. Throws UsageError
/// for other JSON, and for a request or a case that there is not.
ExplainedRequest explain_request(const Json& run, const std::string& file, std::int64_t request,
                                 std::optional<std::int64_t> cell);

/// The machine of a result, with what was overridden.
sim::Machine machine_of(const Json& run);

/// What holds an operator up most.
struct Bound {
  std::string by;          // "DDR", "GSM", "VMAC", "broadcast_step", ...
  double share = 0;        // of the cores' cycles that are lost to it, or spent on it
  double utilisation = 0;  // of the DDR's or GSM's bandwidth, of the peak MAC rate
  std::string text;        // "dma_wait 79 % of the cores' cycles; DDR at 30.1 of 31.4 GB/s"
};
/// `lanes_per_word`: 4 for FP16, 2 for FP32.
Bound bound_of(const runtime::OperatorTime& op, const sim::MachineConfig& machine, int lanes_per_word);

/// Operators of one layer of a stage, the longest first.
std::vector<runtime::OperatorTime> layer_operators(const ExplainedRequest& request, const sim::Machine& machine);

Json explained_json(const ExplainedRequest& request, const std::vector<runtime::OperatorTime>& operators,
                    const sim::Machine& machine);
std::string explained_text(const ExplainedRequest& request, const std::vector<runtime::OperatorTime>& operators,
                           const sim::Machine& machine);

}  // namespace mtsim::scenarios
