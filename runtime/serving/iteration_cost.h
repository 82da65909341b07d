// SPDX-License-Identifier: Apache-2.0
// What one pipeline stage takes for one micro-batch: the seam between serving and the simulated clusters.
#pragma once

#include <cstdint>
#include <span>

#include "models/graph.h"

namespace mtsim::runtime {

/// Stage `stage` of `stages`, on `tp` clusters. Layers are dealt evenly, the first stages take what is over.
struct StageShape {
  std::int64_t tp = 1;
  std::int64_t stages = 1, stage = 0;
  auto operator<=>(const StageShape&) const = default;

  /// Of a model with so many.
  std::int64_t layers(std::int64_t of_model) const { return of_model / stages + (stage < of_model % stages ? 1 : 0); }
};

/// Seconds. Their sum is how long the stage is busy.
struct StageTime {
  double kernels_s = 0;     // of the slowest cluster of the group, without launches
  double launches_s = 0;    // T_launch_group of eq. (19)
  double all_reduce_s = 0;  // T_all_reduce
  double busy_s() const { return kernels_s + launches_s + all_reduce_s; }
};

class IterationCost {
 public:
  virtual ~IterationCost() = default;

  /// `batch`: new tokens and context of each sequence. Only the last stage has the head, for one token a sequence.
  virtual StageTime stage(const StageShape& stage, std::span<const models::SequenceStep> batch) = 0;
  /// A message of so many bytes between clusters of one device, or of two.
  virtual double message_s(std::int64_t bytes, bool same_device) const = 0;
  /// CPU work of an iteration of so many requests.
  virtual double host_s(std::int64_t requests) const = 0;

  virtual std::int64_t layers() const = 0;  // of the model
  /// What one cluster of a stage sends to the next one for a token.
  virtual std::int64_t activation_bytes_per_token() const = 0;

  // Bytes of one cluster's DDR (eqs. 12 to 16), largest over the stages.
  virtual std::int64_t weight_bytes(std::int64_t tp, std::int64_t stages) const = 0;
  /// K and V of one token in one cluster of a stage; of the whole model with tp = stages = 1.
  virtual std::int64_t kv_bytes_per_token(std::int64_t tp, std::int64_t stages) const = 0;
  virtual std::int64_t memory_bytes() const = 0;    // 20 GB
  virtual std::int64_t overhead_bytes() const = 0;  // of them
};

}  // namespace mtsim::runtime
