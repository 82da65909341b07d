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
  m_allocation_index.clear();
}

void HazardMonitor::host_allocated(const char* verb, Pointer pointer, std::int64_t bytes) {
  Event event;
  event.verb = verb;
  event.core = -1;
  const Block block{static_cast<std::int64_t>(pointer.offset), bytes, 1, 0};
  cause_of_allocation(event, memory_of(pointer), block);
}

void HazardMonitor::host_freed(Pointer pointer) {
  MemoryState& memory = m_memories[memory_of(pointer)];
  const auto first = static_cast<std::int64_t>(pointer.offset);
  while (!memory.allocations.empty() && memory.allocations.back().first >= first) {
    const auto [begin, end, cause] = memory.allocations.back();
    memory.never_written.remove(ByteRange{begin, end});
    memory.allocations.pop_back();
  }
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
  forget_checked(m_cores[call.core]);
}

void HazardMonitor::freed(int core) {
  for (int memory = 2 * core; memory < 2 * core + 2; ++memory) m_memories[memory] = {};
  forget_checked(m_cores[core]);
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

// --- sections and meetings

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
