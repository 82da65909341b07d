// SPDX-License-Identifier: Apache-2.0
// What a stage takes, from the simulated cluster. A layer is simulated and counted as often as a stage has it; what is
// simulated is kept for the process, for every plan of the same model on the same machine.
//
// Prefill: a micro-batch as it is, up to a number of different ones; beyond that by its tokens (linear layers) and
// attention prompt by prompt, each a StepCurve. Decode: linear layers by the number of requests, attention as the mean
// of what that many requests of each one's context would take, linear between simulated points of it. Samples of both
// are simulated as they are: error() is how far off they were. A number of requests for which one was off by more than
// 1 % is simulated batch by batch from then on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/dtype.h"
#include "models/config.h"
#include "runtime/kv/kv_cache.h"
#include "runtime/plan.h"
#include "runtime/serving/iteration_cost.h"
#include "sim/cluster.h"
#include "sim/link.h"

namespace mtsim::runtime {

struct SimulatedCostOptions {
  kernels::DType dtype = kernels::DType::f16;
  ExecutionPlan plan = ExecutionPlan::named("a2");
  KvOptions kv;
  std::int64_t context = 0;  // longest that is asked for; 0: the model's
};

/// How far an interpolated layer was from the simulated one, of those that were looked at.
struct InterpolationError {
  std::int64_t interpolated = 0;  // batches
  std::int64_t sampled = 0;
  double mean_percent = 0, worst_percent = 0;
  std::string worst_batch;  // "TP 2, 23 requests of 512 to 640 positions"
};

class SimulatedCost final : public IterationCost {
 public:
  static constexpr double k_most_error_percent = 1;

  /// `cluster`: reset to `machine` in timing depth whenever something is simulated; outlives this.
  SimulatedCost(sim::Cluster& cluster, const sim::Machine& machine, const models::LlamaConfig& config,
                const SimulatedCostOptions& options);
  ~SimulatedCost() override;

  /// Prefill and decode in one batch are simulated as they are. Throws models::ModelError for a TP the model cannot be
  /// cut by, RuntimeError for an empty batch.
  StageTime stage(const StageShape& stage, std::span<const models::SequenceStep> batch) override;
  double message_s(std::int64_t bytes, bool same_device) const override;
  double host_s(std::int64_t requests) const override;
  std::int64_t layers() const override { return m_config.layers; }
  std::int64_t activation_bytes_per_token() const override;
  // Without padding of heads to the multiple of 16 elements that attention takes.
  std::int64_t weight_bytes(std::int64_t tp, std::int64_t stages) const override;
  std::int64_t kv_bytes_per_token(std::int64_t tp, std::int64_t stages) const override;
  std::int64_t memory_bytes() const override { return m_machine.ddr.bytes; }
  std::int64_t overhead_bytes() const override { return m_machine.ddr.overhead_bytes; }

  /// Of all that share what is simulated.
  InterpolationError error() const;
  /// Layers that were simulated for it.
  std::int64_t simulations() const;

 private:
  class Layers;  // what is simulated of one model on one machine, and what is known of it

  double seconds(double cycles) const { return cycles / (m_machine.core.clock_ghz * 1e9); }

  const sim::MachineConfig m_machine;
  const models::LlamaConfig m_config;
  const SimulatedCostOptions m_options;
  const sim::LinkModel m_links;
  std::shared_ptr<Layers> m_layers;
};

}  // namespace mtsim::runtime
