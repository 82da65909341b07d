// SPDX-License-Identifier: Apache-2.0
// Which pools serve a model best on so many clusters: the constraint-based search of III-D3 over TP, PP and DP of
// prefill and decode, the micro-batch and the buffer. A pure function of the model, its cost and the options.
//
//   PlanSearch search = search_plans(config, cost, {.clusters = 32, .prompt_tokens = 512, .output_tokens = 128});
//   rank_by_serving(search, cost, options);
//   search.rows.front().plan
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/config.h"
#include "runtime/planner/equations.h"
#include "runtime/serving/metrics.h"
#include "runtime/serving/serve.h"

namespace mtsim::runtime {

enum class Objective : std::uint8_t {
  throughput,  // tokens a second when there is always a request waiting: eq. (21)
  goodput      // tokens a second of requests that arrive at random and are served within an SLO
};
std::string_view to_string(Objective objective);
/// Throws RuntimeError.
Objective parse_objective(const std::string& word);

struct PlannerOptions {
  std::int64_t clusters = 0;
  std::int64_t clusters_per_device = 4;
  std::int64_t prompt_tokens = 512, output_tokens = 128;
  Objective objective = Objective::throughput;
  ServiceLevel slo;
  std::string execution = "a2";
  std::int64_t requests = 0;  // a pool has at a time: B; 0: the best for each
  std::int64_t most_tp = 16;  // clusters of a device: no all-reduce over the network
  std::int64_t most_micro_batch = 256;
  std::int64_t most_decode_replicas = 4;  // DP_D; the paper searches with 1
};

/// What a candidate died of.
enum class Death : std::uint8_t {
  none,
  prefill_memory,  // (16) with (12) and (13)
  decode_memory,   // (16) with (14) and (15): not one request a micro-batch fits
  clusters,        // (20): the pool is larger than what there is
  buffer,          // a pool with room for the caches of a batch is larger than what there is
  all_reduce,      // (17), (19): a layer takes no less than with half of TP
  migration,       // caches do not leave prefill as fast as they are made
  slo              // even one request a micro-batch takes longer
};
std::string_view to_string(Death death);

struct PlanRow {
  ServingPlan plan;
  Footprint prefill_memory, decode_memory;  // prefill: nothing when coupled
  std::int64_t buffer_bytes = 0;            // of the caches of a batch, which the buffer takes
  double prefill_stage_s = 0;               // the slowest stage, a micro-batch
  double decode_stage_s = 0;
  double all_reduce_share = 0;    // of the decode stage: (17) over the links
  double prefill_s = 0;           // T_p of (21): the batch through one prefill pipeline
  double decode_s = 0;            // T_d: all tokens of the batch
  std::int64_t clusters = 0;      // (20)
  std::int64_t groups = 0;        // how often the pool fits: floor(clusters there / clusters)
  double tokens_s = 0;            // (21): of all groups
  double ttft_s = 0, tpot_s = 0;  // with a free prefill pool, a full decode pool

  Death death = Death::none;
  double needed = 0, there = 0;  // of what it died of: bytes, clusters or seconds
  std::string why;               // in words, with both

  // By rank_by_serving().
  std::optional<double> served_tokens_s;   // of all groups, all requests there at once
  std::optional<double> goodput_tokens_s;  // of all groups, at the highest rate that keeps the SLO
  std::optional<double> goodput_requests_s;
  bool alive() const { return death == Death::none; }
};

struct PlanSearch {
  std::vector<PlanRow> rows;  // those alive first, the best first; then the dead, by reason
  std::int64_t alive() const;
  /// How many died of what.
  std::vector<std::pair<Death, std::int64_t>> deaths() const;
};

/// Degrees of tensor parallelism: they divide heads, KV heads, feed-forward width and vocabulary.
std::vector<std::int64_t> tensor_degrees(const models::LlamaConfig& config, std::int64_t most);

/// Closed form, best by eq. (21) first; with an SLO only what keeps it. Throws RuntimeError when there is nothing to
/// plan for (no cluster, no token, a context longer than the model's).
PlanSearch search_plans(const models::LlamaConfig& config, IterationCost& cost, const PlannerOptions& options);

/// Runs the first `count` rows through serve() and sorts them by what they did: tokens a second, or the goodput, for
/// which the rate is searched that serves nine of ten requests within the SLO. A row that serve() refuses dies.
void rank_by_serving(PlanSearch& search, std::int64_t count, const models::LlamaConfig& config, IterationCost& cost,
                     const PlannerOptions& options, const std::function<void()>& on_row = {});

}  // namespace mtsim::runtime
