// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/parallel_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "runtime/comm/all_reduce.h"
#include "runtime/error.h"

namespace mtsim::runtime {

ParallelBackend::ParallelBackend(const std::vector<sim::Cluster*>& clusters, const models::LlamaConfig& config,
                                 const models::Checkpoint* checkpoint, const StageOptions& options,
                                 const Parallelism& parallelism, Transport& transport, int first)
    : m_config(config),
      m_parallelism(parallelism),
      m_transport(transport),
      m_first(first),
      m_links(clusters.front()->machine()) {
  if (std::ssize(clusters) != parallelism.clusters()) {
    throw RuntimeError(
        fmt::format("{} takes {} clusters, {} are given", parallelism.str(), parallelism.clusters(), clusters.size()));
  }
  for (std::int64_t i = 0; i < parallelism.clusters(); ++i) {
    sim::Cluster& cluster = *clusters[static_cast<std::size_t>(i)];
    const bool has_values = cluster.depth() == sim::Depth::functional;
    const auto part =
        models::ModelPart::stage(config, parallelism.pp, i / parallelism.tp, parallelism.tp, i % parallelism.tp);
    m_stages.push_back(
        std::make_unique<ClusterStage>(cluster, config, part, has_values ? checkpoint : nullptr, options));
    m_has_values = m_has_values || has_values || !transport.owns(first + static_cast<int>(i));
  }
  if (checkpoint == nullptr) m_has_values = false;
}

double ParallelBackend::clock_hz() const { return m_stages.front()->machine().core.clock_ghz * 1e9; }

std::int64_t ParallelBackend::weight_bytes() const {
  std::int64_t sum = 0;
  for (const auto& stage : m_stages) sum += stage->model().bytes();
  return sum;
}

std::int64_t ParallelBackend::cache_bytes() const {
  std::int64_t sum = 0;
  for (const auto& stage : m_stages) sum += stage->cache().blocks() * stage->cache().block_bytes();
  return sum;
}

bool ParallelBackend::begin(std::int64_t sequence, std::int64_t most) {
  for (std::size_t i = 0; i < m_stages.size(); ++i) {
    if (m_stages[i]->begin(sequence, most)) continue;
    for (std::size_t begun = 0; begun < i; ++begun) m_stages[begun]->end(sequence);
    return false;
  }
  return true;
}

void ParallelBackend::end(std::int64_t sequence) {
  for (const auto& stage : m_stages) stage->end(sequence);
}

std::vector<int> ParallelBackend::group(std::int64_t stage) const {
  std::vector<int> result;
  for (std::int64_t rank = 0; rank < m_parallelism.tp; ++rank) result.push_back(number(stage, rank));
  return result;
}

IterationResult ParallelBackend::run(const Iteration& iteration) {
  IterationResult result;
  Runs before;
  for (std::int64_t stage = 0; stage < m_parallelism.pp; ++stage) {
    Runs runs;
    for (std::int64_t rank = 0; rank < m_parallelism.tp; ++rank) runs.push_back(at(stage, rank).start(iteration));
    if (stage > 0) {
      pass_stream(stage, before, runs);
      const std::int64_t cycles = m_links.message_cycles(runs.front().stream_bytes(),
                                                         m_links.same_device(number(stage - 1, 0), number(stage, 0)));
      result.cycles += cycles;
      result.comm_cycles += cycles;
    }
    run_stage(stage, runs, result);
    if (result.fault) return result;
    before = std::move(runs);
  }
  gather_logits(before, result);
  return result;
}

void ParallelBackend::pass_stream(std::int64_t stage, const Runs& from, Runs& to) {
  for (std::int64_t rank = 0; rank < m_parallelism.tp; ++rank) {
    const int sender = number(stage - 1, rank);
    if (m_transport.owns(sender))
      m_transport.send(sender, number(stage, rank), from[static_cast<std::size_t>(rank)].take_stream());
  }
  for (std::int64_t rank = 0; rank < m_parallelism.tp; ++rank) {
    const int receiver = number(stage, rank);
    if (m_transport.owns(receiver))
      to[static_cast<std::size_t>(rank)].put_stream(m_transport.receive(number(stage - 1, rank), receiver));
  }
}

/// All clusters of the group up to the next sum, then what they exchange; the slowest is waited for.
void ParallelBackend::run_stage(std::int64_t stage, Runs& runs, IterationResult& result) {
  const std::vector<int> members = group(stage);
  std::vector<std::int64_t> done(runs.size());
  for (;;) {
    std::vector<const PartialSums*> sums;
    std::int64_t slowest = 0;
    for (std::size_t rank = 0; rank < runs.size(); ++rank) {
      sums.push_back(runs[rank].advance());
      slowest = std::max(slowest, runs[rank].result().cycles - done[rank]);
      if (runs[rank].result().fault) result.fault = runs[rank].result().fault;
    }
    // What the first one waits for the slowest counts as communication.
    const std::int64_t waits = slowest - (runs.front().result().cycles - done.front());
    for (std::size_t rank = 0; rank < runs.size(); ++rank) done[rank] = runs[rank].result().cycles;
    result.comm_cycles += waits;
    result.cycles += slowest;
    if (result.fault || sums.front() == nullptr) break;
    exchange(stage, sums);
    const std::int64_t cycles = m_links.exchange_cycles(sums.front()->bytes, members);
    result.comm_cycles += cycles;
    result.cycles += cycles;
  }
  take_result(stage, runs, result);
}

void ParallelBackend::exchange(std::int64_t stage, const std::vector<const PartialSums*>& sums) {
  const auto its = [&](std::size_t rank) -> ClusterStage& { return at(stage, static_cast<std::int64_t>(rank)); };
  exchange_parts(
      m_transport, group(stage),
      [&](std::size_t rank) { return its(rank).read(sums[rank]->parts[rank], sums[rank]->bytes); },
      [&](std::size_t to, std::size_t from, const Bytes& bytes) { its(to).write(sums[to]->parts[from], bytes); });
}

/// Of the first of the group, which stands for all; packets are those of all that have values here.
void ParallelBackend::take_result(std::int64_t stage, Runs& runs, IterationResult& result) {
  for (std::size_t rank = 0; rank < runs.size(); ++rank) {
    IterationResult its = runs[rank].finish();
    if (at(stage, static_cast<std::int64_t>(rank)).has_values()) {
      for (const OperatorTime& one : its.operators) m_executed += one.packets;
    }
    result.findings.insert(result.findings.end(), its.findings.begin(), its.findings.end());
    result.notes.insert(result.notes.end(), its.notes.begin(), its.notes.end());
    if (rank > 0) continue;
    result.launches += its.launches;
    result.launch_cycles += its.launch_cycles;
    std::move(its.operators.begin(), its.operators.end(), std::back_inserter(result.operators));
    for (const std::string& work : its.host_work) {
      if (std::find(result.host_work.begin(), result.host_work.end(), work) == result.host_work.end())
        result.host_work.push_back(work);
    }
  }
}

/// Each cluster of the last stage has the logits of its words; the hosts get all of them.
void ParallelBackend::gather_logits(Runs& runs, IterationResult& result) {
  const std::int64_t last = m_parallelism.pp - 1, rows = runs.front().logits_rows();
  const std::int64_t words = at(last, 0).part().head_rows(m_config);
  const std::int64_t cycles = m_links.gather_cycles(rows * words * at(last, 0).element_bytes(), group(last));
  result.comm_cycles += cycles;
  result.cycles += cycles;
  if (!m_has_values) return;
  result.logits_rows = rows;
  result.logits.resize(static_cast<std::size_t>(rows * m_config.vocab_size));
  for (std::int64_t rank = 0; rank < m_parallelism.tp; ++rank) {
    Bytes bytes;
    if (m_transport.owns(number(last, rank))) {
      const std::vector<float> mine = runs[static_cast<std::size_t>(rank)].take_logits();
      const auto all = std::as_bytes(std::span(mine));
      bytes.assign(all.begin(), all.end());
    }
    bytes = m_transport.broadcast(number(last, rank), std::move(bytes));
    for (std::int64_t row = 0; row < rows; ++row) {
      std::memcpy(result.logits.data() + row * m_config.vocab_size + rank * words,
                  bytes.data() + row * words * static_cast<std::int64_t>(sizeof(float)),
                  static_cast<std::size_t>(words) * sizeof(float));
    }
  }
}

// --- Caches that move.

namespace {

/// Heads [first, first + count) of [2][positions][heads][dim], of so many bytes a head.
void copy_heads(const Bytes& from, std::int64_t from_heads, std::int64_t from_first, Bytes& to, std::int64_t to_heads,
                std::int64_t to_first, std::int64_t count, std::int64_t head_bytes) {
  const std::int64_t rows = std::ssize(from) / (from_heads * head_bytes);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::memcpy(to.data() + (row * to_heads + to_first) * head_bytes,
                from.data() + (row * from_heads + from_first) * head_bytes,
                static_cast<std::size_t>(count * head_bytes));
  }
}

}  // namespace

/// Of all heads, in the process that owns `to`.
Bytes ParallelBackend::full_cache(std::int64_t sequence, std::int64_t layer, std::int64_t positions, int to) {
  std::int64_t stage = 0;
  while (layer >= at(stage, 0).part().first_layer + at(stage, 0).part().layers) ++stage;
  const models::LlamaConfig& share = at(stage, 0).model().config();
  const std::int64_t head_bytes = share.head_dim * at(stage, 0).element_bytes();
  Bytes all;
  if (m_transport.owns(to)) all.resize(static_cast<std::size_t>(2 * positions * m_config.kv_heads * head_bytes));
  for (std::int64_t rank = 0; rank < m_parallelism.tp; ++rank) {
    const int from = number(stage, rank);
    if (m_transport.owns(from)) m_transport.send(from, to, at(stage, rank).read_cache(sequence, layer));
    if (!m_transport.owns(to)) continue;
    copy_heads(m_transport.receive(from, to), share.kv_heads, 0, all, m_config.kv_heads, rank * share.kv_heads,
               share.kv_heads, head_bytes);
  }
  return all;
}

bool ParallelBackend::take_cache(ParallelBackend& from, std::int64_t sequence) {
  const std::int64_t positions = from.length(sequence);
  for (const auto& stage : m_stages) {
    if (!stage->set_length(sequence, positions)) return false;
  }
  if (!m_has_values) return true;
  for (std::int64_t stage = 0; stage < m_parallelism.pp; ++stage) {
    for (std::int64_t rank = 0; rank < m_parallelism.tp; ++rank) {
      ClusterStage& its = at(stage, rank);
      const models::LlamaConfig& share = its.model().config();
      const std::int64_t head_bytes = share.head_dim * its.element_bytes();
      for (std::int64_t i = 0; i < its.part().layers; ++i) {
        const std::int64_t layer = its.part().first_layer + i;
        const Bytes all = from.full_cache(sequence, layer, positions, number(stage, rank));
        if (!m_transport.owns(number(stage, rank))) continue;
        Bytes mine(static_cast<std::size_t>(2 * positions * share.kv_heads * head_bytes));
        copy_heads(all, m_config.kv_heads, rank * share.kv_heads, mine, share.kv_heads, 0, share.kv_heads, head_bytes);
        its.write_cache(sequence, layer, mine);
      }
    }
  }
  return true;
}

}  // namespace mtsim::runtime
