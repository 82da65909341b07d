// SPDX-License-Identifier: Apache-2.0
// One layer of a model, or a tensor-parallel share of it, on the simulated cluster in timing depth, with what comes
// before the first and behind the last. All layers take the same cycles: that is all that is simulated of a stage.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/dtype.h"
#include "models/config.h"
#include "models/graph.h"
#include "runtime/backend/backend.h"
#include "runtime/kv/kv_cache.h"
#include "runtime/plan.h"
#include "sim/cluster.h"

namespace mtsim::runtime {

/// Cycles of a cluster.
struct LayerCycles {
  double embed = 0;                 // before the first layer
  double linear = 0;                // of a layer, without attention
  double attention = 0;             // of a layer
  double head = 0;                  // behind the last layer
  std::int64_t stage_launches = 0;  // whatever layers a stage has
  std::int64_t embed_launches = 0, layer_launches = 0, head_launches = 0;
  double launch = 0;  // of each

  double layer() const { return linear + attention + launch * static_cast<double>(layer_launches); }
};

class LayerSimulation {
 public:
  /// `cluster`: of timing depth, reset to its machine in every run.
  LayerSimulation(sim::Cluster& cluster, const sim::MachineConfig& machine, const models::LlamaConfig& config,
                  kernels::DType dtype, const ExecutionPlan& plan, const KvOptions& kv);

  /// Throws RuntimeError when a kernel faults, and what ClusterStage throws.
  LayerCycles run(std::int64_t tp, const std::vector<models::SequenceStep>& batch);
  /// Attention of a layer, of one sequence. Its KV heads pass one after the other, so that two of them tell all.
  double prefill_attention(std::int64_t tp, std::int64_t tokens);

  std::int64_t runs() const { return m_runs; }

  /// What of it each operator took, those before and behind the layer too.
  std::vector<OperatorTime> operators(std::int64_t tp, const std::vector<models::SequenceStep>& batch);

 private:
  /// One layer in one cluster; with the number of sums over the group.
  std::pair<IterationResult, std::int64_t> simulate(const models::LlamaConfig& config, std::int64_t tp,
                                                    const std::vector<models::SequenceStep>& batch, bool with_ends);
  LayerCycles run(const models::LlamaConfig& config, std::int64_t tp, const std::vector<models::SequenceStep>& batch,
                  bool with_ends);

  sim::Cluster& m_cluster;
  const sim::MachineConfig m_machine;
  const models::LlamaConfig m_config;
  const kernels::DType m_dtype;
  const ExecutionPlan m_plan;
  const KvOptions m_kv;
  std::int64_t m_runs = 0;
};

}  // namespace mtsim::runtime
