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

/// As far as overlap() cares: the columns of a block with pitch count in full.
ByteRange hull(const Block& block) { return {block.first, block.end()}; }

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
  ++m_cores[call.core].version;
}

// --- transfers

HazardMonitor::Transfer& HazardMonitor::take(const Event& event, const Move& move) {
  if (m_free.empty()) {
    m_free.push_back(&m_pool.emplace_back());
  }
  Transfer& transfer = *m_free.back();
  m_free.pop_back();
  m_live.push_back(&transfer);
  transfer = {};
  transfer.event = event;
  transfer.sides[0] = {&transfer, memory_of(move.source), block_of(move.source, move.source_rows), false};
  transfer.sides[1] = {&transfer, memory_of(move.destination), block_of(move.destination, move.destination_rows), true};
  Core& core = m_cores[event.core];
  transfer.start = core.clock;
  for (const Side& side : transfer.sides) {
    check_against_own(core, event, side.memory, side.block, side.write, false);
  }
  for (const Side& side : transfer.sides) core.busy[static_cast<std::size_t>(space(side.memory))].push_back(side);
  if (core.channels.size() <= static_cast<std::size_t>(event.channel)) core.channels.resize(event.channel + 1);
  core.channels[event.channel] = &transfer;
  ++core.version;
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
  transfer.waits_for_group = true;
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
    transfer.waits_for_group = false;
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
    std::erase_if(busy, [&](const Side& other) { return other.transfer == &transfer; });
  }
  transfer.done = true;
  transfer.done_at = core.released;
  if (transfer.received) transfer.received->emplace_back(core_index, core.released);
  // What the cores of a row_syn group had done before it started is known now.
  if (transfer.start == core.clock) return;
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

// --- kernels

void HazardMonitor::called(const VerbCall& call, const CallFootprint& footprint, std::span<const Argument> arguments) {
  Core& core = m_cores[call.core];
  bool undefined = false;
  std::uint64_t anew = 0;  // parameters looked at anew; those beyond 63 always are
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const PointerFootprint& touched = footprint.pointers[i];
    if (touched.empty()) continue;
    const auto offset = static_cast<std::uint32_t>(arguments[i].pointer.offset);  // of an SM or AM
    const std::size_t slot =
        (reinterpret_cast<std::uintptr_t>(&touched) / sizeof(PointerFootprint) + offset / 64) % k_checked;
    Checked& checked = core.checked[slot];
    if (checked.footprint != &touched || checked.offset != offset || checked.version != core.version) {
      Event the_call = event(call, call.iteration);
      the_call.program = &footprint.program->program();
      const int memory = memory_of(arguments[i].pointer);
      check_parameter(core, the_call, memory, touched, offset);
      core.touched.push_back(
          {&touched, the_call.program, call.where, offset, memory, static_cast<std::uint32_t>(call.iteration)});
      checked = {&touched, offset, core.version, 0};
      const NeverWritten& never_written = m_memories[memory].never_written;
      if (!never_written.empty() && std::any_of(touched.reads.begin(), touched.reads.end(), [&](const Block& block) {
            return never_written.any(block.shifted(offset));
          })) {
        checked.undefined = 1;
      }
      anew |= std::uint64_t{1} << (i % 64);
    }
    undefined = undefined || checked.undefined != 0;
  }
  if (undefined) {
    Event the_call = event(call, call.iteration);
    the_call.program = &footprint.program->program();
    values_of_call(core, the_call, footprint, arguments);
    return;
  }
  for (std::size_t i = 0; anew != 0 && i < arguments.size(); ++i) {
    if ((anew >> (i % 64) & 1) == 0) continue;
    const PointerFootprint& touched = footprint.pointers[i];
    if (touched.writes.empty()) continue;
    NeverWritten& never_written = m_memories[memory_of(arguments[i].pointer)].never_written;
    if (never_written.empty()) continue;
    for (const Block& block : touched.writes) {
      never_written.remove(block.shifted(static_cast<std::int64_t>(arguments[i].pointer.offset)));
    }
  }
}

void HazardMonitor::check_parameter(Core& core, const Event& event, int memory, const PointerFootprint& footprint,
                                    std::int64_t offset) {
  if (core.busy[static_cast<std::size_t>(space(memory))].empty()) return;
  for (const Block& block : footprint.reads) {
    check_against_own(core, event, memory, block.shifted(offset), false, false);
  }
  for (const Block& block : footprint.dead_reads) {
    check_against_own(core, event, memory, block.shifted(offset), false, true);
  }
  for (const Block& block : footprint.writes) {
    check_against_own(core, event, memory, block.shifted(offset), true, false);
  }
}

void HazardMonitor::check_against_own(Core& core, const Event& event, int memory, const Block& block, bool write,
                                      bool dead) {
  for (const Side& side : core.busy[static_cast<std::size_t>(space(memory))]) {
    if (side.memory != memory || (!side.write && !write)) continue;
    if (side.block.first >= block.end() || block.first >= side.block.end()) continue;
    const std::int64_t at = overlap(side.block, block);
    if (at < 0 || known_complete(side, core.clock)) continue;
    const Side mine{nullptr, memory, block, write};
    if (dead) {
      raise(Severity::note, "dead-over-read", side.transfer->event, side, event, mine, at);
    } else {
      const char* kind = side.write && write ? "unordered-writes" : write ? "overwrite-in-use" : "read-before-complete";
      raise(Severity::finding, kind, side.transfer->event, side, event, mine, at);
    }
  }
}

// --- between cores

void HazardMonitor::new_section(Core& core) {
  core.sections.push_back({core.touched.size(), core.released, core.clock});
  ++core.version;
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
  m_gsm_sides.clear();
  m_ddr_sides.clear();
  std::map<int, std::vector<Side>> foreign;
  for (const Transfer* transfer : m_live) {
    for (const Side& side : transfer->sides) {
      if (!side.write && !transfer->reads) continue;
      const int its_owner = owner(side.memory);
      if (its_owner < 0) {
        (space(side.memory) == Space::gsm ? m_gsm_sides : m_ddr_sides).push_back(side);
      } else if (its_owner != transfer->event.core) {
        foreign[side.memory].push_back(side);
      }
    }
  }
  compare_shared(m_gsm_sides);
  compare_shared(m_ddr_sides);
  for (const auto& [memory, sides] : foreign) compare_foreign(memory, sides);
  std::erase_if(m_live, [&](Transfer* transfer) {
    if (transfer->done) m_free.push_back(transfer);
    // Whatever another core does from here on comes after the start, so that what the start knew is of no use any more.
    transfer->start = &m_nothing_known;
    transfer->compared = true;
    return transfer->done;
  });
  for (Core& core : m_cores) {
    core.touched.clear();
    core.sections.clear();
  }
}

void HazardMonitor::compare_shared(std::vector<Side>& sides) {
  // Most of what is read nobody writes: only what lies within the hull of some write is compared.
  std::vector<ByteRange> written;
  for (const Side& side : sides) {
    if (side.write) written.push_back(hull(side.block));
  }
  if (written.empty()) return;
  const std::vector<Block> writes = fold(std::move(written));
  std::erase_if(sides, [&](const Side& side) {
    if (side.write) return false;
    const ByteRange range = hull(side.block);
    const Block whole{range.first, range.end - range.first, 1, 0};
    return std::none_of(writes.begin(), writes.end(), [&](const Block& block) { return overlap(block, whole) >= 0; });
  });
  std::sort(sides.begin(), sides.end(), [](const Side& a, const Side& b) {
    return std::tuple(a.block.first, a.transfer->event.core, a.transfer->event.cycle, a.write) <
           std::tuple(b.block.first, b.transfer->event.core, b.transfer->event.cycle, b.write);
  });
  std::vector<const Side*> open;  // begin before the present one and may reach into it
  for (const Side& side : sides) {
    std::erase_if(open, [&](const Side* other) { return other->block.end() <= side.block.first; });
    for (const Side* other : open) compare_pair(*other, side);
    open.push_back(&side);
  }
}

/// Transfers of other cores in one core's SM or AM, against that core's kernels and everybody's transfers there.
void HazardMonitor::compare_foreign(int memory, const std::vector<Side>& foreign) {
  for (const Transfer* transfer : m_live) {
    for (const Side& side : transfer->sides) {
      if (side.memory != memory || (!side.write && !transfer->reads)) continue;
      const bool is_foreign = transfer->event.core != owner(memory);
      for (const Side& other : foreign) {
        if (!is_foreign || side.transfer < other.transfer) compare_pair(side, other);
      }
    }
  }
  const int core = owner(memory);
  const std::vector<Section>& sections = m_cores[core].sections;
  const std::vector<Touched>& all = m_cores[core].touched;
  for (std::size_t s = 0; s < sections.size(); ++s) {
    const std::size_t end = s + 1 < sections.size() ? sections[s + 1].first : all.size();
    for (const Side& side : foreign) {
      if ((*side.transfer->start)[core] > sections[s].released || known_complete(side, sections[s].clock)) continue;
      for (std::size_t i = sections[s].first; i < end; ++i) {
        if (all[i].memory == memory) compare_call(core, all[i], side);
      }
    }
  }
}

void HazardMonitor::compare_call(int core, const Touched& touched, const Side& side) {
  Event call;
  call.verb = "call";
  call.program = touched.program;
  call.where = touched.where;
  call.core = core;
  call.iteration = touched.iteration;
  const auto compare = [&](const std::vector<Block>& blocks, bool write, bool dead) {
    for (const Block& relative : blocks) {
      const Block block = relative.shifted(touched.offset);
      const std::int64_t at = side.write || write ? overlap(block, side.block) : -1;
      if (at < 0) continue;
      const Side mine{nullptr, touched.memory, block, write};
      const char* kind = dead ? "dead-over-read" : side.write && write ? "unordered-writes" : "read-before-complete";
      raise(dead ? Severity::note : Severity::finding, kind, side.transfer->event, side, call, mine, at);
    }
  };
  compare(touched.footprint->reads, false, false);
  compare(touched.footprint->dead_reads, false, true);
  compare(touched.footprint->writes, true, false);
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
