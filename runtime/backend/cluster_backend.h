// SPDX-License-Identifier: Apache-2.0
// A model on one simulated cluster: every operator of an iteration as microcode. In functional depth with values, in
// timing depth with time alone; the same programs.
#pragma once

#include <cstdint>
#include <map>

#include "kernels/dtype.h"
#include "models/checkpoint.h"
#include "runtime/backend/backend.h"
#include "runtime/hthreads.h"
#include "runtime/kv/kv_cache.h"
#include "runtime/lower/lowering.h"
#include "runtime/plan.h"
#include "runtime/weights/device_model.h"
#include "sim/cluster.h"

namespace mtsim::runtime {

struct ClusterBackendOptions {
  kernels::DType dtype = kernels::DType::f16;  // of weights, activations (the residual stream too) and cache
  ExecutionPlan plan = ExecutionPlan::named("a2");
  KvOptions kv;
  std::int64_t layers = -1;                  // the first so many only; -1: all
  std::int64_t longest = 0;                  // tokens of the longest sequence
  std::int64_t mapped_from = k_mapped_from;  // bytes of weights, of DeviceModel
};

class ClusterBackend final : public Backend {
 public:
  /// `checkpoint` may be absent in timing depth. Throws RuntimeError when DDR does not hold weights and cache, and
  /// for more layers than there are.
  ClusterBackend(sim::Cluster& cluster, const models::LlamaConfig& config, const models::Checkpoint* checkpoint,
                 const ClusterBackendOptions& options);

  const models::LlamaConfig& config() const override { return m_given; }
  bool has_values() const override { return m_cluster.depth() == sim::Depth::functional; }
  double clock_hz() const override { return m_cluster.machine().core.clock_ghz * 1e9; }
  bool begin(std::int64_t sequence, std::int64_t most) override;
  void end(std::int64_t sequence) override;
  std::int64_t length(std::int64_t sequence) const override { return m_lengths.at(sequence); }
  IterationResult run(const Iteration& iteration) override;

  const DeviceModel& model() const { return m_model; }
  const KvCache& cache() const { return m_cache; }

 private:
  struct Batch;
  void check(const Iteration& iteration) const;
  Batch batch_of(const Iteration& iteration);
  kernels::AttentionBlocks blocks(std::int64_t sequence, int layer) const;
  void launch(const LoweredIteration& lowered, IterationResult& result);
  void launch_all(const LoweredIteration& lowered, IterationResult& result);
  static void take_verdict(const sim::LaunchResult& launch, IterationResult& result);
  std::vector<float> read_logits(sim::Pointer at, std::int64_t rows) const;

  sim::Cluster& m_cluster;
  const models::LlamaConfig m_given;
  ClusterBackendOptions m_options;
  DeviceModel m_model;
  KvCache m_cache;
  sim::Pointer m_pool;  // K^T and V of all blocks: [layers][2][blocks][bytes of a block in a layer]
  sim::Cluster::Allocations m_kept;
  ThreadGroup m_threads;
  std::map<std::int64_t, std::int64_t> m_lengths;
};

}  // namespace mtsim::runtime
