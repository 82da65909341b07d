// SPDX-License-Identifier: Apache-2.0
// Finds the races of a DSP program: accesses to one byte, one of them a write, that no wait, broadcast, barrier or
// row_syn puts in order; and bytes used that nobody wrote. docs/architecture.md has the rules.
//
// The verdict rests on the order the program asks for, never on when something happened: it is the same on a machine
// whose DMA is ten times faster. Accesses of one core are compared with its own transfers in flight as they come, in
// program order. Accesses of different cores are compared at the next barrier, broadcast or the launch's end, by vector
// clocks: each core counts the points where it released its past to others, and knows of each other core up to which
// of those it has seen.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "sim/accounting.h"
#include "sim/core/footprint.h"
#include "sim/dma_engine.h"
#include "sim/dsp.h"
#include "sim/memo.h"
#include "sim/never_written.h"

namespace mtsim::sim {

/// A verb of a DSP program as it is called.
struct VerbCall {
  const char* verb = "";
  std::source_location where;
  int core = 0;
  std::int64_t cycle = 0;      // only for messages
  std::int64_t iteration = 0;  // the n-th such call of the core; 0: the monitor counts by source line
};

class HazardMonitor {
 public:
  explicit HazardMonitor(int cores);

  // The host. What it allocates holds no value until it, a transfer or a kernel writes it; all else counts as written.
  void forget_memories();
  void host_allocated(const char* verb, Pointer pointer, std::int64_t bytes);
  /// What the host had allocated from `pointer` on is free again.
  void host_freed(Pointer pointer);
  void host_wrote(Pointer pointer, std::int64_t bytes);

  // A launch: the verbs of each core in program order.
  void start(int group_size);
  void allocated(const VerbCall& call, Pointer pointer, std::int64_t bytes);
  /// All SM and AM of the core is free again.
  void freed(int core);
  /// The channel was taken. `mask`: the cores of a row_syn group, 0 for none.
  void issued(const VerbCall& call, int channel, const Move& move, std::uint64_t mask);
  /// The last core of a row_syn group issued: its transfers start.
  void group_starts(const std::vector<ChannelRef>& members);
  /// A core is in dma_broadcast; when the last one is, broadcast_starts with all of them.
  void broadcast_joined(const VerbCall& call) { m_cores[call.core].joined = event(call); }
  void broadcast_starts(const std::vector<BroadcastMeeting::Arrival>& arrivals, std::span<const Move> moves);
  /// The program knows by a wait or query that the channel's transfer is complete.
  void completed(int core, int channel);
  /// Another transfer took the channel before that.
  void reused(const VerbCall& call, int channel, const Move& move);
  void barrier() { meet(); }
  /// `footprint`: one per .param; kept by the caller as long as the launch.
  void called(const VerbCall& call, const CallFootprint& footprint, std::span<const Argument> arguments);
  /// A call that cannot be followed: a note, and its core's SM and AM count as written from then on.
  void not_covered(const VerbCall& call, const isa::Program& program, const std::string& why);
  /// The core's program ended; its transfers without a wait are findings.
  void ended(const VerbCall& call);

  struct Verdict {
    std::vector<Finding> findings, notes;  // by kind, then source
  };
  /// The launch ended, by a fault or error too.
  Verdict finish();

 private:
  /// For each core, up to which of its releases the owner has seen. Shared by all who have the same; kept until the
  /// cores meet.
  using Clock = const std::vector<std::uint32_t>*;

  /// An access in a form that messages are made of.
  struct Event {
    const char* verb = "";
    const isa::Program* program = nullptr;  // of a call
    std::source_location where;
    int core = 0;
    int channel = -1;
    std::int64_t iteration = 0;
    std::int64_t cycle = 0;
  };
  struct Transfer;
  struct Side {  // of a transfer
    Transfer* transfer = nullptr;
    int memory = 0;
    Block block;
    bool write = false;
  };
  struct Transfer {
    Event event;
    std::array<Side, 2> sides;  // source, destination
    Clock start = nullptr;      // what has surely happened when it starts
    bool reads = true;          // of a broadcast only one transfer stands for the read
    bool of_group = false;      // of row_syn: its start may know what its core did not
    bool compared = false;      // with all that came before the last meeting
    bool done = false;
    std::uint32_t done_at = 0;  // release count of its core when the program knew
    std::size_t live = 0;       // its place in m_live
    /// Of a broadcast: who has waited for it, and when. One of them suffices to know that the source was read.
    std::shared_ptr<std::vector<std::pair<int, std::uint32_t>>> received;
  };
  /// A side of transfers known to be complete, kept until the cores meet: small, there may be many. Where a loop walks
  /// through GSM or DDR in equal steps, its transfers are one Past.
  struct Past {
    Block block;  // of all: those of a run are rows, `step` bytes apart
    Clock start = nullptr;
    const char* verb = "";
    std::source_location where;
    std::int64_t cycle = 0;       // of the first
    std::int64_t step = 0;        // of a run
    std::uint32_t iteration = 0;  // of the first
    std::uint32_t turns = 0;      // iterations from one transfer of a run to the next
    std::uint32_t run = 1;        // transfers
    std::uint32_t done_at = 0;
    std::int16_t core = 0, channel = -1;
    bool write = false;

    bool extend(const Past& next);
    Past transfer(std::uint32_t index) const;
  };
  /// A side, of one or the other kind, from its first byte to its last.
  struct Span {
    std::int64_t first = 0, end = 0;
    const Side* side = nullptr;
    const Past* past = nullptr;
    int core = 0;
    bool write = false;
    std::int64_t pitch = 0;                    // 0: a single row
    std::int64_t column = 0, columns_end = 0;  // of its rows, counted from a multiple of the pitch

    const Block& block() const { return side != nullptr ? side->block : past->block; }
    std::uint32_t transfers() const { return past != nullptr ? past->run : 1; }
  };
  /// By kernels: one parameter at one place, in one section of a core.
  struct Touched {
    const PointerFootprint* footprint = nullptr;
    const isa::Program* program = nullptr;
    std::source_location where;
    std::int64_t offset = 0;
    std::int32_t memory = 0;
    std::uint32_t iteration = 0;
  };
  /// What a core does between two of its releases and acquires.
  struct Section {
    std::size_t first = 0;  // of its Touched
    std::uint32_t released = 0;
    Clock clock = nullptr;
  };
  /// What was found out about one parameter of a kernel at one place; holds while the version of its memory stays.
  struct Checked {
    const PointerFootprint* footprint = nullptr;
    std::uint32_t offset = 0;
    std::uint32_t version = 0;
    std::uint32_t section = 0;  // it is among the core's Touched of that one
    bool undefined = false;     // some live read byte holds no value
  };
  /// A side of a transfer not known to be complete, from its first byte to its last.
  struct Busy {
    std::int64_t first = 0, end = 0;
    const Side* side = nullptr;
    int memory = 0;
  };
  struct Counter {
    const char* file = nullptr;
    std::uint_least32_t line = 0, column = 0;
    std::int64_t count = 0;
  };
  static constexpr unsigned k_checked_bits = 6;  // few enough to stay in the host's caches
  struct Core {
    std::uint32_t released = 0;
    std::array<std::uint32_t, k_spaces> version = {1, 1};  // of SM and AM: changes when Checked may no longer hold
    Clock clock = nullptr;
    std::uint32_t section = 0;                     // number of the present one, from 1
    std::array<std::vector<Busy>, k_spaces> busy;  // by space
    std::array<Checked, 1U << k_checked_bits> checked;
    std::vector<Transfer*> channels;
    std::array<std::vector<Past>, k_spaces> past;  // its own transfers, by space; in SM and AM those in its own
    std::vector<Counter> counters;
    std::vector<Touched> touched;  // since the last meeting
    std::vector<Section> sections;
    Event joined;  // the broadcast it is in
  };
  struct Allocation {
    std::int64_t first = 0, end = 0;
    int cause = 0;
  };
  /// Why bytes hold no value: allocated there, or moved or computed from bytes that held none.
  struct Cause {
    Event event;
    int from = -1;  // -1: an allocation
    int memory = 0;
    Block block;  // what was read; the allocation
  };
  struct MemoryState {
    NeverWritten never_written;
    std::vector<Allocation> allocations;
  };
  struct Raised {
    Severity severity = Severity::finding;
    std::string kind;
    Event first, second;
    Side first_bytes, second_bytes;  // transfer unused
    std::int64_t at = 0;             // first byte of the overlap
    int cause = -1;                  // of never-written
    std::string why;                 // of not-covered
    std::int64_t count = 0;
    std::set<int> cores;
  };
  using Key = std::tuple<std::string, std::string, std::string, int>;  // kind, places, space

  // hazard.cpp: order
  int memory_of(Pointer pointer) const;
  int owner(int memory) const { return memory < 2 * m_core_count ? memory / 2 : -1; }
  Space space(int memory) const;
  Counter& counter(const VerbCall& call);
  Event event(const VerbCall& call, std::int64_t iteration) const;
  Event event(const VerbCall& call) { return event(call, ++counter(call).count); }
  /// What was found out about kernels of the core, or of those that touch its SM or AM, has to be found out anew.
  static void forget_checked(Core& core) { ++core.version[0], ++core.version[1]; }
  Transfer& take(const Event& event, const Move& move);
  void new_section(Core& core);
  Clock keep(std::vector<std::uint32_t> clock) { return &m_clocks.emplace_back(std::move(clock)); }
  void meet();

  // hazard_cores.cpp: between cores
  void settle();
  void retire(Core& core, Transfer& transfer);
  static Span span_of(const Block& block, const Side* side, const Past* past, int core, bool write);
  static void restore(const Past& past, int memory, Transfer& transfer);
  void compare_shared(std::size_t shared);
  void compare_spans(const Span& a, const Span& b, int memory);
  void compare_foreign(int memory, const std::vector<const Side*>& foreign);
  void compare_pair(const Side& a, const Side& b);
  bool known_complete(const Side& side, Clock clock) const;

  // hazard_calls.cpp: kernels
  void check_parameter(Core& core, const VerbCall& call, const CallFootprint& footprint, int memory,
                       const PointerFootprint& touched, std::int64_t offset);
  void check_against_own(Core& core, const Event& event, int memory, const Block& block, bool write, bool dead);
  void compare_call(int core, const Touched& touched, const Side& side);

  // hazard_values.cpp: bytes that hold no value
  void cause_of_allocation(const Event& event, int memory, const Block& block);
  int cause_after(const Event& event, int from, int memory, const Block& block);
  void move_values(const Transfer& transfer);
  void values_of_call(Core& core, const Event& event, const CallFootprint& footprint,
                      std::span<const Argument> arguments);
  void raise_never_written(const Event& event, int memory, const Block& block, std::int64_t at, int cause);
  void end_values();
  bool contested(const Raised& raised) const;

  // hazard_report.cpp
  void raise(Severity severity, std::string_view kind, const Event& first, const Side& first_bytes, const Event& second,
             const Side& second_bytes, std::int64_t at);
  void raise(Raised raised);
  std::string buffer_text(int memory, const Block& block) const;
  FindingEnd end_of(const Event& event, const Side* bytes) const;
  Finding finding_of(const Raised& raised) const;

  int m_core_count;
  int m_group_size = 0;
  std::vector<Core> m_cores;
  std::vector<MemoryState> m_memories;  // SM and AM of each core, GSM, DDR
  std::deque<Transfer> m_pool;
  std::vector<Transfer*> m_free;
  std::vector<Transfer*> m_live;  // issued since the last meeting, or before it and not complete
  int m_groups_waiting = 0;       // row_syn transfers whose group is not complete
  std::deque<std::vector<std::uint32_t>> m_clocks;
  std::vector<std::uint32_t> m_nothing_known;
  std::array<std::vector<Span>, 2> m_shared;        // of settle(), GSM and DDR; kept for their storage
  std::array<std::vector<ByteRange>, 2> m_written;  // likewise
  std::vector<Cause> m_causes;
  std::map<std::tuple<const char*, std::uint_least32_t, int, int>, int> m_cause_index;
  std::map<std::tuple<const char*, std::uint_least32_t, int, std::int64_t, std::int64_t>, int> m_allocation_index;
  std::map<Key, Raised> m_raised;
  std::set<std::tuple<int, const char*, std::uint_least32_t>> m_contested;  // reads some other core's write races with
};

}  // namespace mtsim::sim
