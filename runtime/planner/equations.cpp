// SPDX-License-Identifier: Apache-2.0
#include "runtime/planner/equations.h"

#include <algorithm>

namespace mtsim::runtime {
namespace {

constexpr std::int64_t k_fewest_layers = 3;  // whose first, second and last stages of one layer differ

}  // namespace

StageTime operator*(double times, const StageTime& time) {
  return {times * time.kernels_s, times * time.launches_s, times * time.all_reduce_s};
}
StageTime operator+(const StageTime& a, const StageTime& b) {
  return {a.kernels_s + b.kernels_s, a.launches_s + b.launches_s, a.all_reduce_s + b.all_reduce_s};
}
StageTime operator-(const StageTime& a, const StageTime& b) { return a + -1.0 * b; }

Footprint prefill_memory(const IterationCost& cost, const Pool& prefill, std::int64_t s_max) {
  const std::int64_t a_layer = cost.kv_bytes_per_token(1, 1) / cost.layers() / prefill.tp;
  return {cost.weight_bytes(prefill.tp, prefill.pp), prefill.micro_batch * s_max * a_layer, cost.overhead_bytes(),
          cost.memory_bytes()};
}

Footprint decode_memory(const IterationCost& cost, const Pool& decode, std::int64_t s_max) {
  return {cost.weight_bytes(decode.tp, decode.pp),
          decode.pp * decode.micro_batch * s_max * cost.kv_bytes_per_token(decode.tp, decode.pp), cost.overhead_bytes(),
          cost.memory_bytes()};
}

std::int64_t all_reduce_bytes(std::int64_t rows, std::int64_t embedding, std::int64_t bytes_per_element,
                              std::int64_t tp) {
  return rows * 2 * embedding * bytes_per_element * (tp - 1);
}

StageTime LayerTime::slowest(std::int64_t layers, std::int64_t stages) const {
  const std::int64_t fewest = layers / stages, most = (layers + stages - 1) / stages;
  const StageTime first = stage + static_cast<double>(most) * layer;
  const StageTime last = stage + head + static_cast<double>(fewest) * layer;
  return first.busy_s() > last.busy_s() ? first : last;
}

StageTime LayerTime::all(std::int64_t layers, std::int64_t stages) const {
  return static_cast<double>(layers) * layer + static_cast<double>(stages) * stage + head;
}

LayerTime layer_time(IterationCost& cost, std::int64_t tp, std::span<const models::SequenceStep> batch) {
  const std::int64_t layers = cost.layers();
  if (layers < k_fewest_layers) {
    const StageTime whole = cost.stage({tp, 1, 0}, batch);
    return {1.0 / static_cast<double>(layers) * whole, {}, {}};
  }
  const StageTime one = cost.stage({tp, layers, 0}, batch);
  const StageTime last = cost.stage({tp, layers, layers - 1}, batch);
  const StageTime two = cost.stage({tp, (layers + 1) / 2, 0}, batch);  // the first stage has two
  const StageTime layer = two - one;
  return {layer, one - layer, last - one};
}

std::int64_t pool_clusters(const Pool& prefill, const Pool& decode, std::int64_t buffer_clusters) {
  return prefill.clusters() + decode.clusters() + buffer_clusters;
}

std::int64_t buffer_clusters(const IterationCost& cost, std::int64_t bytes) {
  const std::int64_t usable = cost.memory_bytes() - cost.overhead_bytes();
  return (std::max<std::int64_t>(bytes, 0) + usable - 1) / usable;
}

double period_s(double prefill_s, std::int64_t prefill_dp, double decode_s) {
  return std::max(prefill_s / static_cast<double>(prefill_dp), decode_s);
}

double cluster_seconds(std::int64_t pool_clusters, double period_s) {
  return static_cast<double>(pool_clusters) * period_s;
}

}  // namespace mtsim::runtime
