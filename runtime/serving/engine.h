// SPDX-License-Identifier: Apache-2.0
// What serve() runs: requests on their way from the queue through prefill, buffer and decode. engine_prefill.cpp has
// the way up to the first token and the cache's to where it is decoded, engine_decode.cpp the iterations behind it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "runtime/serving/clock.h"
#include "runtime/serving/decode_seats.h"
#include "runtime/serving/kv_buffer.h"
#include "runtime/serving/pipeline.h"
#include "runtime/serving/pool_memory.h"
#include "runtime/serving/serve.h"

namespace mtsim::runtime {

/// In its cache when it ends: the last token goes into none.
inline std::int64_t positions_of(const Request& request) { return request.prompt_tokens + request.output_tokens - 1; }

class Engine {
 public:
  /// `memory` is of the requests that are accepted; `result` has a record of each request, rejected ones complete.
  Engine(const ServingPlan& plan, const Workload& workload, IterationCost& cost, const ServeOptions& options,
         const PlanMemory& memory, std::int64_t longest, ServingResult& result);
  void run();

 private:
  /// Where the cache of a request is made for.
  struct Destination {
    std::optional<std::size_t> replica = {};  // whose seat it has; none: the buffer
    std::int64_t buffer_bytes = 0;
  };
  struct Live {
    std::int64_t generated = 0;  // tokens, kept when it is preempted
    std::int64_t context = 0;    // positions in its cache
    Destination destination;
    double cache_left_s = 0;  // prefill's last layer has left
    bool has_decoded = false, has_ended = false;
  };
  struct PrefillReplica {
    std::unique_ptr<Pipeline> pipeline;
    std::vector<double> links_free;      // of each stage
    std::optional<double> paused_since;  // waiting for room
  };
  struct DecodeReplica {
    std::unique_ptr<Pipeline> pipeline;
    DecodeSeats seats;
  };

  bool coupled() const { return m_plan.mode == PipelineMode::coupled; }
  Live& live(std::int64_t request) { return m_live[static_cast<std::size_t>(request)]; }
  const Request& asked(std::int64_t request) const { return m_workload[static_cast<std::size_t>(request)]; }
  RequestRecord& record(std::int64_t request) { return m_result.requests[static_cast<std::size_t>(request)]; }
  /// Tokens that a prefill of it takes: the prompt, and what it had generated when it was preempted.
  std::int64_t to_prefill(std::int64_t request) { return asked(request).prompt_tokens + live(request).generated; }
  std::int64_t most(std::int64_t request) const { return positions_of(asked(request)); }
  /// That it has room for when it gets a seat: of the prefill, and of the first iteration behind it.
  std::int64_t at_first(std::int64_t request) { return std::min(most(request), to_prefill(request) + 1); }
  bool needs_decode(std::int64_t request) { return live(request).generated + 1 < asked(request).output_tokens; }

  void settle();
  void observe();
  void begin_stage(std::size_t pool, std::size_t replica, std::int64_t stage, const StageTime& time, const Pass& pass);
  Pass prefill_pass(std::vector<std::int64_t> requests);
  std::vector<SequenceInput> inputs(const Pass& pass);
  /// One more token of each: from the executor, where there is one.
  void emit(const PoolPlace& place, const Pass& pass);
  void finish(std::int64_t request);

  // engine_prefill.cpp
  void start_prefill();
  void start_prefill(std::size_t replica);
  bool find_room(std::int64_t request);
  /// A seat in the emptiest replica that has room.
  std::optional<std::size_t> sit(std::int64_t request);
  std::int64_t free_seats() const;
  double send_cache(std::size_t replica, std::int64_t stage, const StageTime& time, const Pass& pass);
  void prefilled(std::size_t replica, const Pass& pass);
  void cache_arrived(std::size_t replica, std::int64_t request);
  void drop_cache(std::int64_t request);
  void pull_caches();
  void pull(std::int64_t request, std::size_t replica);
  void take_seat(std::size_t replica, std::int64_t request);
  ClusterRange clusters_of(const Destination& destination) const;

  // engine_decode.cpp
  void start_coupled();
  void prefill_coupled(std::size_t replica, std::vector<std::int64_t> requests);
  void prefilled_coupled(std::size_t replica, const Pass& pass);
  void start_decode();
  void start_decode(std::size_t replica, std::size_t micro_batch);
  void decoded(std::size_t replica, std::size_t micro_batch, const Pass& pass);
  void leave_seat(std::size_t replica, std::int64_t request);
  bool make_room(std::size_t replica, std::int64_t request);
  void preempt(std::size_t replica, std::int64_t request);

  const ServingPlan& m_plan;
  const Workload& m_workload;
  IterationCost& m_cost;
  const ServeOptions& m_options;
  ServingResult& m_result;

  EventClock m_clock;
  std::vector<Live> m_live;
  std::set<std::int64_t> m_queue;     // requests that no pool has, oldest first
  std::set<std::int64_t> m_buffered;  // complete in the buffer, oldest first
  std::vector<PrefillReplica> m_prefill;
  KvBuffer m_buffer;
  ClusterRange m_buffer_clusters;
  std::vector<DecodeReplica> m_decode;
  std::size_t m_decode_pool = 0;                                        // of ServingResult::pools
  std::int64_t m_bytes_per_token = 0;                                   // K and V, of the whole model
  std::int64_t m_prefilling = 0, m_behind_prefill = 0, m_decoding = 0;  // requests
  bool m_settle_again = false;                                          // somebody was preempted
  std::int64_t m_for_buffer = 0;  // requests whose cache goes to the buffer or is there, and that have no seat
};

}  // namespace mtsim::runtime
