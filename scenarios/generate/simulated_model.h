// SPDX-License-Identifier: Apache-2.0
// A model on the simulated clusters of a plan, in this process or, under mpirun, with its values spread over several.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/checkpoint.h"
#include "runtime/backend/cluster_backend.h"
#include "runtime/backend/parallel_backend.h"
#include "runtime/comm/transport.h"
#include "sim/cluster.h"

namespace mtsim::scenarios {

struct SimulatedOptions {
  sim::ClusterOptions cluster;  // depth is what is asked for; clusters of other processes run in timing depth
  runtime::ClusterBackendOptions backend;
  runtime::Parallelism parallelism;
  std::vector<std::pair<std::string, std::string>> inputs;  // what all processes have to agree on, by name
};

/// What one process of the run executed.
struct RankWork {
  int rank = 0;
  std::vector<int> clusters;  // whose values it computed
  std::int64_t packets = 0;
};

class SimulatedModel {
 public:
  /// Throws UsageError for options that go with one cluster only, and what the backends throw.
  SimulatedModel(const sim::MachineConfig& machine, const models::LlamaConfig& config,
                 const models::Checkpoint* checkpoint, const SimulatedOptions& options);

  runtime::Backend& backend() { return m_single ? static_cast<runtime::Backend&>(*m_single) : *m_parallel; }
  std::int64_t layers() const;
  std::int64_t weight_bytes() const;  // of all clusters
  std::int64_t cache_bytes() const;
  int clusters() const { return static_cast<int>(m_clusters.size()); }
  /// Of all processes of an mpirun; each calls it. Empty for one cluster without mpirun.
  std::vector<RankWork> work();

 private:
  std::vector<std::unique_ptr<sim::Cluster>> m_clusters;
  std::unique_ptr<runtime::Transport> m_transport;
  std::unique_ptr<runtime::ClusterBackend> m_single;     // one cluster, this process
  std::unique_ptr<runtime::ParallelBackend> m_parallel;  // all else
  std::int64_t m_layers = 0;
};

/// Sizes of a checkpoint's files and a hash of how they begin and end: tells two models apart without reading all of
/// them.
std::string identity_of(const models::Checkpoint& checkpoint);

}  // namespace mtsim::scenarios
