// SPDX-License-Identifier: Apache-2.0
// Which bytes of one memory hold no value: allocated and never written, or written with bytes that held none.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/core/footprint.h"

namespace mtsim::sim {

class NeverWritten {
 public:
  struct Range {
    ByteRange bytes;
    int cause = 0;  // of the caller's choice: why they hold no value
  };

  bool empty() const { return m_ranges.empty(); }
  /// Whether all of [first, end) lies before or behind what holds no value; may be false where there is none either.
  bool misses(std::int64_t first, std::int64_t end) const {
    return m_ranges.empty() || m_ranges.begin()->first >= end || m_ranges.rbegin()->second.end <= first;
  }
  void add(ByteRange bytes, int cause);
  void remove(ByteRange bytes);
  void remove(const Block& block);
  void clear() { m_ranges.clear(); }

  bool any(const Block& block) const;
  /// In the order of their bytes, cut to the block.
  std::vector<Range> in(const Block& block) const;
  std::vector<Range> all() const;

 private:
  struct Rest {
    std::int64_t end;
    int cause;
  };
  using Ranges = std::map<std::int64_t, Rest>;  // by first byte; disjoint
  Ranges::const_iterator first_behind(std::int64_t offset) const;

  Ranges m_ranges;
};

}  // namespace mtsim::sim
