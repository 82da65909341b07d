// SPDX-License-Identifier: Apache-2.0
#include "scenarios/explore/candidate.h"

#include <algorithm>

namespace mtsim::scenarios {

void Best::add(Candidate candidate) {
  m_heap.push_back(std::move(candidate));
  std::push_heap(m_heap.begin(), m_heap.end());
  if (m_heap.size() <= m_count) return;
  std::pop_heap(m_heap.begin(), m_heap.end());
  m_heap.pop_back();
}

std::vector<Candidate> Best::sorted() {
  std::sort_heap(m_heap.begin(), m_heap.end());
  return std::move(m_heap);
}

void Killed::add(std::int64_t count, const Candidate& point, std::int64_t its_need, std::int64_t its_limit) {
  const std::int64_t miss = its_need - its_limit, least = needed - available;
  const bool is_nearer = points == 0 || miss < least || (miss == least && named_before(point, example));
  points += count;
  if (!is_nearer) return;
  example = point;
  needed = its_need;
  available = its_limit;
}

}  // namespace mtsim::scenarios
