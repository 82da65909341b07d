// SPDX-License-Identifier: Apache-2.0
// A model over several clusters: pipeline stages of tensor-parallel groups (paper, III-D3). Cluster s * tp + r has
// share r of stage s. An iteration passes the stages one after the other; in a stage each layer adds up two partial
// sums over the group (eq. 19).
//
// Any number of processes gives the same values and the same time: each simulates all clusters, with values those that
// it owns and in timing depth the others.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/checkpoint.h"
#include "runtime/backend/backend.h"
#include "runtime/backend/cluster_stage.h"
#include "runtime/comm/transport.h"
#include "runtime/plan.h"
#include "sim/cluster.h"
#include "sim/link.h"

namespace mtsim::runtime {

class ParallelBackend final : public Backend {
 public:
  /// `clusters`: one each, functional where `transport` owns it. `first`: the number of the first of them in the
  /// transport. What all are given outlives this. Throws models::ModelError for a model that cannot be cut like that,
  /// and what ClusterStage throws.
  ParallelBackend(const std::vector<sim::Cluster*>& clusters, const models::LlamaConfig& config,
                  const models::Checkpoint* checkpoint, const StageOptions& options, const Parallelism& parallelism,
                  Transport& transport, int first = 0);

  const models::LlamaConfig& config() const override { return m_config; }
  bool has_values() const override { return m_has_values; }
  double clock_hz() const override;
  bool begin(std::int64_t sequence, std::int64_t most) override;
  void end(std::int64_t sequence) override;
  std::int64_t length(std::int64_t sequence) const override { return m_stages.front()->length(sequence); }
  IterationResult run(const Iteration& iteration) override;

  const Parallelism& parallelism() const { return m_parallelism; }
  /// Packets that this process's functional clusters have executed.
  std::int64_t executed_packets() const { return m_executed; }
  std::int64_t weight_bytes() const;  // of all clusters
  std::int64_t cache_bytes() const;

  /// The cache of a sequence that `from` has and that has begun here without tokens, layer by layer through the
  /// transport; `from` keeps its own. The two may be cut differently. False when this has no room for it.
  bool take_cache(ParallelBackend& from, std::int64_t sequence);

 private:
  using Runs = std::vector<ClusterStage::Run>;  // of a stage, by rank in its group

  int number(std::int64_t stage, std::int64_t rank) const {
    return m_first + static_cast<int>(stage * m_parallelism.tp + rank);
  }
  ClusterStage& at(std::int64_t stage, std::int64_t rank) {
    return *m_stages[static_cast<std::size_t>(stage * m_parallelism.tp + rank)];
  }
  std::vector<int> group(std::int64_t stage) const;
  void exchange(std::int64_t stage, const std::vector<const PartialSums*>& sums);
  void pass_stream(std::int64_t stage, const Runs& from, Runs& to);
  void run_stage(std::int64_t stage, Runs& runs, IterationResult& result);
  void take_result(std::int64_t stage, Runs& runs, IterationResult& result);
  void gather_logits(Runs& runs, IterationResult& result);
  Bytes full_cache(std::int64_t sequence, std::int64_t layer, std::int64_t positions, int to);

  const models::LlamaConfig m_config;
  const Parallelism m_parallelism;
  Transport& m_transport;
  const int m_first;
  const sim::LinkModel m_links;
  bool m_has_values = false;
  std::int64_t m_executed = 0;
  std::vector<std::unique_ptr<ClusterStage>> m_stages;  // by cluster
};

}  // namespace mtsim::runtime
