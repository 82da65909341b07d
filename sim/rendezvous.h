// SPDX-License-Identifier: Apache-2.0
// Where cores meet: group_barrier, dma_broadcast and row_syn. Bookkeeping only; Core charges the time.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "sim/pointer.h"

namespace mtsim::sim {

inline constexpr int k_barrier_ids = 16;  // of the hthreads device library, ids 0 to 15

/// One channel of one core.
struct ChannelRef {
  int core = 0;
  int channel = 0;
};

/// group_barrier: each id collects the cores of the launch.
class Barrier {
 public:
  /// True for the last of `group_size` cores; the barrier is then empty again.
  bool arrive(int id, int group_size);
  void clear();

 private:
  int m_arrived[k_barrier_ids] = {};
};

/// dma_broadcast: every core of the launch is blocked in it, so there is only one at a time.
class BroadcastMeeting {
 public:
  struct Arrival {
    ChannelRef ref;
    int barrier_id = 0;
    int priority = 0;
    Pointer source;
    Rows source_rows;
  };
  /// Names both cores and the two values when source, bytes or barrier id differ from those of a core already there;
  /// else "".
  std::string disagreement(const Arrival& arrival) const;
  /// True for the last of `group_size` cores: take() then gives all of them.
  bool arrive(const Arrival& arrival, int group_size);
  /// All arrivals by core; the meeting is then empty again.
  std::vector<Arrival> take();
  void clear() { m_arrivals.clear(); }

 private:
  std::vector<Arrival> m_arrivals;
};

/// row_syn: the n-th transfer of each core of a mask with that mask form a group that starts together.
class RowSync {
 public:
  /// The complete group, by core, or nothing when some core of the mask has not issued its transfer yet.
  std::vector<ChannelRef> join(std::uint64_t mask, ChannelRef ref);
  /// "core 2, core 3": the cores the transfers with this mask still wait for.
  std::string missing(std::uint64_t mask) const;
  void clear() { m_groups.clear(); }

 private:
  struct Group {
    std::uint64_t mask = 0;
    std::vector<std::deque<int>> channels;  // by core, oldest first
  };
  std::vector<Group> m_groups;
};

}  // namespace mtsim::sim
