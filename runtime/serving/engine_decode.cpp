// SPDX-License-Identifier: Apache-2.0
// Iterations of the decode pool; when coupled it prefills as well.
#include <utility>

#include "runtime/serving/engine.h"

namespace mtsim::runtime {
namespace {

PoolPlace decode_place(std::size_t replica) { return {PoolKind::decode, static_cast<std::int64_t>(replica)}; }

}  // namespace

void Engine::start_coupled() {
  std::vector<bool> may_join(m_decode.size());
  for (std::size_t i = 0; i < m_decode.size(); ++i)
    may_join[i] = m_plan.coupled_batch == CoupledBatch::continuous || m_decode[i].seats.empty();
  std::vector<std::vector<std::int64_t>> joining(m_decode.size());
  while (!m_queue.empty()) {
    const std::int64_t request = *m_queue.begin();
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < m_decode.size(); ++i) {
      if (may_join[i] && (!best || m_decode[i].seats.free() > m_decode[*best].seats.free())) best = i;
    }
    if (!best) break;
    if (!m_decode[*best].seats.sit(request, at_first(request), most(request))) {
      may_join[*best] = false;
      continue;
    }
    joining[*best].push_back(request);
    m_queue.erase(m_queue.begin());
  }
  for (std::size_t i = 0; i < m_decode.size(); ++i) {
    const auto& its = joining[i];
    const auto step = static_cast<std::size_t>(m_plan.prefill.micro_batch);
    for (std::size_t from = 0; from < its.size(); from += step) {
      const auto begin = its.begin() + static_cast<std::ptrdiff_t>(from);
      prefill_coupled(i, {begin, begin + static_cast<std::ptrdiff_t>(std::min(step, its.size() - from))});
    }
  }
}

void Engine::prefill_coupled(std::size_t replica, std::vector<std::int64_t> requests) {
  Pass pass = prefill_pass(std::move(requests));
  pass.urgent = true;
  if (m_options.executor != nullptr) {
    for (const std::int64_t request : pass.requests)
      m_options.executor->begin(decode_place(replica), request, most(request));
  }
  pass.begins = [this, replica, pass](std::int64_t stage, const StageTime& time) {
    begin_stage(m_decode_pool, replica, stage, time, pass);
    return 0.0;
  };
  pass.done = [this, replica, pass] {
    m_clock.at(m_clock.now() + m_cost.host_s(std::ssize(pass.requests)),
               [this, replica, pass] { prefilled_coupled(replica, pass); });
  };
  m_decode[replica].pipeline->enter(std::move(pass));
}

void Engine::prefilled_coupled(std::size_t replica, const Pass& pass) {
  emit(decode_place(replica), pass);
  for (const std::int64_t request : pass.requests) {
    --m_prefilling;
    if (live(request).has_ended) {
      leave_seat(replica, request);
      finish(request);
    } else {
      m_decode[replica].seats.ready(request);
      ++m_decoding;
    }
  }
}

void Engine::start_decode() {
  const bool is_together = coupled() && m_plan.coupled_batch == CoupledBatch::together;
  for (std::size_t replica = 0; replica < m_decode.size(); ++replica) {
    const DecodeSeats& seats = m_decode[replica].seats;
    if (is_together && !seats.all_ready()) continue;  // the batch is still being prefilled
    for (const std::size_t micro_batch : seats.startable()) start_decode(replica, micro_batch);
  }
}

void Engine::start_decode(std::size_t replica, std::size_t micro_batch) {
  DecodeReplica& its = m_decode[replica];
  const std::set<std::int64_t> ready = its.seats.ready_in(micro_batch);  // a copy: some may be preempted
  Pass pass;
  for (const std::int64_t request : ready) {
    if (!its.seats.ready_in(micro_batch).contains(request) || !make_room(replica, request)) continue;
    pass.requests.push_back(request);
  }
  // Who had room may have given it up for an older one of another micro-batch.
  std::erase_if(pass.requests, [&](std::int64_t r) { return !its.seats.ready_in(micro_batch).contains(r); });
  if (pass.requests.empty()) return;
  for (const std::int64_t request : pass.requests) {
    pass.batch.push_back({1, live(request).context});
    if (!std::exchange(live(request).has_decoded, true)) record(request).decode_start_s = m_clock.now();
  }
  its.seats.depart(micro_batch);
  pass.begins = [this, replica, pass](std::int64_t stage, const StageTime& time) {
    begin_stage(m_decode_pool, replica, stage, time, pass);
    return 0.0;
  };
  pass.done = [this, replica, micro_batch, pass] {
    m_clock.at(m_clock.now() + m_cost.host_s(std::ssize(pass.requests)),
               [this, replica, micro_batch, pass] { decoded(replica, micro_batch, pass); });
  };
  its.pipeline->enter(std::move(pass));
}

void Engine::decoded(std::size_t replica, std::size_t micro_batch, const Pass& pass) {
  emit(decode_place(replica), pass);
  for (const std::int64_t request : pass.requests) {
    if (!live(request).has_ended) continue;
    leave_seat(replica, request);
    finish(request);
    --m_decoding;
  }
  const Pipeline& pipeline = *m_decode[replica].pipeline;
  const std::int64_t last = pipeline.options().pp - 1;
  double back_s = 0;  // the ids, to the first stage
  if (last > 0) {
    constexpr std::int64_t k_id_bytes = 4;
    const bool is_near =
        pipeline.clusters_of(last).in_one_device(pipeline.clusters_of(0), m_options.clusters_per_device);
    back_s = m_cost.message_s(std::ssize(pass.requests) * k_id_bytes, is_near);
  }
  m_clock.at(m_clock.now() + back_s, [this, replica, micro_batch] { m_decode[replica].seats.come_back(micro_batch); });
}

void Engine::leave_seat(std::size_t replica, std::int64_t request) {
  m_decode[replica].seats.leave(request);
  if (m_options.executor != nullptr) m_options.executor->end(decode_place(replica), request);
}

/// For one more position; false when the request itself had to go.
bool Engine::make_room(std::size_t replica, std::int64_t request) {
  DecodeSeats& seats = m_decode[replica].seats;
  while (!seats.grow(request, live(request).context + 1)) {
    const std::int64_t newest = seats.newest_at_rest().value();
    preempt(replica, newest);
    if (newest == request) return false;
  }
  return true;
}

/// Back to the queue; what it has generated is prefilled with its prompt.
void Engine::preempt(std::size_t replica, std::int64_t request) {
  leave_seat(replica, request);
  live(request).context = 0;
  live(request).cache_left_s = 0;
  --m_decoding;
  ++record(request).preemptions;
  ++m_result.preemptions;
  m_queue.insert(request);
  m_settle_again = true;
}

}  // namespace mtsim::runtime
