// SPDX-License-Identifier: Apache-2.0
// From the queue through prefill to a seat of the decode pool.
#include <utility>

#include "runtime/serving/engine.h"

namespace mtsim::runtime {
namespace {

PoolPlace prefill_place(std::size_t replica) { return {PoolKind::prefill, static_cast<std::int64_t>(replica)}; }
PoolPlace decode_place(std::size_t replica) { return {PoolKind::decode, static_cast<std::int64_t>(replica)}; }
constexpr PoolPlace k_buffer{PoolKind::buffer, 0};

}  // namespace

void Engine::start_prefill() {
  for (std::size_t replica = 0; replica < m_prefill.size(); ++replica) start_prefill(replica);
}

/// Back-pressure: a request begins when there is room for its cache where it goes to, and none overtakes another.
void Engine::start_prefill(std::size_t replica) {
  PrefillReplica& its = m_prefill[replica];
  std::vector<std::int64_t> requests;
  bool is_paused = false;
  if (its.pipeline->has_room()) {
    while (!m_queue.empty() && std::ssize(requests) < m_plan.prefill.micro_batch) {
      const std::int64_t request = *m_queue.begin();
      if (!find_room(request)) {
        is_paused = requests.empty();
        break;
      }
      m_queue.erase(m_queue.begin());
      requests.push_back(request);
    }
  }
  if (is_paused && !its.paused_since) its.paused_since = m_clock.now();
  if (!is_paused && its.paused_since) {
    m_result.pools.front().paused_s += m_clock.now() - *its.paused_since;
    its.paused_since.reset();
  }
  if (requests.empty()) return;
  Pass pass = prefill_pass(std::move(requests));
  if (m_options.executor != nullptr) {
    for (const std::int64_t request : pass.requests)
      m_options.executor->begin(prefill_place(replica), request, most(request));
  }
  pass.begins = [this, replica, pass](std::int64_t stage, const StageTime& time) {
    begin_stage(0, replica, stage, time, pass);
    return send_cache(replica, stage, time, pass);
  };
  pass.done = [this, replica, pass] {
    m_clock.at(m_clock.now() + m_cost.host_s(std::ssize(pass.requests)),
               [this, replica, pass] { prefilled(replica, pass); });
  };
  its.pipeline->enter(std::move(pass));
}

std::int64_t Engine::free_seats() const {
  std::int64_t free = 0;
  for (const DecodeReplica& replica : m_decode) free += replica.seats.free();
  return free;
}

std::optional<std::size_t> Engine::sit(std::int64_t request) {
  std::vector<std::size_t> order(m_decode.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return m_decode[a].seats.free() > m_decode[b].seats.free(); });
  for (const std::size_t replica : order) {
    if (m_decode[replica].seats.sit(request, at_first(request), most(request))) return replica;
  }
  return std::nullopt;
}

/// A seat that nobody before it waits for, else the buffer.
bool Engine::find_room(std::int64_t request) {
  Destination& destination = live(request).destination;
  destination = {};
  if (!needs_decode(request)) return true;
  if (free_seats() > m_for_buffer) {
    destination.replica = sit(request);
    if (destination.replica) return true;
  }
  const std::int64_t bytes = to_prefill(request) * m_bytes_per_token;
  if (!m_buffer.take(bytes)) return false;
  destination.buffer_bytes = bytes;
  ++m_for_buffer;
  return true;
}

ClusterRange Engine::clusters_of(const Destination& destination) const {
  return destination.replica ? m_decode[*destination.replica].pipeline->options().clusters : m_buffer_clusters;
}

/// A layer's K and V leave when it is computed, over the stage's own links, while the next one is. Layers are done at
/// even times of the stage's.
double Engine::send_cache(std::size_t replica, std::int64_t stage, const StageTime& time, const Pass& pass) {
  PrefillReplica& its = m_prefill[replica];
  const ClusterRange here = its.pipeline->clusters_of(stage);
  std::int64_t tokens = 0;
  bool is_near = true;
  for (const std::int64_t request : pass.requests) {
    if (!needs_decode(request)) continue;
    tokens += to_prefill(request);
    is_near = is_near && here.in_one_device(clusters_of(live(request).destination), m_options.clusters_per_device);
  }
  if (tokens == 0) return 0;
  const Pool& pool = m_plan.prefill;
  const StageShape first{pool.tp, pool.pp, 0}, shape{pool.tp, pool.pp, stage};
  const std::int64_t layers = shape.layers(m_cost.layers());
  const std::int64_t bytes = tokens * (m_cost.kv_bytes_per_token(pool.tp, pool.pp) / first.layers(m_cost.layers()));
  const double message_s = m_cost.message_s(bytes, is_near), layer_s = time.busy_s() / static_cast<double>(layers);
  double& link_free = its.links_free[static_cast<std::size_t>(stage)];
  for (std::int64_t layer = 1; layer <= layers; ++layer)
    link_free = std::max(link_free, m_clock.now() + static_cast<double>(layer) * layer_s) + message_s;
  for (const std::int64_t request : pass.requests) {
    if (!needs_decode(request)) continue;
    live(request).cache_left_s = std::max(live(request).cache_left_s, link_free);
    m_result.migrated_bytes += static_cast<double>(to_prefill(request)) * static_cast<double>(m_bytes_per_token) *
                               static_cast<double>(layers) / static_cast<double>(m_cost.layers());
  }
  return link_free;
}

void Engine::prefilled(std::size_t replica, const Pass& pass) {
  std::vector<std::int64_t> leaving;
  for (const std::int64_t request : pass.requests) {
    if (needs_decode(request)) leaving.push_back(request);
  }
  emit(prefill_place(replica), pass);
  for (const std::int64_t request : pass.requests) {
    --m_prefilling;
    if (live(request).has_ended) {
      finish(request);
      if (m_options.executor != nullptr) m_options.executor->end(prefill_place(replica), request);
    } else {
      ++m_behind_prefill;
    }
  }
  for (const std::int64_t request : leaving)
    m_clock.at(live(request).cache_left_s, [this, replica, request] { cache_arrived(replica, request); });
}

void Engine::cache_arrived(std::size_t replica, std::int64_t request) {
  const Live& its = live(request);
  if (its.has_ended) return drop_cache(request);
  const bool is_direct = its.destination.replica.has_value();
  if (m_options.executor != nullptr) {
    const PoolPlace to = is_direct ? decode_place(*its.destination.replica) : k_buffer;
    m_options.executor->begin(to, request, most(request));
    m_options.executor->move(request, prefill_place(replica), to);
  }
  if (is_direct)
    take_seat(*its.destination.replica, request);
  else
    m_buffered.insert(request);
}

/// Its text ended with the first token, while its cache was on the way.
void Engine::drop_cache(std::int64_t request) {
  const Destination& destination = live(request).destination;
  if (destination.replica) return m_decode[*destination.replica].seats.leave(request);
  m_buffer.give_back(destination.buffer_bytes);
  --m_for_buffer;
}

/// On demand: when a seat is free, and in the order of the requests.
void Engine::pull_caches() {
  while (!m_buffered.empty()) {
    const std::int64_t request = *m_buffered.begin();
    const std::optional<std::size_t> replica = sit(request);
    if (!replica) return;
    m_buffered.erase(m_buffered.begin());
    --m_for_buffer;
    pull(request, *replica);
  }
}

void Engine::pull(std::int64_t request, std::size_t replica) {
  Live& its = live(request);
  its.destination.replica = replica;
  const Pipeline::Options& to = m_decode[replica].pipeline->options();
  const bool is_near = m_buffer_clusters.in_one_device(to.clusters, m_options.clusters_per_device);
  const std::int64_t received = its.context * m_cost.kv_bytes_per_token(to.tp, to.pp);
  const double done = m_buffer.pull(m_clock.now(), its.destination.buffer_bytes, received,
                                    [&](std::int64_t bytes) { return m_cost.message_s(bytes, is_near); });
  m_result.migrated_bytes += static_cast<double>(its.destination.buffer_bytes);
  m_clock.at(done, [this, request, replica] {
    m_buffer.give_back(live(request).destination.buffer_bytes);
    if (m_options.executor != nullptr) {
      m_options.executor->begin(decode_place(replica), request, most(request));
      m_options.executor->move(request, k_buffer, decode_place(replica));
    }
    take_seat(replica, request);
  });
}

void Engine::take_seat(std::size_t replica, std::int64_t request) {
  m_decode[replica].seats.ready(request);
  --m_behind_prefill;
  ++m_decoding;
}

}  // namespace mtsim::runtime
