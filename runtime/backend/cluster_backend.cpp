// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/cluster_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "models/convert.h"
#include "models/graph.h"
#include "runtime/error.h"
#include "runtime/graph/fusion.h"

namespace mtsim::runtime {
namespace {

using kernels::DType;

std::int64_t layers_of(const models::LlamaConfig& config, std::int64_t layers) {
  return layers < 0 ? config.layers : std::min(layers, config.layers);
}
models::LlamaConfig with_layers(models::LlamaConfig config, std::int64_t layers) {
  config.layers = layers;
  return config;
}

std::int64_t touching(const sim::PathBytes& bytes, sim::Space space) {
  std::int64_t sum = 0;
  const auto at = static_cast<std::size_t>(space);
  for (std::size_t other = 0; other < sim::k_spaces; ++other) sum += bytes.read[at][other] + bytes.written[other][at];
  return sum;
}

/// Counters of the cores of one launch, read whenever they meet.
class Meter {
 public:
  explicit Meter(std::vector<OperatorTime>& operators, std::vector<std::size_t> owners)
      : m_operators(operators), m_owners(std::move(owners)) {}

  void met(std::size_t programs, const sim::Dsp& dsp) {
    const auto core = static_cast<std::size_t>(dsp.thread_id());
    if (m_before.size() <= core) m_before.resize(core + 1);
    const sim::CoreReport now = dsp.counters();
    if (programs > 0) {
      OperatorTime& its = m_operators[m_owners[programs - 1]];
      for (std::size_t c = 0; c < now.cycles.size(); ++c) its.account[c] += now.cycles[c] - m_before[core].cycles[c];
      its.packets += now.packets - m_before[core].packets;
      if (core == 0) {
        const std::int64_t ddr = touching(dsp.moved(), sim::Space::ddr), gsm = touching(dsp.moved(), sim::Space::gsm);
        its.cycles += dsp.now() - m_cycle;
        its.ddr_bytes += ddr - m_ddr;
        its.gsm_bytes += gsm - m_gsm;
        m_ddr = ddr;
        m_gsm = gsm;
      }
    }
    if (core == 0) m_cycle = dsp.now();
    m_before[core] = now;
  }

 private:
  std::vector<OperatorTime>& m_operators;
  std::vector<std::size_t> m_owners;  // operator of each program
  std::vector<sim::CoreReport> m_before;
  std::int64_t m_cycle = 0, m_ddr = 0, m_gsm = 0;
};

}  // namespace

struct ClusterBackend::Batch {
  std::vector<std::size_t> order;  // of the iteration's sequences: those with one token first
  std::vector<models::SequenceStep> steps;
  BatchInput input;
};

ClusterBackend::ClusterBackend(sim::Cluster& cluster, const models::LlamaConfig& config,
                               const models::Checkpoint* checkpoint, const ClusterBackendOptions& options)
    : m_cluster(cluster),
      m_given(config),
      m_options(options),
      m_model(cluster, config, options.dtype, layers_of(config, options.layers), checkpoint, options.mapped_from),
      m_cache(with_layers(m_model.config(), m_model.layers()), options.kv, bytes_of(options.dtype),
              cluster.machine().ddr.bytes - cluster.allocations().ddr - cluster.machine().ddr.overhead_bytes, options.longest),
      m_pool(cluster.ddr_malloc(m_cache.blocks() * m_cache.block_bytes())),
      m_kept(cluster.allocations()),
      m_threads(cluster) {
  if (options.layers > config.layers)
    throw RuntimeError(fmt::format("{} layers asked, {} has {}", options.layers, config.name, config.layers));
  if (cluster.depth() == sim::Depth::functional && checkpoint == nullptr)
    throw RuntimeError("values need weights; without a checkpoint there is timing only");
}

bool ClusterBackend::begin(std::int64_t sequence, std::int64_t most) {
  if (!m_cache.begin(sequence, most)) return false;
  m_lengths[sequence] = 0;
  return true;
}

void ClusterBackend::end(std::int64_t sequence) {
  m_cache.end(sequence);
  m_lengths.erase(sequence);
}

kernels::AttentionBlocks ClusterBackend::blocks(std::int64_t sequence, int layer) const {
  const std::int64_t bytes = m_cache.block_bytes() / m_model.layers() / 2;  // of K^T, and of V, in a layer
  const sim::Pointer kt = m_pool + layer * 2 * m_cache.blocks() * bytes, v = kt + m_cache.blocks() * bytes;
  kernels::AttentionBlocks result;
  for (const std::int64_t block : m_cache.table(sequence)) {
    result.kt.push_back(kt + block * bytes);
    result.v.push_back(v + block * bytes);
  }
  return result;
}

/// Before any sequence grows.
void ClusterBackend::check(const Iteration& iteration) const {
  if (iteration.sequences.empty()) throw RuntimeError("an iteration has no sequence");
  std::set<std::int64_t> seen;
  for (const SequenceInput& input : iteration.sequences) {
    const auto length = m_lengths.find(input.sequence);
    if (length == m_lengths.end()) throw RuntimeError(fmt::format("sequence {} has not begun", input.sequence));
    if (!seen.insert(input.sequence).second)
      throw RuntimeError(fmt::format("sequence {} is twice in an iteration", input.sequence));
    if (input.ids.empty())
      throw RuntimeError(fmt::format("sequence {} has no token in this iteration", input.sequence));
    if (length->second + std::ssize(input.ids) > m_given.max_positions) {
      throw RuntimeError(fmt::format("sequence {} with {} tokens and {} new ones: the context of {} holds {}",
                                     input.sequence, length->second, input.ids.size(), m_given.name,
                                     m_given.max_positions));
    }
    for (const std::int32_t id : input.ids) {
      if (id < 0 || id >= m_given.vocab_size)
        throw RuntimeError(fmt::format("sequence {} has token {}, the vocabulary ids 0 to {}", input.sequence, id,
                                       m_given.vocab_size - 1));
    }
  }
}

ClusterBackend::Batch ClusterBackend::batch_of(const Iteration& iteration) {
  Batch batch;
  batch.order.resize(iteration.sequences.size());
  std::iota(batch.order.begin(), batch.order.end(), std::size_t{0});
  std::stable_partition(batch.order.begin(), batch.order.end(),
                        [&](std::size_t i) { return iteration.sequences[i].ids.size() == 1; });
  std::vector<std::int64_t> sequences;
  for (const std::size_t i : batch.order) {
    const SequenceInput& input = iteration.sequences[i];
    const std::int64_t context = m_lengths.at(input.sequence), tokens = std::ssize(input.ids);
    if (!m_cache.grow(input.sequence, context + tokens)) {
      throw RuntimeError(
          fmt::format("KV cache: no block is left for {} positions of sequence {}", context + tokens, input.sequence));
    }
    batch.steps.push_back({tokens, context});
    batch.input.ids.insert(batch.input.ids.end(), input.ids.begin(), input.ids.end());
    batch.input.logits_rows.push_back(std::ssize(batch.input.ids) - 1);
    sequences.push_back(input.sequence);
  }
  batch.input.blocks = [this, sequences](std::size_t i, int layer) { return blocks(sequences[i], layer); };
  return batch;
}

IterationResult ClusterBackend::run(const Iteration& iteration) {
  check(iteration);
  const Batch batch = batch_of(iteration);
  const models::IterationShape shape{batch.steps, iteration.all_logits, m_model.layers()};
  const models::Graph graph = models::llama_graph(m_model.config(), shape);
  const BatchShape batch_shape = BatchShape::of(batch.steps, m_cache.block());
  const OperatorPlans plans(graph, m_model.config(), m_options.dtype, m_model.attention_scale(), batch_shape,
                            m_options.plan, m_cluster.machine());
  const Fusion fusion = m_options.plan.fusion ? fuse(graph, plans.fusion_target()) : no_fusion(graph);
  IterationResult result;
  struct Release {
    sim::Cluster& cluster;
    const sim::Cluster::Allocations& kept;
    ~Release() { cluster.release(kept); }
  } release{m_cluster, m_kept};
  const LoweredIteration lowered =
      lower(m_cluster, graph, fusion, m_model, plans, m_options.plan, batch_shape, batch.input);
  if (m_options.plan.launches == Launches::per_graph)
    launch_all(lowered, result);
  else
    launch(lowered, result);
  result.host_work = lowered.host_work;
  if (result.fault) return result;
  for (std::size_t i = 0; i < batch.order.size(); ++i)
    m_lengths[iteration.sequences[batch.order[i]].sequence] += batch.steps[i].tokens;
  if (!has_values()) return result;

  // Rows back in the order of the iteration.
  result.logits_rows = shape.logits_rows();
  const std::vector<float> logits = read_logits(lowered.logits, result.logits_rows);
  const auto vocab = static_cast<std::size_t>(m_given.vocab_size);
  std::vector<std::size_t> first(batch.order.size());  // row of each sequence
  std::size_t row = 0;
  for (std::size_t i = 0; i < batch.order.size(); ++i) {
    first[batch.order[i]] = row;
    row += iteration.all_logits ? static_cast<std::size_t>(batch.steps[i].tokens) : 1;
  }
  for (std::size_t i = 0; i < iteration.sequences.size(); ++i) {
    const std::size_t rows = iteration.all_logits ? iteration.sequences[i].ids.size() : 1;
    const auto from = logits.begin() + static_cast<std::ptrdiff_t>(first[i] * vocab);
    result.logits.insert(result.logits.end(), from, from + static_cast<std::ptrdiff_t>(rows * vocab));
  }
  return result;
}

void ClusterBackend::take_verdict(const sim::LaunchResult& launch, IterationResult& result) {
  result.fault = launch.fault;
  result.findings.insert(result.findings.end(), launch.findings.begin(), launch.findings.end());
  result.notes.insert(result.notes.end(), launch.notes.begin(), launch.notes.end());
}

void ClusterBackend::launch_all(const LoweredIteration& lowered, IterationResult& result) {
  std::vector<sim::DspProgram> programs;
  std::vector<std::size_t> owners;
  for (const OperatorStep& step : lowered.steps) {
    for (const sim::DspProgram& program : step.programs) {
      programs.push_back(program);
      owners.push_back(result.operators.size());
    }
    result.operators.push_back({step.name, step.kernel, step.layer, step.macs});
  }
  Meter meter(result.operators, std::move(owners));
  const sim::LaunchResult launch =
      m_threads.exec(unified_kernel(std::move(programs), [&meter](std::size_t programs_done, const sim::Dsp& dsp) {
        meter.met(programs_done, dsp);
      }));
  take_verdict(launch, result);
  result.launches = 1;
  result.cycles = launch.cycles;
  result.launch_cycles = launch.cores.front().cycles[static_cast<std::size_t>(sim::CycleClass::launch)];
}

void ClusterBackend::launch(const LoweredIteration& lowered, IterationResult& result) {
  for (const OperatorStep& step : lowered.steps) {
    OperatorTime time{step.name, step.kernel, step.layer, step.macs};
    for (const sim::DspProgram& program : step.programs) {
      const sim::LaunchResult launch = m_threads.exec(program);
      take_verdict(launch, result);
      constexpr auto starting = static_cast<std::size_t>(sim::CycleClass::launch);
      const std::int64_t cost = launch.cores.front().cycles[starting];
      result.launch_cycles += cost;
      result.cycles += launch.cycles;
      time.cycles += launch.cycles - cost;
      for (const sim::CoreReport& core : launch.cores) {
        for (std::size_t c = 0; c < core.cycles.size(); ++c) {
          if (c != starting) time.account[c] += core.cycles[c];
        }
        time.packets += core.packets;
      }
      time.ddr_bytes += touching(launch.bytes, sim::Space::ddr);
      time.gsm_bytes += touching(launch.bytes, sim::Space::gsm);
      ++time.launches;
      if (result.fault) break;
    }
    result.launches += time.launches;
    result.operators.push_back(std::move(time));
    if (result.fault) return;
  }
}

std::vector<float> ClusterBackend::read_logits(sim::Pointer at, std::int64_t rows) const {
  std::vector<float> logits(static_cast<std::size_t>(rows * m_given.vocab_size));
  if (m_options.dtype == DType::f32) {
    m_cluster.read(at, std::as_writable_bytes(std::span(logits)));
    return logits;
  }
  std::vector<std::uint16_t> halves(logits.size());
  m_cluster.read(at, std::as_writable_bytes(std::span(halves)));
  std::transform(halves.begin(), halves.end(), logits.begin(), models::f16_to_f32);
  return logits;
}

}  // namespace mtsim::runtime
