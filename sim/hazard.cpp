// SPDX-License-Identifier: Apache-2.0
// Order: who knows what has happened, and which accesses nothing puts in order.
#include "sim/hazard.h"

#include <algorithm>
#include <utility>

namespace mtsim::sim {
namespace {

Block block_of(Pointer pointer, const Rows& rows) {
  const auto first = static_cast<std::int64_t>(pointer.offset);
  const std::int64_t pitch = rows.pitch();
  if (rows.count == 1 || pitch == 0) return {first, rows.bytes, 1, 0};  // a step of -bytes repeats the row
  if (pitch == rows.bytes) return {first, rows.total_bytes(), 1, 0};
  return {first, rows.bytes, rows.count, pitch};
}

using ClockValues = std::vector<std::uint32_t>;

void join(ClockValues& into, const ClockValues& other) {
  for (std::size_t core = 0; core < into.size(); ++core) into[core] = std::max(into[core], other[core]);
}

}  // namespace

HazardMonitor::HazardMonitor(int cores)
    : m_core_count(cores),
      m_cores(static_cast<std::size_t>(cores)),
      m_memories(static_cast<std::size_t>(2 * cores + 2)),
      m_nothing_known(static_cast<std::size_t>(cores), 0) {}

int HazardMonitor::memory_of(Pointer pointer) const {
  switch (pointer.space) {
    case Space::sm: return 2 * pointer.core;
    case Space::am: return 2 * pointer.core + 1;
    case Space::gsm: return 2 * m_core_count;
    case Space::ddr: return 2 * m_core_count + 1;
  }
  return 0;
}

Space HazardMonitor::space(int memory) const {
  if (memory >= 2 * m_core_count) return memory == 2 * m_core_count ? Space::gsm : Space::ddr;
  return memory % 2 == 0 ? Space::sm : Space::am;
}

// --- the host and the launch

void HazardMonitor::forget_memories() {
  for (MemoryState& memory : m_memories) memory = {};
  m_causes.clear();
  m_cause_index.clear();
}

void HazardMonitor::host_allocated(const char* verb, Pointer pointer, std::int64_t bytes) {
  Event event;
  event.verb = verb;
  event.core = -1;
  const Block block{static_cast<std::int64_t>(pointer.offset), bytes, 1, 0};
  cause_of_allocation(event, memory_of(pointer), block);
}

void HazardMonitor::host_wrote(Pointer pointer, std::int64_t bytes) {
  const auto first = static_cast<std::int64_t>(pointer.offset);
  m_memories[memory_of(pointer)].never_written.remove(ByteRange{first, first + bytes});
}

void HazardMonitor::start(int group_size) {
  m_group_size = group_size;
  m_clocks.clear();
  for (Core& core : m_cores) {
    core = {};
    core.clock = &m_nothing_known;
    new_section(core);
  }
  for (int memory = 0; memory < 2 * m_core_count; ++memory) m_memories[memory] = {};
  m_pool.clear();
  m_free.clear();
  m_live.clear();
  for (auto& past : m_past) past.clear();
  m_groups_waiting = 0;
  m_raised.clear();
  m_contested.clear();
}

/// Of the source line, by open addressing: a DSP program has few, and each call of a kernel comes by here.
HazardMonitor::Counter& HazardMonitor::counter(const VerbCall& call) {
  const char* file = call.where.file_name();
  const std::uint_least32_t line = call.where.line(), column = call.where.column();
  std::vector<Counter>& counters = m_cores[call.core].counters;
  const auto find = [&](const char* f, std::uint_least32_t l, std::uint_least32_t c) -> Counter& {
    for (std::size_t i = l * 31U + c;; ++i) {
      Counter& at = counters[i % counters.size()];
      if (at.file == nullptr || (at.line == l && at.column == c && at.file == f)) return at;
    }
  };
  if (counters.empty()) counters.resize(64);
  if (Counter& known = find(file, line, column); known.file != nullptr) return known;
  const auto used = std::count_if(counters.begin(), counters.end(), [](const Counter& c) { return c.file != nullptr; });
  if (2 * static_cast<std::size_t>(used) >= counters.size()) {
    const std::vector<Counter> old = std::exchange(counters, std::vector<Counter>(2 * counters.size()));
    for (const Counter& c : old) {
      if (c.file != nullptr) find(c.file, c.line, c.column) = c;
    }
  }
  return find(file, line, column) = {file, line, column, 0};
}

HazardMonitor::Event HazardMonitor::event(const VerbCall& call, std::int64_t iteration) const {
  Event event;
  event.verb = call.verb;
  event.where = call.where;
  event.core = call.core;
  event.iteration = iteration;
  event.cycle = call.cycle;
  return event;
}

void HazardMonitor::allocated(const VerbCall& call, Pointer pointer, std::int64_t bytes) {
  const Block block{static_cast<std::int64_t>(pointer.offset), bytes, 1, 0};
  cause_of_allocation(event(call), memory_of(pointer), block);
  forget_checked(m_cores[call.core]);
}

// --- transfers

HazardMonitor::Transfer& HazardMonitor::take(const Event& event, const Move& move) {
  if (m_free.empty()) {
    m_free.push_back(&m_pool.emplace_back());
  }
  Transfer& transfer = *m_free.back();
  m_free.pop_back();
  transfer = {};
  transfer.live = m_live.size();
  m_live.push_back(&transfer);
  transfer.event = event;
  transfer.sides[0] = {&transfer, memory_of(move.source), block_of(move.source, move.source_rows), false};
  transfer.sides[1] = {&transfer, memory_of(move.destination), block_of(move.destination, move.destination_rows), true};
  Core& core = m_cores[event.core];
  transfer.start = core.clock;
  for (const Side& side : transfer.sides) {
    check_against_own(core, event, side.memory, side.block, side.write, false);
  }
  for (const Side& side : transfer.sides) {
    const auto its_space = static_cast<std::size_t>(space(side.memory));
    core.busy[its_space].push_back({side.block.first, side.block.end(), &side, side.memory});
    ++core.version[its_space];
  }
  if (core.channels.size() <= static_cast<std::size_t>(event.channel)) core.channels.resize(event.channel + 1);
  core.channels[event.channel] = &transfer;
  move_values(transfer);
  return transfer;
}

void HazardMonitor::issued(const VerbCall& call, int channel, const Move& move, std::uint64_t mask) {
  Event issue = event(call);
  issue.channel = channel;
  Transfer& transfer = take(issue, move);
  if (mask == 0) return;
  // The others of the group start only after this: it releases the core's past to them.
  Core& core = m_cores[call.core];
  ClockValues released = *core.clock;
  released[call.core] = ++core.released;
  transfer.start = keep(std::move(released));
  transfer.of_group = true;
  ++m_groups_waiting;
  new_section(core);
}

void HazardMonitor::group_starts(const std::vector<ChannelRef>& members) {
  ClockValues joined = m_nothing_known;
  for (const ChannelRef& member : members) join(joined, *m_cores[member.core].channels[member.channel]->start);
  const Clock all = keep(std::move(joined));
  for (const ChannelRef& member : members) {
    Transfer& transfer = *m_cores[member.core].channels[member.channel];
    transfer.start = all;
    --m_groups_waiting;
  }
}

void HazardMonitor::broadcast_starts(const std::vector<BroadcastMeeting::Arrival>& arrivals,
                                     std::span<const Move> moves) {
  meet();
  const auto received = std::make_shared<std::vector<std::pair<int, std::uint32_t>>>();
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    const ChannelRef ref = arrivals[i].ref;
    Event issue = m_cores[ref.core].joined;
    issue.channel = ref.channel;
    Transfer& transfer = take(issue, moves[i]);
    transfer.received = received;
    transfer.reads = i == 0;
  }
}

void HazardMonitor::completed(int core_index, int channel) {
  Core& core = m_cores[core_index];
  if (static_cast<std::size_t>(channel) >= core.channels.size() || core.channels[channel] == nullptr) return;
  Transfer& transfer = *core.channels[channel];
  core.channels[channel] = nullptr;
  for (const Side& side : transfer.sides) {
    auto& busy = core.busy[static_cast<std::size_t>(space(side.memory))];
    for (std::size_t i = 0; i < busy.size(); ++i) {
      if (busy[i].side != &side) continue;
      busy[i] = busy.back();
      busy.pop_back();
      break;
    }
  }
  transfer.done = true;
  transfer.done_at = core.released;
  if (transfer.received) transfer.received->emplace_back(core_index, core.released);
  if (!transfer.of_group) {
    const auto within = [&](const Side& side) { return owner(side.memory) < 0 || owner(side.memory) == core_index; };
    if (!transfer.received && !transfer.compared && within(transfer.sides[0]) && within(transfer.sides[1])) {
      retire(core, transfer);
    }
    return;
  }
  // What the cores of a row_syn group had done before it started is known now.
  const ClockValues& now = *core.clock;
  bool learns = false;
  for (int other = 0; other < m_core_count; ++other) {
    learns = learns || (other != core_index && (*transfer.start)[other] > now[other]);
  }
  if (!learns) return;
  ClockValues clock = now;
  join(clock, *transfer.start);
  core.clock = keep(std::move(clock));
  new_section(core);
}

void HazardMonitor::reused(const VerbCall& call, int channel, const Move& move) {
  const Transfer& transfer = *m_cores[call.core].channels[channel];
  Event second = event(call, counter(call).count + 1);
  second.channel = channel;
  Raised raised;
  raised.kind = "channel-reused";
  raised.first = transfer.event;
  raised.first_bytes = transfer.sides[1];
  raised.second = second;
  raised.second_bytes = {nullptr, memory_of(move.destination), block_of(move.destination, move.destination_rows), true};
  raise(std::move(raised));
  completed(call.core, channel);
}

void HazardMonitor::ended(const VerbCall& call) {
  for (const Transfer* transfer : m_cores[call.core].channels) {
    if (transfer == nullptr) continue;
    Raised raised;
    raised.kind = "wait-never-made";
    raised.first = transfer->event;
    raised.first_bytes = transfer->sides[1];
    raised.second.verb = "end of the program";
    raised.second.core = call.core;
    raised.second.cycle = call.cycle;
    raise(std::move(raised));
  }
}

// --- between cores

void HazardMonitor::new_section(Core& core) {
  core.sections.push_back({core.touched.size(), core.released, core.clock});
  ++core.section;
}

/// Every core of the launch is here: each now knows all the others did.
void HazardMonitor::meet() {
  settle();
  if (m_groups_waiting == 0) m_clocks.clear();  // settled: nobody asks for the clocks of before
  ClockValues all = m_nothing_known;
  for (int core = 0; core < m_group_size; ++core) all[core] = ++m_cores[core].released;
  const Clock clock = keep(std::move(all));
  for (int core = 0; core < m_group_size; ++core) {
    m_cores[core].clock = clock;
    new_section(m_cores[core]);
  }
}

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
  for (std::size_t shared = 0; shared < m_shared.size(); ++shared) {
    compare_shared(shared);
    m_past[shared].clear();
  }
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
  const Event& event = transfer.event;
  for (const Side& side : transfer.sides) {
    const Past past{side.block,
                    transfer.start,
                    event.verb,
                    event.where,
                    event.cycle,
                    static_cast<std::uint32_t>(event.iteration),
                    transfer.done_at,
                    static_cast<std::int16_t>(event.core),
                    static_cast<std::int16_t>(event.channel),
                    side.write};
    if (owner(side.memory) < 0) {
      m_past[side.memory - 2 * m_core_count].push_back(past);
      continue;
    }
    std::vector<Past>& own = core.past[side.memory % 2];
    const std::size_t from = own.size() > k_remembered ? own.size() - k_remembered : 0;
    const bool is_known = std::any_of(own.begin() + static_cast<std::ptrdiff_t>(from), own.end(), [&](const Past& p) {
      return p.block == past.block && p.write == past.write && p.start == past.start && p.done_at == past.done_at &&
             p.where.line() == past.where.line() && p.where.file_name() == past.where.file_name();
    });
    if (!is_known) own.push_back(past);
  }
  m_live[transfer.live] = m_live.back();
  m_live[transfer.live]->live = transfer.live;
  m_live.pop_back();
  m_free.push_back(&transfer);
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
  std::vector<ByteRange>& written = m_written[shared];
  for (const Past& past : m_past[shared]) {
    if (past.write) written.push_back({past.block.first, past.block.end()});
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
  const int memory = 2 * m_core_count + static_cast<int>(shared);
  std::vector<Span>& spans = m_shared[shared];
  spans.clear();
  for (const Transfer* transfer : m_live) {
    for (const Side& side : transfer->sides) {
      if (side.memory != memory || (!side.write && (!transfer->reads || !is_written(side.block)))) continue;
      spans.push_back(span_of(side.block, &side, nullptr, transfer->event.core, side.write));
    }
  }
  for (const Past& past : m_past[shared]) {
    if (!past.write && !is_written(past.block)) continue;
    spans.push_back(span_of(past.block, nullptr, &past, past.core, past.write));
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
      if (overlap(other->block(), span.block()) < 0) continue;
      Transfer first, second;
      if (other->past != nullptr) restore(*other->past, memory, first);
      if (span.past != nullptr) restore(*span.past, memory, second);
      compare_pair(other->past != nullptr ? first.sides[0] : *other->side,
                   span.past != nullptr ? second.sides[0] : *span.side);
    }
    open.push_back(&span);
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

HazardMonitor::Verdict HazardMonitor::finish() {
  m_groups_waiting = 0;
  settle();
  end_values();
  Verdict verdict;
  for (const auto& [key, raised] : m_raised) {
    if (contested(raised)) continue;
    (raised.severity == Severity::note ? verdict.notes : verdict.findings).push_back(finding_of(raised));
  }
  return verdict;
}

}  // namespace mtsim::sim
