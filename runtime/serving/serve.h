// SPDX-License-Identifier: Apache-2.0
// A workload on pools of clusters, event by event: requests join and leave per iteration, linear layers work on a whole
// micro-batch, attention request by request (selective batching, III-D1); caches wait in a bounded buffer between
// prefill and decode (P-B-D, III-D2).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/serving/executor.h"
#include "runtime/serving/iteration_cost.h"
#include "runtime/serving/request.h"
#include "runtime/serving/serving_plan.h"

namespace mtsim::runtime {

enum class Outcome : std::uint8_t { finished, rejected };  // rejected: longer than the model or a cache allows

/// Seconds since the start.
struct RequestRecord {
  std::int64_t id = 0;
  Outcome outcome = Outcome::finished;
  std::string why;  // of a rejection
  std::int64_t prompt_tokens = 0, output_tokens = 0;
  double arrival_s = 0, prefill_start_s = 0, first_token_s = 0, decode_start_s = 0, finish_s = 0;
  std::int64_t preemptions = 0;   // its cache was given up and computed again
  std::vector<std::int32_t> ids;  // prompt and generated, where values are computed

  double ttft_s() const { return first_token_s - arrival_s; }
  /// Mean time of each token behind the first.
  double tpot_s() const;
};

/// What is where at a time.
struct Occupancy {
  double at_s = 0;
  std::int64_t queued = 0;        // requests that no pool has
  std::int64_t prefilling = 0;    // requests
  std::int64_t buffered = 0;      // requests behind prefill that are not decoded yet
  std::int64_t buffer_bytes = 0;  // reserved and held
  std::int64_t decoding = 0;      // requests
  std::int64_t kv_bytes = 0;      // of all caches, wherever: blocks given to sequences, and buffer_bytes
  bool operator==(const Occupancy&) const = default;
};

struct PoolUse {
  std::string name;  // "prefill", "decode"
  std::int64_t clusters = 0;
  double busy_s = 0;       // summed over its stages
  double available_s = 0;  // stages * the run's time
  double paused_s = 0;     // prefill stopped by back-pressure
  std::int64_t iterations = 0;
};

/// One stage at work: for the Perfetto trace and for `mtsim explain`.
struct StageEvent {
  std::int64_t pool = 0, replica = 0, stage = 0;  // pool: of ServingResult::pools
  double start_s = 0;
  StageTime time;
  std::vector<std::int64_t> requests;
  std::vector<models::SequenceStep> batch;
};

/// Tokens that came out of one iteration.
struct Emission {
  double at_s = 0;
  std::int64_t tokens = 0;
};

struct ServingResult {
  std::vector<RequestRecord> requests;  // by id
  double makespan_s = 0;                // until the last one finished
  std::vector<Occupancy> occupancy;     // whenever it changed
  std::vector<PoolUse> pools;
  std::vector<StageEvent> events;          // by start; empty unless asked for
  std::vector<Emission> emissions;         // by time
  std::int64_t buffer_capacity_bytes = 0;  // Buf_max; 0 when there is none
  std::int64_t peak_buffer_bytes = 0, peak_kv_bytes = 0;
  std::int64_t preemptions = 0, rejected = 0;
  double migrated_bytes = 0;  // of KV between pools

  /// Generated tokens over the makespan: the paper's definition, III-D1.
  double tokens_per_s() const;
  /// From the first to the last of the middle `share` of tokens: without filling and draining the pools.
  double steady_tokens_per_s(double share = 0.5) const;
};

/// Told what happens while it does.
class ServingObserver {
 public:
  virtual ~ServingObserver() = default;
  virtual void worked(const StageEvent& event) = 0;      // when a stage begins
  virtual void changed(const Occupancy& occupancy) = 0;  // not more than once at a time
};

struct ServeOptions {
  std::int64_t context = 0;  // longest the model was made for
  bool keep_events = false;
  std::int64_t clusters_per_device = 4;
  ServingObserver* observer = nullptr;
  Executor* executor = nullptr;  // computes values; every request then has ids
};

/// One pool group (ServingPlan::clusters() clusters). Throws RuntimeError when the model, the batch or the buffer does
/// not fit a cluster's memory: bytes needed and there.
ServingResult serve(const ServingPlan& plan, const Workload& workload, IterationCost& cost,
                    const ServeOptions& options);

}  // namespace mtsim::runtime
