// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/cluster_backend.h"

#include <fmt/format.h>

#include "runtime/error.h"

namespace mtsim::runtime {
namespace {

models::ModelPart first_layers(const models::LlamaConfig& config, std::int64_t layers) {
  if (layers > config.layers)
    throw RuntimeError(fmt::format("{} layers asked, {} has {}", layers, config.name, config.layers));
  models::ModelPart part = models::ModelPart::whole(config);
  if (layers >= 0) part.layers = layers;
  return part;
}

}  // namespace

ClusterBackend::ClusterBackend(sim::Cluster& cluster, const models::LlamaConfig& config,
                               const models::Checkpoint* checkpoint, const ClusterBackendOptions& options)
    : m_stage(cluster, config, first_layers(config, options.layers), checkpoint, options) {}

IterationResult ClusterBackend::run(const Iteration& iteration) {
  ClusterStage::Run run = m_stage.start(iteration);
  run.advance();
  IterationResult result = run.finish();
  if (result.fault || !has_values()) return result;
  result.logits = run.take_logits();
  result.logits_rows = run.logits_rows();
  return result;
}

}  // namespace mtsim::runtime
