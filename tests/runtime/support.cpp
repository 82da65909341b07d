// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime/support.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "kernels/gemm/gemm.h"

namespace mtsim::runtime::test {

const sim::MachineConfig& machine() {
  static const sim::Machine loaded = sim::Machine::load("mt3000");
  return loaded.config();
}

std::vector<sim::Cluster*> fresh_clusters(std::size_t count, const sim::ClusterOptions& options) {
  static const auto all = [] {
    std::array<std::unique_ptr<sim::Cluster>, k_clusters> made;
    for (auto& cluster : made) cluster = std::make_unique<sim::Cluster>(machine());
    return made;
  }();
  std::vector<sim::Cluster*> result;
  for (std::size_t i = 0; i < count; ++i) {
    all.at(i)->reset(machine(), options);
    result.push_back(all[i].get());
  }
  return result;
}

sim::Cluster& fresh(const sim::ClusterOptions& options) { return *fresh_clusters(1, options).front(); }

models::RandomModel small_model() {
  models::RandomModel model;
  models::LlamaConfig& c = model.config;
  c.hidden_size = 128;
  c.intermediate_size = 200;
  c.layers = 2;
  c.heads = 4;
  c.kv_heads = 2;
  c.head_dim = 32;
  c.vocab_size = 300;
  c.max_positions = 96;
  c.rms_norm_eps = 1e-5;
  c.rope_theta = 10000;
  model.type = models::ElementType::f32;
  return model;
}

models::Checkpoint make_model(const Folder& folder, const models::RandomModel& model) {
  models::write_random_model(folder.path("model"), model, true);
  return models::Checkpoint::open(folder.path("model"));
}

std::vector<float> logits_of(Backend& backend, std::span<const std::int64_t> ids, std::int64_t chunk) {
  std::vector<float> logits;
  REQUIRE(backend.begin(0, std::ssize(ids)));
  for (std::int64_t at = 0; at < std::ssize(ids); at += chunk) {
    const auto part =
        ids.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(std::min(chunk, std::ssize(ids) - at)));
    const IterationResult result = backend.run({{{0, {part.begin(), part.end()}}}, true});
    for (const sim::Finding& finding : result.findings) FAIL(finding.message);
    logits.insert(logits.end(), result.logits.begin(), result.logits.end());
  }
  backend.end(0);
  return logits;
}

double rounding_bound(const models::LlamaConfig& config, kernels::DType dtype, std::span<const float> logits) {
  const auto widest = std::max({config.hidden_size, config.intermediate_size, config.q_width()});
  const auto layers = static_cast<double>(config.layers);
  if (dtype == kernels::DType::f32)
    return 4 * 0x1p-24 * std::sqrt((10 * layers + 2) * static_cast<double>(widest) / 6) * largest(logits);
  const auto terms = static_cast<double>(std::min(widest, kernels::GemmTiles::of(dtype, {}).k_promote));
  return 4 * 0x1p-11 * std::sqrt((4 * layers + 1) * terms / 6 + (6 * layers + 1) / 3) * largest(logits);
}

double largest(std::span<const float> a) {
  double most = 0;
  for (const float value : a) most = std::max(most, std::abs(static_cast<double>(value)));
  return most;
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    most = std::isnan(difference) ? INFINITY : std::max(most, difference);
  }
  return most;
}

}  // namespace mtsim::runtime::test
