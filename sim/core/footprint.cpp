// SPDX-License-Identifier: Apache-2.0
#include "sim/core/footprint.h"

#include <algorithm>
#include <limits>

#include "sim/core/dataflow.h"

namespace mtsim::sim {
namespace {

/// The bytes a call has stored through one pointer so far, in units of the smallest store.
class Stored {
 public:
  static constexpr std::int64_t k_unit = 2;  // bytes

  void add(ByteRange bytes) {
    const std::int64_t first = bytes.first / k_unit, end = (bytes.end + k_unit - 1) / k_unit;
    if (m_units.empty()) m_base = first;
    if (first < m_base) {
      m_units.insert(m_units.begin(), static_cast<std::size_t>(m_base - first), false);
      m_base = first;
    }
    if (end > m_base + std::ssize(m_units)) m_units.resize(static_cast<std::size_t>(end - m_base));
    std::fill(m_units.begin() + (first - m_base), m_units.begin() + (end - m_base), true);
  }
  bool empty() const { return m_units.empty(); }
  bool contains(std::int64_t at) const {
    const std::int64_t unit = at / k_unit - m_base;
    return unit >= 0 && unit < std::ssize(m_units) && m_units[static_cast<std::size_t>(unit)];
  }

 private:
  std::int64_t m_base = 0;
  std::vector<bool> m_units;
};

/// Marks the values that reach a store, a predicate or an address. A load of what the call itself has stored through
/// the same pointer takes nothing from outside: it is no read of the footprint.
class Liveness {
 public:
  explicit Liveness(std::size_t pointers) : m_footprints(pointers), m_stored(pointers) { m_values.push_back({}); }

  void steers(Value value) { reach(value); }
  void store(const Step& step, const CallTrace::Access& access, const std::vector<Value>& sources) {
    for (const Value value : sources) reach(value);
    for (const Piece& piece : pieces(*step.row)) {
      const ByteRange bytes{access.offset + piece.at, access.offset + piece.at + piece.bytes};
      m_footprints[access.pointer].writes.push_back(bytes);
      m_stored[access.pointer].add(bytes);
    }
  }
  Value result(const Step& step, const CallTrace::Access* access, const std::vector<Value>& sources) {
    const auto value = static_cast<Value>(m_values.size());
    for (std::size_t part = 0; part < step.results.size(); ++part) add(access != nullptr ? k_nothing : sources);
    if (access != nullptr) {
      for (const Piece& piece : pieces(*step.row)) {
        load(value + static_cast<Value>(piece.part), access->pointer,
             {access->offset + piece.at, access->offset + piece.at + piece.bytes});
      }
    }
    return value;
  }
  Value post_modify(const std::vector<Value>& sources) {
    add(sources);
    return static_cast<Value>(m_values.size() - 1);
  }

  std::vector<PointerFootprint> finish() {
    while (!m_pending.empty()) {
      const Sources sources = m_values[m_pending.back()];
      m_pending.pop_back();
      for (std::uint32_t i = 0; i < sources.count; ++i) reach(m_sources[sources.first + i]);
    }
    m_reached.resize(m_values.size());
    for (const Load& load : m_loads) {
      auto& kind = m_footprints[load.pointer];
      (m_reached[load.value] ? kind.live : kind.dead).push_back(load.bytes);
    }
    std::vector<PointerFootprint> result;
    for (Ranges& ranges : m_footprints) {
      PointerFootprint footprint;
      footprint.reads = fold(std::move(ranges.live));
      footprint.writes = fold(std::move(ranges.writes));
      footprint.dead_reads = fold(without(fold(std::move(ranges.dead)), footprint.reads));
      footprint.hull = hull_of(footprint);
      result.push_back(std::move(footprint));
    }
    return result;
  }

 private:
  inline static const std::vector<Value> k_nothing;
  struct Sources {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };
  struct Load {
    Value value;
    std::uint16_t pointer;
    ByteRange bytes;
  };
  struct Ranges {
    std::vector<ByteRange> live, dead, writes;
  };

  void load(Value value, std::uint16_t pointer, ByteRange bytes) {
    const Stored& stored = m_stored[pointer];
    if (stored.empty()) {
      m_loads.push_back({value, pointer, bytes});
      return;
    }
    for (std::int64_t at = bytes.first; at < bytes.end; at += Stored::k_unit) {
      if (stored.contains(at)) continue;
      const std::int64_t end = std::min(at + Stored::k_unit, bytes.end);
      if (!m_loads.empty() && m_loads.back().value == value && m_loads.back().bytes.end == at) {
        m_loads.back().bytes.end = end;
      } else {
        m_loads.push_back({value, pointer, {at, end}});
      }
    }
  }
  void add(const std::vector<Value>& sources) {
    m_values.push_back({static_cast<std::uint32_t>(m_sources.size()), static_cast<std::uint32_t>(sources.size())});
    m_sources.insert(m_sources.end(), sources.begin(), sources.end());
  }
  void reach(Value value) {
    if (m_reached.size() < m_values.size()) m_reached.resize(std::max(m_values.size(), 2 * m_reached.size()));
    if (m_reached[value]) return;
    m_reached[value] = true;
    m_pending.push_back(value);
  }
  static ByteRange hull_of(const PointerFootprint& footprint);
  static std::vector<ByteRange> without(const std::vector<Block>& blocks, const std::vector<Block>& taken);

  std::vector<Ranges> m_footprints;
  std::vector<Stored> m_stored;  // by pointer
  std::vector<Sources> m_values;
  std::vector<Value> m_sources;
  std::vector<Load> m_loads;
  std::vector<bool> m_reached;
  std::vector<Value> m_pending;
};

void append_rows(const std::vector<Block>& blocks, std::vector<ByteRange>& ranges) {
  for (const Block& block : blocks) {
    for (std::int64_t row = 0; row < block.rows; ++row) {
      ranges.push_back({block.first + row * block.pitch, block.first + row * block.pitch + block.bytes});
    }
  }
}

ByteRange Liveness::hull_of(const PointerFootprint& footprint) {
  if (footprint.empty()) return {};
  ByteRange hull{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  for (const auto* blocks : {&footprint.reads, &footprint.dead_reads, &footprint.writes}) {
    for (const Block& block : *blocks) {
      hull = {std::min(hull.first, block.first), std::max(hull.end, block.end())};
    }
  }
  return hull;
}

std::vector<ByteRange> Liveness::without(const std::vector<Block>& blocks, const std::vector<Block>& taken) {
  std::vector<ByteRange> from, away, left;
  append_rows(blocks, from);
  append_rows(taken, away);
  merge(from);
  merge(away);
  auto gap = away.begin();
  for (ByteRange range : from) {
    while (gap != away.end() && gap->end <= range.first) ++gap;
    for (auto hole = gap; hole != away.end() && hole->first < range.end; ++hole) {
      if (hole->first > range.first) left.push_back({range.first, hole->first});
      range.first = std::max(range.first, hole->end);
    }
    if (range.first < range.end) left.push_back(range);
  }
  return left;
}

/// The first byte of `block` in [first, end), or -1.
std::int64_t find_in(const Block& block, std::int64_t first, std::int64_t end) {
  if (block.rows == 1) {
    const std::int64_t at = std::max(first, block.first);
    return at < std::min(end, block.first + block.bytes) ? at : -1;
  }
  const std::int64_t behind = first - block.first - block.bytes;  // rows that end at or before `first` come before
  const std::int64_t row = behind < 0 ? 0 : behind / block.pitch + 1;
  if (row >= block.rows) return -1;
  const std::int64_t start = block.first + row * block.pitch;
  return start < end ? std::max(start, first) : -1;
}

}  // namespace

void merge(std::vector<ByteRange>& ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const ByteRange& a, const ByteRange& b) { return a.first < b.first; });
  std::size_t kept = 0;
  for (const ByteRange& range : ranges) {
    if (kept > 0 && range.first <= ranges[kept - 1].end) {
      ranges[kept - 1].end = std::max(ranges[kept - 1].end, range.end);
    } else {
      ranges[kept++] = range;
    }
  }
  ranges.resize(kept);
}

std::int64_t overlap(const Block& a, const Block& b) {
  if (a.first >= b.end() || b.first >= a.end()) return -1;
  if (a.rows == 1) return find_in(b, a.first, a.first + a.bytes);
  if (b.rows == 1) return find_in(a, b.first, b.first + b.bytes);
  if (a.pitch == b.pitch) {  // columns that are disjoint stay so in every row
    const std::int64_t ahead = ((b.first - a.first) % a.pitch + a.pitch) % a.pitch;
    if (ahead >= a.bytes && ahead + b.bytes <= a.pitch) return -1;
  }
  const Block& walked = a.rows <= b.rows ? a : b;
  const Block& other = a.rows <= b.rows ? b : a;
  for (std::int64_t row = 0; row < walked.rows; ++row) {
    const std::int64_t start = walked.first + row * walked.pitch;
    if (const std::int64_t at = find_in(other, start, start + walked.bytes); at >= 0) return at;
  }
  return -1;
}

std::vector<Block> fold(std::vector<ByteRange> ranges) {
  merge(ranges);
  std::vector<Block> blocks;
  for (const ByteRange& range : ranges) {
    const std::int64_t bytes = range.end - range.first;
    if (!blocks.empty() && blocks.back().bytes == bytes) {
      Block& last = blocks.back();
      const std::int64_t pitch = range.first - (last.first + (last.rows - 1) * last.pitch);
      if (last.rows == 1) last.pitch = pitch;
      if (last.pitch == pitch) {
        ++last.rows;
        continue;
      }
    }
    blocks.push_back({range.first, bytes, 1, 0});
  }
  return blocks;
}

std::vector<PointerFootprint> footprint(const DecodedProgram& program, const CallTrace& call) {
  Liveness liveness(program.program().parameters.size());
  walk(program, call, liveness);
  return liveness.finish();
}

}  // namespace mtsim::sim
