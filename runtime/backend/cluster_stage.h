// SPDX-License-Identifier: Apache-2.0
// A part of a model on one simulated cluster: the layers of a pipeline stage, a share of a tensor-parallel group, or
// all of it. Every operator is microcode; in functional depth with values, in timing depth with time alone, by the same
// programs. An iteration runs in as many launches as there are sums over the group, and one more.
//
//   ClusterStage::Run run = stage.start(iteration);
//   while (const PartialSums* sums = run.advance()) exchange(*sums);
//   run.finish();
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "kernels/dtype.h"
#include "models/checkpoint.h"
#include "models/model_part.h"
#include "runtime/backend/backend.h"
#include "runtime/hthreads.h"
#include "runtime/kv/kv_cache.h"
#include "runtime/lower/lowering.h"
#include "runtime/plan.h"
#include "runtime/weights/device_model.h"
#include "sim/cluster.h"

namespace mtsim::runtime {

struct StageOptions {
  kernels::DType dtype = kernels::DType::f16;  // of weights, activations (the residual stream too) and cache
  ExecutionPlan plan = ExecutionPlan::named("a2");
  KvOptions kv;
  std::int64_t longest = 0;                  // tokens of the longest sequence
  std::int64_t mapped_from = k_mapped_from;  // bytes of weights, of DeviceModel
};

class ClusterStage {
 public:
  /// `config`: of the whole model. `checkpoint` may be absent in timing depth. Throws RuntimeError when DDR does not
  /// hold weights and cache (eq. 16).
  ClusterStage(sim::Cluster& cluster, const models::LlamaConfig& config, const models::ModelPart& part,
               const models::Checkpoint* checkpoint, const StageOptions& options);

  const models::LlamaConfig& config() const { return m_given; }
  const models::ModelPart& part() const { return m_model.part(); }
  bool has_values() const { return m_cluster.depth() == sim::Depth::functional; }
  const sim::MachineConfig& machine() const { return m_cluster.machine(); }
  const DeviceModel& model() const { return m_model; }
  const KvCache& cache() const { return m_cache; }
  std::int64_t element_bytes() const { return bytes_of(m_options.dtype); }

  bool begin(std::int64_t sequence, std::int64_t most);
  void end(std::int64_t sequence);
  std::int64_t length(std::int64_t sequence) const { return m_lengths.at(sequence); }

  /// K and V of a sequence in a layer: [2][positions][KV heads of this part]
  /// [head_dim padded], in the run's type. What a cache of another block size or share can take.
  std::vector<std::byte> read_cache(std::int64_t sequence, std::int64_t layer) const;
  /// Room for a cache that another cluster made, of a sequence that has begun and has no tokens: blocks for so many
  /// positions, which it then has. False when none is left. write_cache() of each layer follows.
  bool set_length(std::int64_t sequence, std::int64_t positions);
  void write_cache(std::int64_t sequence, std::int64_t layer, std::span<const std::byte> bytes);

  class Run;
  /// One at a time. Throws RuntimeError for tokens that do not fit a sequence or the vocabulary.
  Run start(const Iteration& iteration);

  // DDR of the cluster, for what passes between clusters; nothing in timing depth.
  std::vector<std::byte> read(sim::Pointer at, std::int64_t bytes) const;
  void write(sim::Pointer at, std::span<const std::byte> bytes);

 private:
  struct Batch;
  void check(const Iteration& iteration) const;
  Batch batch_of(const Iteration& iteration);
  kernels::AttentionBlocks blocks(std::int64_t sequence, int layer) const;

  sim::Cluster& m_cluster;
  const models::LlamaConfig m_given;
  StageOptions m_options;
  DeviceModel m_model;
  KvCache m_cache;
  sim::Pointer m_pool;  // K^T and V of all blocks: [layers][2][blocks][bytes of a block in a layer]
  sim::Cluster::Allocations m_kept;
  ThreadGroup m_threads;
  std::map<std::int64_t, std::int64_t> m_lengths;
};

/// An iteration under way. What it takes in the cluster's DDR is free again when it is gone.
class ClusterStage::Run {
 public:
  ~Run();
  Run(Run&&) noexcept;
  Run& operator=(Run&&) = delete;

  std::int64_t stream_bytes() const;  // of what passes between stages
  /// Of a part without embedding, before the first advance().
  void put_stream(std::span<const std::byte> bytes);
  /// Launches up to the next sum over the group, or to the end: nullptr. A fault ends it too.
  const PartialSums* advance();
  /// Behind the last advance(): of a part without head the stream; else the logits of its words, [rows, head rows],
  /// rows in the order of the iteration.
  std::vector<std::byte> take_stream() const;
  std::vector<float> take_logits() const;
  std::int64_t logits_rows() const;
  /// Sequences have their new tokens, unless a kernel faulted. Cycles, launches, operators, findings.
  IterationResult finish();
  /// Cycles so far: of launches, and of all with them.
  const IterationResult& result() const;

 private:
  friend class ClusterStage;
  struct State;
  explicit Run(std::unique_ptr<State> state);
  void launch_all(std::size_t first, std::size_t end);
  void launch(std::size_t first, std::size_t end);
  std::unique_ptr<State> m_state;
};

}  // namespace mtsim::runtime
