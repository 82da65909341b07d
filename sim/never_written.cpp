// SPDX-License-Identifier: Apache-2.0
#include "sim/never_written.h"

#include <algorithm>

namespace mtsim::sim {

/// The first range that ends behind `offset`.
NeverWritten::Ranges::const_iterator NeverWritten::first_behind(std::int64_t offset) const {
  auto range = m_ranges.upper_bound(offset);
  if (range != m_ranges.begin() && std::prev(range)->second.end > offset) --range;
  return range;
}

void NeverWritten::add(ByteRange bytes, int cause) {
  if (bytes.first >= bytes.end) return;
  remove(bytes);
  const auto next = m_ranges.lower_bound(bytes.first);
  if (next != m_ranges.end() && next->first == bytes.end && next->second.cause == cause) {
    bytes.end = next->second.end;
    m_ranges.erase(next);
  }
  const auto behind = m_ranges.lower_bound(bytes.first);
  if (behind != m_ranges.begin()) {
    const auto before = std::prev(behind);
    if (before->second.end == bytes.first && before->second.cause == cause) {
      before->second.end = bytes.end;
      return;
    }
  }
  m_ranges.emplace(bytes.first, Rest{bytes.end, cause});
}

void NeverWritten::remove(ByteRange bytes) {
  auto range = m_ranges.upper_bound(bytes.first);
  if (range != m_ranges.begin()) --range;
  while (range != m_ranges.end() && range->first < bytes.end) {
    const std::int64_t first = range->first;
    const Rest rest = range->second;
    if (rest.end <= bytes.first) {
      ++range;
      continue;
    }
    range = m_ranges.erase(range);
    if (first < bytes.first) m_ranges.emplace_hint(range, first, Rest{bytes.first, rest.cause});
    if (rest.end > bytes.end) range = m_ranges.emplace_hint(range, bytes.end, Rest{rest.end, rest.cause});
  }
}

void NeverWritten::remove(const Block& block) {
  for (std::int64_t row = 0; row < block.rows; ++row) {
    const std::int64_t first = block.first + row * block.pitch;
    if (block.rows > 1) {  // rows without a range are skipped together
      const auto next = first_behind(first);
      if (next == m_ranges.end() || next->first >= block.end()) return;
    }
    remove(ByteRange{first, first + block.bytes});
  }
}

bool NeverWritten::any(const Block& block) const {
  auto range = first_behind(block.first);
  if (block.rows == 1) return range != m_ranges.end() && range->first < block.end();
  for (; range != m_ranges.end() && range->first < block.end(); ++range) {
    if (overlap(block, {range->first, range->second.end - range->first, 1, 0}) >= 0) return true;
  }
  return false;
}

std::vector<NeverWritten::Range> NeverWritten::in(const Block& block) const {
  std::vector<Range> found;
  for (std::int64_t row = 0; row < block.rows; ++row) {
    const std::int64_t first = block.first + row * block.pitch, end = first + block.bytes;
    auto range = first_behind(first);
    if (range == m_ranges.end() || range->first >= block.end()) break;
    for (; range != m_ranges.end() && range->first < end; ++range) {
      found.push_back({{std::max(first, range->first), std::min(end, range->second.end)}, range->second.cause});
    }
  }
  return found;
}

std::vector<NeverWritten::Range> NeverWritten::all() const {
  std::vector<Range> found;
  for (const auto& [first, rest] : m_ranges) found.push_back({{first, rest.end}, rest.cause});
  return found;
}

}  // namespace mtsim::sim
