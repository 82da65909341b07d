// SPDX-License-Identifier: Apache-2.0
// How clusters serve a model (paper, III-D2 and III-D3): which of them prefill, which keep KV caches, which decode, and
// how the model is cut over them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/kv/kv_cache.h"
#include "runtime/plan.h"

namespace mtsim::runtime {

/// Clusters that do the same work: `dp` replicas of a pipeline of `pp` stages of `tp` clusters each.
struct Pool {
  std::int64_t tp = 1, pp = 1, dp = 1;
  std::int64_t micro_batch = 1;  // requests of one micro-batch; a pipeline has pp micro-batches under way

  std::int64_t clusters() const { return tp * pp * dp; }
  /// B = PP * micro-batch of III-D3, of all replicas.
  std::int64_t batch() const { return pp * micro_batch * dp; }
};

enum class PipelineMode : std::uint8_t {
  coupled,   // the decode pool prefills as well: a batch is prefilled, then decoded (A3; a batch of one is A0 to A2)
  bounded,   // P-B-D: prefill pool, buffer of at most Buf_max, decode pool that pulls (A4)
  unbounded  // the same without back-pressure: caches pile up when decoding is slower, as the paper warns
};
std::string_view to_string(PipelineMode mode);

/// When requests may join the batch of a coupled pool.
enum class CoupledBatch : std::uint8_t {
  together,   // a batch is prefilled, decoded and left as one: B * N / (T_p + T_d), the paper's A3
  continuous  // a free slot is taken at once; prefill goes before decode on the same stages
};
std::string_view to_string(CoupledBatch batch);

/// Where caches wait between prefill and decode. Both: the sum.
struct BufferPool {
  std::int64_t clusters = 0;  // that do nothing else
  bool slack = false;         // DDR that weights, working caches and overhead of the other pools leave
};

/// What eq. (20) counts, and how often it fits.
struct ServingPlan {
  PipelineMode mode = PipelineMode::bounded;
  ExecutionPlan execution = ExecutionPlan::named("a2");
  CoupledBatch coupled_batch = CoupledBatch::together;
  Pool prefill;  // when coupled, only its micro_batch: requests that are prefilled in one iteration
  BufferPool buffer;
  Pool decode;
  KvOptions kv;

  /// Clu_pool of eq. (20).
  std::int64_t clusters() const;
  /// "prefill 2x1, buffer 2, decode TP2 PP2, 23 a micro-batch".
  std::string str() const;
};

}  // namespace mtsim::runtime
