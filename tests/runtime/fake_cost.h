// SPDX-License-Identifier: Apache-2.0
// Clusters of round numbers, whose times follow from the shape of a batch: what serving does is tested on them.
#pragma once

#include <cstdint>

#include "runtime/serving/iteration_cost.h"

namespace mtsim::runtime::test {

struct FakeCost final : IterationCost {
  std::int64_t model_layers = 4;
  double layer_s = 0.010, token_s = 0.001, score_s = 0;  // of a layer; for each new token; for each position it sees
  double head_s = 0, launch_s = 0, all_reduce_s = 0;     // of the last stage; of a stage; of a layer
  double latency_s = 0, byte_s = 0, far_byte_s = 0;      // of a message
  double host_iteration_s = 0, host_request_s = 0;
  std::int64_t weights = 4000, position = 40, memory = 10'000, overhead = 0;  // bytes: of the model; of one cluster
  std::int64_t activation = 8;
  std::int64_t calls = 0;

  StageTime stage(const StageShape& stage, std::span<const models::SequenceStep> batch) override {
    ++calls;
    double layer = layer_s;
    for (const models::SequenceStep& step : batch)
      layer += static_cast<double>(step.tokens) * (token_s + score_s * static_cast<double>(step.context + step.tokens));
    const auto layers = static_cast<double>(stage.layers(model_layers));
    StageTime time{layers * layer / static_cast<double>(stage.tp), launch_s, stage.tp > 1 ? layers * all_reduce_s : 0};
    if (stage.stage + 1 == stage.stages) time.kernels_s += head_s;
    return time;
  }
  double message_s(std::int64_t bytes, bool same_device) const override {
    return latency_s + static_cast<double>(bytes) * (same_device ? byte_s : far_byte_s);
  }
  double host_s(std::int64_t requests) const override {
    return host_iteration_s + host_request_s * static_cast<double>(requests);
  }
  std::int64_t layers() const override { return model_layers; }
  std::int64_t activation_bytes_per_token() const override { return activation; }
  std::int64_t weight_bytes(std::int64_t tp, std::int64_t stages) const override { return share(weights, stages) / tp; }
  std::int64_t kv_bytes_per_token(std::int64_t tp, std::int64_t stages) const override {
    return share(position, stages) / tp;
  }
  std::int64_t memory_bytes() const override { return memory; }
  std::int64_t overhead_bytes() const override { return overhead; }

 private:
  /// Of the first stage, which has most layers.
  std::int64_t share(std::int64_t bytes, std::int64_t stages) const {
    return bytes / model_layers * StageShape{1, stages, 0}.layers(model_layers);
  }
};

}  // namespace mtsim::runtime::test
