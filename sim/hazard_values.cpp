// SPDX-License-Identifier: Apache-2.0
// Bytes that hold no value. They may be moved and computed with: padding is. A finding is a call of which a whole input
// holds none, and what is left of them in the DDR at the end; from an input that holds some, lane by lane those results
// hold none that depend on them.
#include <algorithm>
#include <utility>

#include "sim/hazard.h"

namespace mtsim::sim {
namespace {

/// Where byte `at` of a row-wise stream lies in a block.
std::int64_t place_in(const Block& block, std::int64_t at) {
  return block.first + at / block.bytes * block.pitch + at % block.bytes;
}
/// The stream position of a byte of the block.
std::int64_t position_in(const Block& block, std::int64_t offset) {
  if (block.rows == 1) return offset - block.first;
  const std::int64_t row = (offset - block.first) / block.pitch;
  return row * block.bytes + (offset - block.first) % block.pitch;
}

std::vector<ByteRange> merged(const std::vector<NeverWritten::Range>& ranges, std::int64_t base) {
  std::vector<ByteRange> result;
  for (const NeverWritten::Range& range : ranges) {
    const ByteRange bytes{range.bytes.first - base, range.bytes.end - base};
    if (!result.empty() && result.back().end == bytes.first) {
      result.back().end = bytes.end;
    } else {
      result.push_back(bytes);
    }
  }
  return result;
}

std::vector<NeverWritten::Range> in_blocks(const NeverWritten& never_written, const std::vector<Block>& blocks,
                                           std::int64_t offset) {
  std::vector<NeverWritten::Range> all;
  for (const Block& block : blocks) {
    const auto found = never_written.in(block.shifted(offset));
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

}  // namespace

/// The same bytes from the same source line again, in another launch or after free_all, are one cause: the last time's.
void HazardMonitor::cause_of_allocation(const Event& event, int memory, const Block& block) {
  const auto [known, is_new] =
      m_allocation_index.try_emplace({event.where.file_name(), event.where.line(), memory, block.first, block.end()},
                                     static_cast<int>(m_causes.size()));
  const int cause = known->second;
  if (is_new)
    m_causes.push_back({event, -1, memory, block});
  else
    m_causes[cause].event = event;
  m_memories[memory].allocations.push_back({block.first, block.end(), cause});
  m_memories[memory].never_written.add({block.first, block.end()}, cause);
}

/// One a source line and cause, of the first time.
int HazardMonitor::cause_after(const Event& event, int from, int memory, const Block& block) {
  const auto [known, is_new] = m_cause_index.try_emplace(
      {event.where.file_name(), event.where.line(), event.core, from}, static_cast<int>(m_causes.size()));
  if (is_new) m_causes.push_back({event, from, memory, block});
  return known->second;
}

void HazardMonitor::move_values(const Transfer& transfer) {
  const auto& [source, destination] = transfer.sides;
  const NeverWritten& from = m_memories[source.memory].never_written;
  NeverWritten& to = m_memories[destination.memory].never_written;
  std::vector<NeverWritten::Range> moved;
  if (!from.empty() && from.any(source.block)) {
    for (const auto& [bytes, cause] : from.in(source.block)) {
      const int behind = cause_after(transfer.event, cause, source.memory, source.block);
      std::int64_t at = position_in(source.block, bytes.first);
      for (std::int64_t left = bytes.end - bytes.first; left > 0;) {
        const std::int64_t piece = std::min(left, destination.block.bytes - at % destination.block.bytes);
        const std::int64_t place = place_in(destination.block, at);
        moved.push_back({{place, place + piece}, behind});
        at += piece;
        left -= piece;
      }
    }
  }
  if (!to.empty()) to.remove(destination.block);
  for (const auto& [bytes, cause] : moved) to.add(bytes, cause);
  const int its_owner = owner(destination.memory);
  if (!moved.empty() && its_owner >= 0) forget_checked(m_cores[its_owner]);
}

void HazardMonitor::values_of_call(Core& core, const Event& event, const CallFootprint& footprint,
                                   std::span<const Argument> arguments) {
  std::vector<std::vector<ByteRange>> undefined(arguments.size());
  int cause = -1;
  bool unusable = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const PointerFootprint& touched = footprint.pointers[i];
    if (touched.reads.empty()) continue;
    const int memory = memory_of(arguments[i].pointer);
    const auto offset = static_cast<std::int64_t>(arguments[i].pointer.offset);
    const auto found = in_blocks(m_memories[memory].never_written, touched.reads, offset);
    if (found.empty()) continue;
    if (cause < 0) cause = found.front().cause;
    std::int64_t missing = 0, read = 0;
    for (const auto& range : found) missing += range.bytes.end - range.bytes.first;
    for (const Block& block : touched.reads) read += block.total_bytes();
    if (missing == read) {
      unusable = true;
      const Block block = touched.reads.front().shifted(offset);
      raise_never_written(event, memory, block, block.first, found.front().cause);
    }
    undefined[i] = merged(found, offset);
  }
  std::vector<std::vector<ByteRange>> results(arguments.size());
  if (!unusable) results = footprint.undefined_results(undefined);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const PointerFootprint& touched = footprint.pointers[i];
    if (touched.writes.empty()) continue;
    const int memory = memory_of(arguments[i].pointer);
    const auto offset = static_cast<std::int64_t>(arguments[i].pointer.offset);
    NeverWritten& never_written = m_memories[memory].never_written;
    const std::vector<ByteRange> before = merged(in_blocks(never_written, touched.writes, offset), offset);
    if (before == results[i]) continue;
    for (const Block& block : touched.writes) never_written.remove(block.shifted(offset));
    for (const ByteRange& bytes : results[i]) {
      never_written.add({bytes.first + offset, bytes.end + offset},
                        cause_after(event, cause, memory, touched.writes.front().shifted(offset)));
    }
    if (!results[i].empty()) forget_checked(core);
  }
}

void HazardMonitor::raise_never_written(const Event& event, int memory, const Block& block, std::int64_t at,
                                        int cause) {
  int root = cause;
  while (m_causes[root].from >= 0) root = m_causes[root].from;
  Raised raised;
  raised.kind = "never-written";
  raised.first = m_causes[root].event;
  raised.first_bytes = {nullptr, m_causes[root].memory, m_causes[root].block, false};
  raised.second = event;
  raised.second_bytes = {nullptr, memory, block, false};
  raised.at = at;
  raised.cause = cause;
  raise(std::move(raised));
}

/// The host reads the DDR after the launch: what was put there must be a value.
void HazardMonitor::end_values() {
  const int ddr = 2 * m_core_count + 1;
  NeverWritten& never_written = m_memories[ddr].never_written;
  for (const auto& [bytes, cause] : never_written.all()) {
    const Cause& last = m_causes[cause];
    if (last.from < 0) continue;
    raise_never_written(last.event, last.memory, last.block, last.block.first, last.from);
    never_written.remove(bytes);
  }
}

/// Whether some core's unordered write decides over it: the race is the finding then, since in another run the bytes
/// may have been written in time.
bool HazardMonitor::contested(const Raised& raised) const {
  if (raised.cause < 0) return false;
  const auto in_race = [&](const Event& event) {
    return m_contested.count({event.core, event.where.file_name(), event.where.line()}) > 0;
  };
  if (in_race(raised.second)) return true;
  for (int cause = raised.cause; m_causes[cause].from >= 0; cause = m_causes[cause].from) {
    if (in_race(m_causes[cause].event)) return true;
  }
  return false;
}

}  // namespace mtsim::sim
