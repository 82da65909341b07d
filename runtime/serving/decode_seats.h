// SPDX-License-Identifier: Apache-2.0
// Who decodes where: the seats of a replica's micro-batches, and room in its caches for those who sit there.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "runtime/kv/kv_cache.h"
#include "runtime/serving/serving_plan.h"

namespace mtsim::runtime {

class DecodeSeats {
 public:
  /// PP micro-batches. `cache` is that of the fullest cluster of the replica.
  DecodeSeats(const Pool& pool, KvCache cache);

  std::int64_t free() const { return m_free; }
  bool empty() const { return m_free == std::ssize(m_micro_batches) * m_places; }
  std::int64_t used_positions() const { return (m_cache.blocks() - m_cache.free_blocks()) * m_cache.block(); }

  /// A seat in the emptiest micro-batch, with room for `positions` of at most `most`. False when either is missing now.
  bool sit(std::int64_t request, std::int64_t positions, std::int64_t most);
  /// Its cache is complete: it is in the next iteration of its micro-batch.
  void ready(std::int64_t request);
  void leave(std::int64_t request);

  /// Micro-batches that are not under way and have somebody ready.
  std::vector<std::size_t> startable() const;
  /// Oldest first.
  const std::set<std::int64_t>& ready_in(std::size_t micro_batch) const { return m_micro_batches[micro_batch].ready; }
  bool all_ready() const;
  void depart(std::size_t micro_batch) { m_micro_batches[micro_batch].under_way = true; }
  void come_back(std::size_t micro_batch) { m_micro_batches[micro_batch].under_way = false; }

  bool grow(std::int64_t request, std::int64_t positions) { return m_cache.grow(request, positions); }
  /// Who gives its cache up: of those that are ready and not under way the one that came last.
  std::optional<std::int64_t> newest_at_rest() const;

 private:
  struct MicroBatch {
    std::set<std::int64_t> seated, ready;
    bool under_way = false;
  };
  MicroBatch& of(std::int64_t request);

  std::int64_t m_places;  // of a micro-batch
  std::int64_t m_free;
  KvCache m_cache;
  std::vector<MicroBatch> m_micro_batches;
};

}  // namespace mtsim::runtime
