// SPDX-License-Identifier: Apache-2.0
// A whole model on one simulated cluster.
#pragma once

#include <cstdint>

#include "models/checkpoint.h"
#include "runtime/backend/backend.h"
#include "runtime/backend/cluster_stage.h"
#include "sim/cluster.h"

namespace mtsim::runtime {

struct ClusterBackendOptions : StageOptions {
  std::int64_t layers = -1;  // the first so many only; -1: all
};

class ClusterBackend final : public Backend {
 public:
  /// As ClusterStage; throws RuntimeError for more layers than there are.
  ClusterBackend(sim::Cluster& cluster, const models::LlamaConfig& config, const models::Checkpoint* checkpoint,
                 const ClusterBackendOptions& options);

  const models::LlamaConfig& config() const override { return m_stage.config(); }
  bool has_values() const override { return m_stage.has_values(); }
  double clock_hz() const override { return m_stage.machine().core.clock_ghz * 1e9; }
  bool begin(std::int64_t sequence, std::int64_t most) override { return m_stage.begin(sequence, most); }
  void end(std::int64_t sequence) override { m_stage.end(sequence); }
  std::int64_t length(std::int64_t sequence) const override { return m_stage.length(sequence); }
  IterationResult run(const Iteration& iteration) override;

  const DeviceModel& model() const { return m_stage.model(); }
  const KvCache& cache() const { return m_stage.cache(); }

 private:
  ClusterStage m_stage;
};

}  // namespace mtsim::runtime
