// SPDX-License-Identifier: Apache-2.0
// Equations (12) to (22) of the paper (III-D3), each by its number. What the paper calls T is asked of an
// IterationCost.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/serving/iteration_cost.h"
#include "runtime/serving/serving_plan.h"

namespace mtsim::runtime {

/// Bytes of one cluster's DDR: the left side of eq. (16), and the right one.
struct Footprint {
  std::int64_t params = 0, kv = 0, overhead = 0;
  std::int64_t there = 0;

  std::int64_t needed() const { return params + kv + overhead; }
  bool fits() const { return needed() < there; }  // (16)
  std::int64_t slack() const { return there - needed(); }
};

/// (12): Model size / PP_P. (13): micro-batch * S_max * 2 * D_size * D_emb, one layer's K and V: those of a layer that
/// is done are on their way.
Footprint prefill_memory(const IterationCost& cost, const Pool& prefill, std::int64_t s_max);

/// (14): Model size / (TP * PP_D). (15): micro-batch * S_max * 2 * D_size * D_emb * L / TP; a stage has L / PP_D layers
/// of each of PP_D micro-batches.
Footprint decode_memory(const IterationCost& cost, const Pool& decode, std::int64_t s_max);

/// (17): bytes a cluster sends in one all-reduce of `rows` rows of D_emb elements. A layer has two (19).
std::int64_t all_reduce_bytes(std::int64_t rows, std::int64_t embedding, std::int64_t bytes_per_element,
                              std::int64_t tp);

StageTime operator+(const StageTime& a, const StageTime& b);
StageTime operator-(const StageTime& a, const StageTime& b);
StageTime operator*(double times, const StageTime& time);

/// (18), and with tp > 1 (19): what a layer takes, T_norm + T_attention + T_norm + T_ffn with two all-reduces and their
/// launches; and what a stage takes beside its layers. Measured on stages of one and two layers; with the layers of a
/// model that has fewer than three, `layer` is the whole of it.
struct LayerTime {
  StageTime layer;
  StageTime stage;  // of each stage: launching the graph
  StageTime head;   // of the last one

  /// The slowest stage of `stages`, and all of them one behind the other.
  StageTime slowest(std::int64_t layers, std::int64_t stages) const;
  StageTime all(std::int64_t layers, std::int64_t stages) const;
};
LayerTime layer_time(IterationCost& cost, std::int64_t tp, std::span<const models::SequenceStep> batch);

/// (20): DP_P * PP_P + TP_D * PP_D + B_P, with DP_D = 1 as the paper searches; each decode replica counts here.
std::int64_t pool_clusters(const Pool& prefill, const Pool& decode, std::int64_t buffer_clusters);

/// Clusters that hold so many bytes of K and V and nothing else: B_P.
std::int64_t buffer_clusters(const IterationCost& cost, std::int64_t bytes);

/// max(T_p / DP_P, T_d): seconds for a batch when both pools work at once.
double period_s(double prefill_s, std::int64_t prefill_dp, double decode_s);

/// (22): what is smallest where eq. (21), 1 / Clu_pool * Clu_total / max(T_p / DP_P, T_d), is largest.
double cluster_seconds(std::int64_t pool_clusters, double period_s);

}  // namespace mtsim::runtime
