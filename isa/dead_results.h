// SPDX-License-Identifier: Apache-2.0
// Which results are overwritten before anything can read them. Internal to the checker.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "isa/control_flow.h"

namespace mtsim::isa {

/// All writes of one register at once: paths that meet are followed once, so that the cost grows with the states of the
/// program and not with their square.
class DeadResults {
 public:
  struct Access {  // what the instructions of one packet do to the register
    bool read = false;
    std::vector<int> kills;  // cycles until a write without predicate lands
  };

  /// `accesses` is indexed by packet. Stops, with every answer false, when it would need more than `budget` steps.
  DeadResults(const ControlFlow& flow, const std::vector<Access>& accesses, std::int64_t budget)
      : m_flow(flow), m_accesses(accesses), m_budget(budget) {}

  /// True when on every path a later write lands in the register before a read sees what `packet` writes into it,
  /// `cycles` after its issue.
  bool dead(int packet, int cycles);

  std::int64_t steps() const { return m_steps; }
  bool stopped() const { return m_steps > m_budget; }

 private:
  struct Node {  // about to issue a state's packet
    int state;
    int lands_in;   // cycles until the value is there; 0: it is
    int killed_in;  // cycles until a write seen so far replaces it
  };
  struct Facts {
    Node node;
    std::vector<std::uint32_t> from;  // nodes it follows
    bool escapes = false;             // some path from here on reads the value or leaves the kernel with it
  };

  std::uint32_t enter(Node node);
  void explore();
  void escape(std::uint32_t node);
  int kill_in(int packet, int lands_in, int killed_in) const;

  const ControlFlow& m_flow;
  const std::vector<Access>& m_accesses;
  std::int64_t m_budget;
  std::int64_t m_steps = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> m_index;
  std::vector<Facts> m_nodes;
  std::vector<std::uint32_t> m_pending;
};

}  // namespace mtsim::isa
