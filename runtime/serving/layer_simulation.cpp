// SPDX-License-Identifier: Apache-2.0
#include "runtime/serving/layer_simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "models/model_part.h"
#include "runtime/backend/cluster_stage.h"
#include "runtime/error.h"

namespace mtsim::runtime {

LayerSimulation::LayerSimulation(sim::Cluster& cluster, const sim::MachineConfig& machine,
                                 const models::LlamaConfig& config, kernels::DType dtype, const ExecutionPlan& plan,
                                 const KvOptions& kv)
    : m_cluster(cluster), m_machine(machine), m_config(config), m_dtype(dtype), m_plan(plan), m_kv(kv) {}

LayerCycles LayerSimulation::run(std::int64_t tp, const std::vector<models::SequenceStep>& batch) {
  return run(m_config, tp, batch, true);
}

double LayerSimulation::prefill_attention(std::int64_t tp, std::int64_t tokens) {
  const std::int64_t heads = m_config.kv_heads / tp, group = m_config.heads / m_config.kv_heads;
  constexpr std::int64_t k_few = 1;
  const auto of_heads = [&](std::int64_t kv_heads) {
    models::LlamaConfig narrow = m_config;  // but for attention as small as it can be
    narrow.hidden_size = narrow.intermediate_size = 64;
    narrow.kv_heads = kv_heads;
    narrow.heads = kv_heads * group;
    return run(narrow, 1, {{tokens, 0}}, false).attention;
  };
  if (heads <= k_few) return of_heads(heads);
  const double few = of_heads(k_few);
  return few + static_cast<double>(heads - k_few) * (of_heads(k_few + 1) - few);
}

std::vector<OperatorTime> LayerSimulation::operators(std::int64_t tp, const std::vector<models::SequenceStep>& batch) {
  return simulate(m_config, tp, batch, true).first.operators;
}

std::pair<IterationResult, std::int64_t> LayerSimulation::simulate(const models::LlamaConfig& config, std::int64_t tp,
                                                                   const std::vector<models::SequenceStep>& batch,
                                                                   bool with_ends) {
  ++m_runs;
  sim::ClusterOptions cluster;
  cluster.depth = sim::Depth::timing;
  cluster.hazards = false;  // the same programs are watched wherever values are computed
  m_cluster.reset(m_machine, cluster);

  models::LlamaConfig model = config;
  StageOptions options;
  options.dtype = m_dtype;
  options.plan = m_plan;
  for (const models::SequenceStep& step : batch)
    options.longest = std::max(options.longest, step.context + step.tokens);
  model.max_positions = std::max(model.max_positions, options.longest);
  options.kv.mode = KvMode::paged;
  options.kv.sequences = std::ssize(batch);
  const std::int64_t whole = (options.longest + k_kv_block - 1) / k_kv_block * k_kv_block;  // reserved: one block
  options.kv.block = m_kv.block > 0 ? m_kv.block : m_kv.mode == KvMode::paged ? k_kv_block : whole;

  models::ModelPart part = models::ModelPart::stage(model, 1, 0, tp, 0);
  part.layers = 1;
  part.embedding = part.head = with_ends;
  ClusterStage stage(m_cluster, model, part, nullptr, options);
  Iteration iteration;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto sequence = static_cast<std::int64_t>(i);
    if (!stage.begin(sequence, batch[i].context + batch[i].tokens) || !stage.set_length(sequence, batch[i].context))
      throw RuntimeError(
          fmt::format("a layer with {} sequences of up to {} positions: the caches of one layer do not "
                      "fit the simulated cluster",
                      batch.size(), options.longest));
    iteration.sequences.push_back({sequence, std::vector<std::int32_t>(static_cast<std::size_t>(batch[i].tokens), 0)});
  }
  ClusterStage::Run run = stage.start(iteration);
  std::int64_t sums = 0;
  while (run.advance() != nullptr) ++sums;
  IterationResult result = run.finish();
  if (result.fault) throw RuntimeError(fmt::format("a kernel of the layer faults: {}", result.fault->str()));
  return {std::move(result), sums};
}

LayerCycles LayerSimulation::run(const models::LlamaConfig& config, std::int64_t tp,
                                 const std::vector<models::SequenceStep>& batch, bool with_ends) {
  const auto [result, sums] = simulate(config, tp, batch, with_ends);
  LayerCycles cycles;
  bool is_behind = false;
  std::int64_t launches_of_operators = 0;
  for (const OperatorTime& one : result.operators) {
    const auto its = static_cast<double>(one.cycles);
    launches_of_operators += one.launches;
    if (one.layer < 0) {
      (is_behind ? cycles.head : cycles.embed) += its;
      (is_behind ? cycles.head_launches : cycles.embed_launches) += one.launches;
      continue;
    }
    is_behind = true;
    (std::string_view(one.name).ends_with(".attention") ? cycles.attention : cycles.linear) += its;
    cycles.layer_launches += one.launches;
  }
  if (launches_of_operators == 0) {  // one launch for all, and one more behind each sum
    cycles.stage_launches = 1;
    cycles.layer_launches = sums;
  }
  cycles.launch =
      result.launches > 0 ? static_cast<double>(result.launch_cycles) / static_cast<double>(result.launches) : 0;
  return cycles;
}

}  // namespace mtsim::runtime
