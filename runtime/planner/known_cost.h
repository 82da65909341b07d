// SPDX-License-Identifier: Apache-2.0
// A cost whose bytes are asked for once: a search weighs the same stages hundreds of thousands of times.
#pragma once

#include <map>
#include <utility>

#include "runtime/serving/iteration_cost.h"

namespace mtsim::runtime {

class KnownCost final : public IterationCost {
 public:
  explicit KnownCost(IterationCost& cost) : m_cost(cost) {}

  StageTime stage(const StageShape& shape, std::span<const models::SequenceStep> batch) override {
    return m_cost.stage(shape, batch);
  }
  double message_s(std::int64_t bytes, bool same_device) const override { return m_cost.message_s(bytes, same_device); }
  double host_s(std::int64_t requests) const override { return m_cost.host_s(requests); }
  std::int64_t layers() const override { return m_layers; }
  std::int64_t activation_bytes_per_token() const override { return m_activation_bytes; }
  std::int64_t weight_bytes(std::int64_t tp, std::int64_t stages) const override { return bytes(tp, stages).first; }
  std::int64_t kv_bytes_per_token(std::int64_t tp, std::int64_t stages) const override {
    return bytes(tp, stages).second;
  }
  std::int64_t memory_bytes() const override { return m_memory; }
  std::int64_t overhead_bytes() const override { return m_overhead; }

 private:
  using Bytes = std::pair<std::int64_t, std::int64_t>;  // of weights, of a token's K and V
  const Bytes& bytes(std::int64_t tp, std::int64_t stages) const {
    const auto known = m_bytes.find({tp, stages});
    if (known != m_bytes.end()) return known->second;
    return m_bytes[{tp, stages}] = {m_cost.weight_bytes(tp, stages), m_cost.kv_bytes_per_token(tp, stages)};
  }

  IterationCost& m_cost;
  const std::int64_t m_layers = m_cost.layers(), m_activation_bytes = m_cost.activation_bytes_per_token();
  const std::int64_t m_memory = m_cost.memory_bytes(), m_overhead = m_cost.overhead_bytes();
  mutable std::map<std::pair<std::int64_t, std::int64_t>, Bytes> m_bytes;
};

}  // namespace mtsim::runtime
