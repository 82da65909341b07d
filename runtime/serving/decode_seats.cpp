// SPDX-License-Identifier: Apache-2.0
#include "runtime/serving/decode_seats.h"

#include <algorithm>
#include <utility>

namespace mtsim::runtime {

DecodeSeats::DecodeSeats(const Pool& pool, KvCache cache)
    : m_places(pool.micro_batch),
      m_free(pool.pp * pool.micro_batch),
      m_cache(std::move(cache)),
      m_micro_batches(static_cast<std::size_t>(pool.pp)) {}

DecodeSeats::MicroBatch& DecodeSeats::of(std::int64_t request) {
  return *std::find_if(m_micro_batches.begin(), m_micro_batches.end(),
                       [&](const MicroBatch& batch) { return batch.seated.contains(request); });
}

bool DecodeSeats::sit(std::int64_t request, std::int64_t positions, std::int64_t most) {
  if (m_free == 0 || !m_cache.begin(request, most)) return false;
  if (!m_cache.grow(request, positions)) {
    m_cache.end(request);
    return false;
  }
  const auto emptiest =
      std::min_element(m_micro_batches.begin(), m_micro_batches.end(),
                       [](const MicroBatch& a, const MicroBatch& b) { return a.seated.size() < b.seated.size(); });
  emptiest->seated.insert(request);
  --m_free;
  return true;
}

void DecodeSeats::ready(std::int64_t request) { of(request).ready.insert(request); }

void DecodeSeats::leave(std::int64_t request) {
  MicroBatch& its = of(request);
  its.seated.erase(request);
  its.ready.erase(request);
  m_cache.end(request);
  ++m_free;
}

std::vector<std::size_t> DecodeSeats::startable() const {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < m_micro_batches.size(); ++i) {
    if (!m_micro_batches[i].under_way && !m_micro_batches[i].ready.empty()) result.push_back(i);
  }
  return result;
}

bool DecodeSeats::all_ready() const {
  return std::all_of(m_micro_batches.begin(), m_micro_batches.end(),
                     [](const MicroBatch& batch) { return batch.ready.size() == batch.seated.size(); });
}

std::optional<std::int64_t> DecodeSeats::newest_at_rest() const {
  std::optional<std::int64_t> newest;
  for (const MicroBatch& batch : m_micro_batches) {
    if (!batch.under_way && !batch.ready.empty()) newest = std::max(newest.value_or(-1), *batch.ready.rbegin());
  }
  return newest;
}

}  // namespace mtsim::runtime
