// SPDX-License-Identifier: Apache-2.0
// An IterationCost of a few lines, for tests of what is built on one: weights and caches at a bandwidth, work at a
// rate.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "models/config.h"
#include "runtime/serving/iteration_cost.h"

namespace mtsim::test {

struct AnalyticNumbers {
  double bandwidth = 30e9, macs_s = 5e12;  // of a cluster
  double launch_s = 30e-6, latency_s = 20e-6, link = 5e9;
  double host_s = 20e-6, request_s = 5e-6;
  std::int64_t memory = std::int64_t{20} << 30, overhead = std::int64_t{1} << 29;
};

class AnalyticCost final : public runtime::IterationCost {
 public:
  explicit AnalyticCost(const models::LlamaConfig& config, const AnalyticNumbers& numbers = {})
      : m_config(config), m_numbers(numbers) {}

  runtime::StageTime stage(const runtime::StageShape& shape, std::span<const models::SequenceStep> batch) override {
    ++m_queries;
    double tokens = 0, kv_tokens = 0, scores = 0;
    for (const models::SequenceStep& step : batch) {
      tokens += static_cast<double>(step.tokens);
      kv_tokens += static_cast<double>(step.tokens + step.context);
      scores += static_cast<double>(step.tokens) * static_cast<double>(step.tokens + step.context);
    }
    const auto layers = static_cast<double>(shape.layers(m_config.layers)), tp = static_cast<double>(shape.tp);
    const auto weights = static_cast<double>(m_config.layer_parameters());
    const double kv = 2.0 * static_cast<double>(m_config.kv_width()) * 2.0;
    const double work = std::max(2 * weights / m_numbers.bandwidth, tokens * weights / m_numbers.macs_s);
    const double attention =
        kv_tokens * kv / m_numbers.bandwidth + 2 * scores * static_cast<double>(m_config.q_width()) / m_numbers.macs_s;
    runtime::StageTime time;
    time.kernels_s = layers * (work + attention) / tp;
    if (shape.stage + 1 == shape.stages)
      time.kernels_s += 2.0 * static_cast<double>(m_config.embedding_parameters()) / tp / m_numbers.bandwidth;
    time.launches_s = m_numbers.launch_s * (shape.tp > 1 ? 1 + 2 * layers : 1);
    const double rows = tokens * 2 * static_cast<double>(m_config.hidden_size) * (tp - 1);
    if (shape.tp > 1) time.all_reduce_s = 2 * layers * ((tp - 1) * m_numbers.latency_s + rows / m_numbers.link);
    return time;
  }
  double message_s(std::int64_t bytes, bool same_device) const override {
    return (same_device ? 1 : 2) * (m_numbers.latency_s + static_cast<double>(bytes) / (2 * m_numbers.link));
  }
  double host_s(std::int64_t requests) const override {
    return m_numbers.host_s + static_cast<double>(requests) * m_numbers.request_s;
  }
  std::int64_t layers() const override { return m_config.layers; }
  std::int64_t activation_bytes_per_token() const override { return 2 * m_config.hidden_size; }
  std::int64_t weight_bytes(std::int64_t tp, std::int64_t stages) const override {
    const std::int64_t most = (m_config.layers + stages - 1) / stages;
    return (2 * most * m_config.layer_parameters() + 4 * m_config.embedding_parameters() / stages) / tp;
  }
  std::int64_t kv_bytes_per_token(std::int64_t tp, std::int64_t stages) const override {
    return m_config.kv_bytes_per_token(2) / m_config.layers * ((m_config.layers + stages - 1) / stages) / tp;
  }
  std::int64_t memory_bytes() const override { return m_numbers.memory; }
  std::int64_t overhead_bytes() const override { return m_numbers.overhead; }

  std::int64_t queries() const { return m_queries; }

 private:
  models::LlamaConfig m_config;
  AnalyticNumbers m_numbers;
  std::int64_t m_queries = 0;
};

}  // namespace mtsim::test
