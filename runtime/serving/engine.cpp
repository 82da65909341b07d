// SPDX-License-Identifier: Apache-2.0
#include "runtime/serving/engine.h"

#include <utility>

namespace mtsim::runtime {
namespace {

PoolUse use_of(std::string name, std::int64_t clusters) {
  PoolUse use;
  use.name = std::move(name);
  use.clusters = clusters;
  return use;
}

}  // namespace

Engine::Engine(const ServingPlan& plan, const Workload& workload, IterationCost& cost, const ServeOptions& options,
               const PlanMemory& memory, std::int64_t longest, ServingResult& result)
    : m_plan(plan),
      m_workload(workload),
      m_cost(cost),
      m_options(options),
      m_result(result),
      m_live(workload.size()),
      m_buffer(memory.buffer, plan.mode == PipelineMode::bounded,
               std::max<std::int64_t>(memory.buffer_clusters, plan.prefill.clusters())),
      m_bytes_per_token(cost.kv_bytes_per_token(1, 1)) {
  // Decode has the first clusters: its groups of 2 or 4 then lie in one device each.
  std::int64_t cluster = 0;
  const auto pipeline = [&](const Pool& pool, std::int64_t caches) {
    const ClusterRange clusters{cluster, pool.tp * pool.pp};
    cluster += clusters.count;
    return std::make_unique<Pipeline>(
        m_clock, m_cost, Pipeline::Options{pool.tp, pool.pp, clusters, options.clusters_per_device, caches});
  };
  KvOptions kv = plan.kv;
  const std::int64_t seats = plan.decode.pp * plan.decode.micro_batch;
  kv.sequences = kv.sequences > 0 ? std::min(kv.sequences, seats) : seats;
  for (std::int64_t replica = 0; replica < plan.decode.dp; ++replica) {
    m_decode.push_back(
        {pipeline(plan.decode, 1), DecodeSeats(plan.decode, KvCache(memory.position, kv, memory.kv_budget, longest))});
  }
  if (!coupled()) {
    for (std::int64_t replica = 0; replica < plan.prefill.dp; ++replica) {
      m_prefill.push_back({pipeline(plan.prefill, memory.prefill_caches),
                           std::vector<double>(static_cast<std::size_t>(plan.prefill.pp)), std::nullopt});
    }
    m_result.pools.push_back(use_of("prefill", plan.prefill.clusters()));
    m_result.buffer_capacity_bytes = memory.buffer;
  }
  m_buffer_clusters = plan.buffer.slack ? ClusterRange{0, cluster + plan.buffer.clusters}
                                        : ClusterRange{cluster, std::max<std::int64_t>(plan.buffer.clusters, 1)};
  m_decode_pool = m_result.pools.size();
  m_result.pools.push_back(use_of("decode", plan.decode.clusters()));
}

void Engine::run() {
  for (const Request& request : m_workload) {
    if (record(request.id).outcome == Outcome::rejected) continue;
    m_clock.at(request.arrival_s, [this, id = request.id] { m_queue.insert(id); });
  }
  m_clock.run([this] { settle(); });
  if (m_options.observer != nullptr && !m_result.occupancy.empty())
    m_options.observer->changed(m_result.occupancy.back());
  const auto sum_up = [&](PoolUse& use, const Pipeline& pipeline) {
    use.busy_s += pipeline.busy_s();
    use.iterations += pipeline.passes();
    use.available_s += static_cast<double>(pipeline.options().pp) * m_result.makespan_s;
  };
  for (const PrefillReplica& replica : m_prefill) sum_up(m_result.pools.front(), *replica.pipeline);
  for (const DecodeReplica& replica : m_decode) sum_up(m_result.pools[m_decode_pool], *replica.pipeline);
}

/// All that can begin now does.
void Engine::settle() {
  do {
    m_settle_again = false;
    if (coupled()) {
      start_coupled();
    } else {
      pull_caches();
      start_prefill();
    }
    start_decode();
  } while (m_settle_again);
  observe();
}

void Engine::observe() {
  Occupancy now{m_clock.now(), std::ssize(m_queue), m_prefilling, m_behind_prefill, m_buffer.used(), m_decoding, 0};
  now.kv_bytes = now.buffer_bytes;
  for (const DecodeReplica& replica : m_decode) now.kv_bytes += replica.seats.used_positions() * m_bytes_per_token;
  m_result.peak_buffer_bytes = std::max(m_result.peak_buffer_bytes, now.buffer_bytes);
  m_result.peak_kv_bytes = std::max(m_result.peak_kv_bytes, now.kv_bytes);
  auto& all = m_result.occupancy;
  if (!all.empty()) {
    Occupancy before = all.back();
    if (before.at_s == now.at_s) {
      all.back() = now;
      return;
    }
    before.at_s = now.at_s;
    if (before == now) return;
    if (m_options.observer != nullptr) m_options.observer->changed(all.back());
  }
  all.push_back(now);
}

void Engine::begin_stage(std::size_t pool, std::size_t replica, std::int64_t stage, const StageTime& time,
                         const Pass& pass) {
  if (!m_options.keep_events && m_options.observer == nullptr) return;
  StageEvent event{static_cast<std::int64_t>(pool),
                   static_cast<std::int64_t>(replica),
                   stage,
                   m_clock.now(),
                   time,
                   pass.requests,
                   pass.batch};
  if (m_options.observer != nullptr) m_options.observer->worked(event);
  if (m_options.keep_events) m_result.events.push_back(std::move(event));
}

Pass Engine::prefill_pass(std::vector<std::int64_t> requests) {
  Pass pass;
  pass.requests = std::move(requests);
  for (const std::int64_t request : pass.requests) {
    pass.batch.push_back({to_prefill(request), 0});
    if (record(request).preemptions == 0) record(request).prefill_start_s = m_clock.now();
    ++m_prefilling;
  }
  return pass;
}

std::vector<SequenceInput> Engine::inputs(const Pass& pass) {
  std::vector<SequenceInput> result;
  for (std::size_t i = 0; i < pass.requests.size(); ++i) {
    const auto& ids = record(pass.requests[i]).ids;
    result.push_back({pass.requests[i], {ids.end() - pass.batch[i].tokens, ids.end()}});
  }
  return result;
}

void Engine::emit(const PoolPlace& place, const Pass& pass) {
  std::vector<std::int32_t> ids;
  if (m_options.executor != nullptr) ids = m_options.executor->run(place, inputs(pass));
  for (std::size_t i = 0; i < pass.requests.size(); ++i) {
    const std::int64_t request = pass.requests[i];
    Live& its = live(request);
    RequestRecord& told = record(request);
    its.context += pass.batch[i].tokens;
    told.output_tokens = ++its.generated;
    if (its.generated == 1) told.first_token_s = m_clock.now();
    its.has_ended = its.generated == asked(request).output_tokens;
    if (ids.empty()) continue;
    told.ids.push_back(ids[i]);
    its.has_ended = its.has_ended || m_options.executor->ends(ids[i]);
  }
  m_result.emissions.push_back({m_clock.now(), std::ssize(pass.requests)});
}

void Engine::finish(std::int64_t request) {
  record(request).finish_s = m_clock.now();
  m_result.makespan_s = m_clock.now();
}

}  // namespace mtsim::runtime
