// SPDX-License-Identifier: Apache-2.0
// Accesses of different cores since their last meeting, compared: those to GSM and DDR, and what other cores did in a
// core's SM and AM.
#include <algorithm>

#include "sim/hazard.h"

namespace mtsim::sim {

/// Compares the accesses of different cores since the last meeting. A row_syn group that is still forming may yet put
/// some of them in order: then later.
void HazardMonitor::settle() {
  if (m_groups_waiting > 0) return;
  std::map<int, std::vector<const Side*>> foreign;
  for (auto& written : m_written) written.clear();
  for (const Transfer* transfer : m_live) {
    for (const Side& side : transfer->sides) {
      if (!side.write && !transfer->reads) continue;
      const int its_owner = owner(side.memory);
      if (its_owner < 0) {
        if (side.write) m_written[side.memory - 2 * m_core_count].push_back({side.block.first, side.block.end()});
      } else if (its_owner != transfer->event.core) {
        foreign[side.memory].push_back(&side);
      }
    }
  }
  for (std::size_t shared = 0; shared < m_shared.size(); ++shared) compare_shared(shared);
  for (const auto& [memory, sides] : foreign) compare_foreign(memory, sides);
  std::size_t kept = 0;
  for (Transfer* transfer : m_live) {
    if (transfer->done) {
      m_free.push_back(transfer);
      continue;
    }
    // Whatever another core does from here on comes after the start, so that what the start knew is of no use any more.
    transfer->start = &m_nothing_known;
    transfer->compared = true;
    transfer->live = kept;
    m_live[kept++] = transfer;
  }
  m_live.resize(kept);
  for (Core& core : m_cores) {
    core.touched.clear();
    core.sections.clear();
    for (auto& past : core.past) past.clear();
  }
}

/// Of a transfer that is complete only what other cores' accesses will be compared with is kept.
void HazardMonitor::retire(Core& core, Transfer& transfer) {
  constexpr std::size_t k_remembered = 16;  // buffers come round again
  constexpr std::size_t k_walks = 16;       // of a loop: one a verb and channel
  const Event& event = transfer.event;
  for (const Side& side : transfer.sides) {
    const Past past{side.block,
                    transfer.start,
                    event.verb,
                    event.where,
                    event.cycle,
                    0,
                    static_cast<std::uint32_t>(event.iteration),
                    0,
                    1,
                    transfer.done_at,
                    static_cast<std::int16_t>(event.core),
                    static_cast<std::int16_t>(event.channel),
                    side.write};
    std::vector<Past>& own = core.past[static_cast<std::size_t>(space(side.memory))];
    const bool is_shared = owner(side.memory) < 0;
    const std::size_t remembered = is_shared ? k_walks : k_remembered;
    const auto from = own.end() - static_cast<std::ptrdiff_t>(std::min(own.size(), remembered));
    const auto known = std::find_if(from, own.end(), [&](Past& p) {
      if (p.write != past.write || p.start != past.start || p.done_at != past.done_at ||
          p.where.line() != past.where.line() || p.where.file_name() != past.where.file_name()) {
        return false;
      }
      return is_shared ? p.extend(past) : p.block == past.block;
    });
    if (known == own.end()) own.push_back(past);
  }
  m_live[transfer.live] = m_live.back();
  m_live[transfer.live]->live = transfer.live;
  m_live.pop_back();
  m_free.push_back(&transfer);
}

/// True when `next`, of the same verb, is one step of the walk further: it is part of this one now.
bool HazardMonitor::Past::extend(const Past& next) {
  if (next.block.rows != 1 || next.verb != verb || next.channel != channel) return false;
  if (run == 1) {
    if (block.rows != 1 || next.block.bytes != block.bytes) return false;
    step = next.block.first - block.first;
    turns = next.iteration - iteration;
    if (step < block.bytes || next.iteration <= iteration) return false;
  } else if (next.block.first != block.first + run * step || next.iteration != iteration + run * turns ||
             next.block.bytes != (block.rows == 1 ? step : block.bytes)) {
    return false;
  }
  ++run;
  if (step == next.block.bytes) {
    block.bytes += step;
  } else {
    block.pitch = step;
    ++block.rows;
  }
  return true;
}

HazardMonitor::Past HazardMonitor::Past::transfer(std::uint32_t index) const {
  if (run == 1) return *this;
  Past one = *this;
  one.block = {block.first + index * step, block.rows == 1 ? step : block.bytes, 1, 0};
  one.iteration = iteration + index * turns;
  one.run = 1;
  return one;
}

HazardMonitor::Span HazardMonitor::span_of(const Block& block, const Side* side, const Past* past, int core,
                                           bool write) {
  Span span{block.first, block.end(), side, past, core, write};
  if (block.rows > 1) {
    span.pitch = block.pitch;
    span.column = block.first % block.pitch;
    span.columns_end = span.column + block.bytes;
  }
  return span;
}

/// The transfer a side was kept of, as far as comparisons and messages need it.
void HazardMonitor::restore(const Past& past, int memory, Transfer& transfer) {
  transfer.event.verb = past.verb;
  transfer.event.where = past.where;
  transfer.event.core = past.core;
  transfer.event.channel = past.channel;
  transfer.event.iteration = past.iteration;
  transfer.event.cycle = past.cycle;
  transfer.start = past.start;
  transfer.done = true;
  transfer.done_at = past.done_at;
  transfer.sides[0] = {&transfer, memory, past.block, past.write};
}

void HazardMonitor::compare_shared(std::size_t shared) {
  const int memory = 2 * m_core_count + static_cast<int>(shared);
  const auto space_of_shared = static_cast<std::size_t>(space(memory));
  std::vector<ByteRange>& written = m_written[shared];
  for (const Core& core : m_cores) {
    for (const Past& past : core.past[space_of_shared]) {
      if (past.write) written.push_back({past.block.first, past.block.end()});
    }
  }
  if (written.empty()) return;
  merge(written);
  // Most of what is read nobody writes: only what lies within the hull of some write is compared.
  const auto is_written = [&](const Block& block) {
    const std::int64_t end = block.end();
    if (end <= written.front().first || written.back().end <= block.first) return false;
    const auto next = std::upper_bound(written.begin(), written.end(), block.first,
                                       [](std::int64_t at, const ByteRange& range) { return at < range.end; });
    return next->first < end;
  };
  std::vector<Span>& spans = m_shared[shared];
  spans.clear();
  for (const Transfer* transfer : m_live) {
    for (const Side& side : transfer->sides) {
      if (side.memory != memory || (!side.write && (!transfer->reads || !is_written(side.block)))) continue;
      spans.push_back(span_of(side.block, &side, nullptr, transfer->event.core, side.write));
    }
  }
  for (const Core& core : m_cores) {
    for (const Past& past : core.past[space_of_shared]) {
      if (!past.write && !is_written(past.block)) continue;
      spans.push_back(span_of(past.block, nullptr, &past, past.core, past.write));
    }
  }
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.first < b.first; });
  std::vector<const Span*> open;  // begin before the present one and may reach into it
  for (const Span& span : spans) {
    std::erase_if(open, [&](const Span* other) { return other->end <= span.first; });
    for (const Span* other : open) {
      if (other->core == span.core || (!other->write && !span.write)) continue;
      // Tiles beside each other, of which there are many: disjoint columns.
      if (span.pitch != 0 && span.pitch == other->pitch && span.columns_end <= span.pitch &&
          other->columns_end <= span.pitch &&
          (span.columns_end <= other->column || other->columns_end <= span.column)) {
        continue;
      }
      if (overlap(other->block(), span.block()) >= 0) compare_spans(*other, span, memory);
    }
    open.push_back(&span);
  }
}

/// Transfer by transfer.
void HazardMonitor::compare_spans(const Span& a, const Span& b, int memory) {
  for (std::uint32_t i = 0; i < a.transfers(); ++i) {
    Transfer first;
    if (a.past != nullptr) restore(a.past->transfer(i), memory, first);
    const Side& side = a.past != nullptr ? first.sides[0] : *a.side;
    if (overlap(side.block, b.block()) < 0) continue;
    for (std::uint32_t j = 0; j < b.transfers(); ++j) {
      Transfer second;
      if (b.past != nullptr) restore(b.past->transfer(j), memory, second);
      compare_pair(side, b.past != nullptr ? second.sides[0] : *b.side);
    }
  }
}

/// Transfers of other cores in one core's SM or AM, against that core's kernels and everybody's transfers there.
void HazardMonitor::compare_foreign(int memory, const std::vector<const Side*>& foreign) {
  for (const Transfer* transfer : m_live) {
    for (const Side& side : transfer->sides) {
      if (side.memory != memory || (!side.write && !transfer->reads)) continue;
      const bool is_foreign = transfer->event.core != owner(memory);
      for (const Side* other : foreign) {
        if (!is_foreign || side.transfer < other->transfer) compare_pair(side, *other);
      }
    }
  }
  const int core = owner(memory);
  for (const Past& past : m_cores[core].past[memory % 2]) {
    Transfer transfer;
    restore(past, memory, transfer);
    for (const Side* other : foreign) compare_pair(transfer.sides[0], *other);
  }
  const std::vector<Section>& sections = m_cores[core].sections;
  const std::vector<Touched>& all = m_cores[core].touched;
  for (std::size_t s = 0; s < sections.size(); ++s) {
    const std::size_t end = s + 1 < sections.size() ? sections[s + 1].first : all.size();
    for (const Side* side : foreign) {
      if ((*side->transfer->start)[core] > sections[s].released || known_complete(*side, sections[s].clock)) continue;
      for (std::size_t i = sections[s].first; i < end; ++i) {
        if (all[i].memory == memory) compare_call(core, all[i], *side);
      }
    }
  }
}

void HazardMonitor::compare_pair(const Side& a, const Side& b) {
  const Transfer &first = *a.transfer, &second = *b.transfer;
  if ((!a.write && !b.write) || first.event.core == second.event.core || (first.compared && second.compared)) return;
  const std::int64_t at = overlap(a.block, b.block);
  if (at < 0 || known_complete(a, second.start) || known_complete(b, first.start)) return;
  const bool swap = second.event.core < first.event.core;
  const Side &lower = swap ? b : a, &higher = swap ? a : b;
  raise(Severity::finding, a.write && b.write ? "unordered-writes" : "read-before-complete", lower.transfer->event,
        lower, higher.transfer->event, higher, at);
}

/// By whoever has seen as much as `clock`.
bool HazardMonitor::known_complete(const Side& side, Clock clock) const {
  const Transfer& transfer = *side.transfer;
  if (transfer.done && (*clock)[transfer.event.core] > transfer.done_at) return true;
  if (side.write || !transfer.received) return false;
  return std::any_of(transfer.received->begin(), transfer.received->end(),
                     [&](const auto& wait) { return (*clock)[wait.first] > wait.second; });
}

}  // namespace mtsim::sim
