// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/cluster_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <utility>

#include "models/convert.h"
#include "models/graph.h"
#include "runtime/error.h"
#include "runtime/graph/fusion.h"

namespace mtsim::runtime {
namespace {

using kernels::DType;

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

/// An iteration must not read another cluster's tokens: what it takes lies in the DDR until it is gone.
class Release {
 public:
  Release(sim::Cluster& cluster, const sim::Cluster::Allocations& kept) : m_cluster(cluster), m_kept(kept) {}
  ~Release() { m_cluster.release(m_kept); }
  Release(const Release&) = delete;
  Release& operator=(const Release&) = delete;

 private:
  sim::Cluster& m_cluster;
  const sim::Cluster::Allocations m_kept;
};

}  // namespace

struct ClusterStage::Batch {
  std::vector<std::size_t> order;  // of the iteration's sequences: those with one token first
  std::vector<models::SequenceStep> steps;
  BatchInput input;
};

struct ClusterStage::Run::State {
  State(ClusterStage& its, Iteration what)
      : stage(its), iteration(std::move(what)), release(its.m_cluster, its.m_kept) {}

  ClusterStage& stage;
  const Iteration iteration;
  Release release;
  Batch batch;
  models::IterationShape shape;
  LoweredIteration lowered;
  std::size_t next = 0;  // step
  bool at_sums = false;  // the next step's parts are being exchanged
  IterationResult result;
};

ClusterStage::ClusterStage(sim::Cluster& cluster, const models::LlamaConfig& config, const models::ModelPart& part,
                           const models::Checkpoint* checkpoint, const StageOptions& options)
    : m_cluster(cluster),
      m_given(config),
      m_options(options),
      m_model(cluster, config, options.dtype, part, checkpoint, options.mapped_from),
      m_cache(m_model.config(), options.kv, bytes_of(options.dtype),
              cluster.machine().ddr.bytes - cluster.allocations().ddr - cluster.machine().ddr.overhead_bytes,
              options.longest),
      m_pool(cluster.ddr_malloc(m_cache.blocks() * m_cache.block_bytes())),
      m_kept(cluster.allocations()),
      m_threads(cluster) {
  if (cluster.depth() == sim::Depth::functional && checkpoint == nullptr)
    throw RuntimeError("values need weights; without a checkpoint there is timing only");
}

bool ClusterStage::begin(std::int64_t sequence, std::int64_t most) {
  if (!m_cache.begin(sequence, most)) return false;
  m_lengths[sequence] = 0;
  return true;
}

void ClusterStage::end(std::int64_t sequence) {
  m_cache.end(sequence);
  m_lengths.erase(sequence);
}

std::vector<std::byte> ClusterStage::read(sim::Pointer at, std::int64_t bytes) const {
  std::vector<std::byte> result;
  if (!has_values()) return result;
  result.resize(static_cast<std::size_t>(bytes));
  m_cluster.read(at, result);
  return result;
}

void ClusterStage::write(sim::Pointer at, std::span<const std::byte> bytes) {
  if (has_values()) m_cluster.write(at, bytes);
}

kernels::AttentionBlocks ClusterStage::blocks(std::int64_t sequence, int layer) const {
  const std::int64_t bytes = m_cache.block_bytes() / part().layers / 2;  // of K^T, and of V, in a layer
  const sim::Pointer kt = m_pool + (layer - part().first_layer) * 2 * m_cache.blocks() * bytes,
                     v = kt + m_cache.blocks() * bytes;
  kernels::AttentionBlocks result;
  for (const std::int64_t block : m_cache.table(sequence)) {
    result.kt.push_back(kt + block * bytes);
    result.v.push_back(v + block * bytes);
  }
  return result;
}

/// Before any sequence grows.
void ClusterStage::check(const Iteration& iteration) const {
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

ClusterStage::Batch ClusterStage::batch_of(const Iteration& iteration) {
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

// --- An iteration.

ClusterStage::Run ClusterStage::start(const Iteration& iteration) {
  check(iteration);
  auto state = std::make_unique<Run::State>(*this, iteration);
  state->batch = batch_of(iteration);
  state->shape = {state->batch.steps, iteration.all_logits};
  const models::LlamaConfig whole = m_model.whole();
  const models::Graph graph = models::llama_graph(whole, state->shape, part());
  const BatchShape batch_shape = BatchShape::of(state->batch.steps, m_cache.block());
  const OperatorPlans plans(graph, m_model.config(), m_options.dtype, m_model.attention_scale(), batch_shape,
                            m_options.plan, m_cluster.machine());
  const Fusion fusion = m_options.plan.fusion ? fuse(graph, plans.fusion_target()) : no_fusion(graph);
  state->lowered = lower(m_cluster, graph, fusion, m_model, plans, m_options.plan, batch_shape, state->batch.input);
  state->result.host_work = state->lowered.host_work;
  return Run(std::move(state));
}

ClusterStage::Run::Run(std::unique_ptr<State> state) : m_state(std::move(state)) {}
ClusterStage::Run::Run(Run&&) noexcept = default;
ClusterStage::Run::~Run() = default;

const IterationResult& ClusterStage::Run::result() const { return m_state->result; }
std::int64_t ClusterStage::Run::logits_rows() const { return m_state->shape.logits_rows(); }

std::int64_t ClusterStage::Run::stream_bytes() const {
  return m_state->shape.tokens() * m_state->stage.m_given.hidden_size * bytes_of(m_state->stage.m_options.dtype);
}

void ClusterStage::Run::put_stream(std::span<const std::byte> bytes) {
  m_state->stage.write(m_state->lowered.stream, bytes);
}

std::vector<std::byte> ClusterStage::Run::take_stream() const {
  return m_state->stage.read(m_state->lowered.result, stream_bytes());
}

const PartialSums* ClusterStage::Run::advance() {
  State& s = *m_state;
  const std::vector<OperatorStep>& steps = s.lowered.steps;
  std::size_t end = s.next + (s.at_sums ? 1 : 0);
  while (end < steps.size() && !steps[end].sums) ++end;
  if (end > s.next) {
    if (s.stage.m_options.plan.launches == Launches::per_graph)
      launch_all(s.next, end);
    else
      launch(s.next, end);
  }
  s.next = end;
  s.at_sums = end < steps.size() && !s.result.fault;
  return s.at_sums ? &*steps[end].sums : nullptr;
}

IterationResult ClusterStage::Run::finish() {
  State& s = *m_state;
  if (!s.result.fault) {
    for (std::size_t i = 0; i < s.batch.order.size(); ++i)
      s.stage.m_lengths[s.iteration.sequences[s.batch.order[i]].sequence] += s.batch.steps[i].tokens;
  }
  return std::move(s.result);
}

namespace {

void take_verdict(const sim::LaunchResult& launch, IterationResult& result) {
  result.fault = launch.fault;
  result.findings.insert(result.findings.end(), launch.findings.begin(), launch.findings.end());
  result.notes.insert(result.notes.end(), launch.notes.begin(), launch.notes.end());
}

}  // namespace

void ClusterStage::Run::launch_all(std::size_t first, std::size_t end) {
  IterationResult& result = m_state->result;
  std::vector<sim::DspProgram> programs;
  std::vector<std::size_t> owners;
  for (std::size_t i = first; i < end; ++i) {
    const OperatorStep& step = m_state->lowered.steps[i];
    for (const sim::DspProgram& program : step.programs) {
      programs.push_back(program);
      owners.push_back(result.operators.size());
    }
    result.operators.push_back({step.name, step.kernel, step.layer, step.macs});
  }
  Meter meter(result.operators, std::move(owners));
  const sim::LaunchResult launch = m_state->stage.m_threads.exec(
      unified_kernel(std::move(programs),
                     [&meter](std::size_t programs_done, const sim::Dsp& dsp) { meter.met(programs_done, dsp); }));
  take_verdict(launch, result);
  result.launches += 1;
  result.cycles += launch.cycles;
  result.launch_cycles += launch.cores.front().cycles[static_cast<std::size_t>(sim::CycleClass::launch)];
}

void ClusterStage::Run::launch(std::size_t first, std::size_t end) {
  IterationResult& result = m_state->result;
  for (std::size_t i = first; i < end; ++i) {
    const OperatorStep& step = m_state->lowered.steps[i];
    OperatorTime time{step.name, step.kernel, step.layer, step.macs};
    for (const sim::DspProgram& program : step.programs) {
      const sim::LaunchResult launch = m_state->stage.m_threads.exec(program);
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

std::vector<float> ClusterStage::Run::take_logits() const {
  const State& s = *m_state;
  const std::int64_t width = s.stage.part().head_rows(s.stage.m_given);
  const std::vector<std::byte> bytes =
      s.stage.read(s.lowered.result, logits_rows() * width * bytes_of(s.stage.m_options.dtype));
  std::vector<float> rows(static_cast<std::size_t>(logits_rows() * width));
  if (s.stage.m_options.dtype == DType::f32) {
    std::memcpy(rows.data(), bytes.data(), bytes.size());
  } else {
    std::vector<std::uint16_t> halves(rows.size());
    std::memcpy(halves.data(), bytes.data(), bytes.size());
    std::transform(halves.begin(), halves.end(), rows.begin(), models::f16_to_f32);
  }
  // Rows back in the order of the iteration.
  const std::vector<std::size_t>& order = s.batch.order;
  std::vector<std::size_t> first(order.size());  // row of each sequence
  std::size_t row = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    first[order[i]] = row;
    row += s.iteration.all_logits ? static_cast<std::size_t>(s.batch.steps[i].tokens) : 1;
  }
  std::vector<float> logits;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t count = s.iteration.all_logits ? s.iteration.sequences[i].ids.size() : 1;
    const auto from = rows.begin() + static_cast<std::ptrdiff_t>(first[i] * static_cast<std::size_t>(width));
    logits.insert(logits.end(), from, from + static_cast<std::ptrdiff_t>(count * static_cast<std::size_t>(width)));
  }
  return logits;
}

}  // namespace mtsim::runtime
