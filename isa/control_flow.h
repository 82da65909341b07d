// SPDX-License-Identifier: Apache-2.0
// Which packets can issue how many cycles after which: the exposed pipeline's control flow, delay slots included. The
// checker looks for reads inside a result's latency with it; the executor proves with it which results may be written
// early.
#pragma once

#include <functional>
#include <vector>

#include "isa/program.h"

namespace mtsim::isa {

/// All states (packet, pending taken branch) reachable from an entry, and their successors.
class ControlFlow {
 public:
  static constexpr int k_off_end = -1;
  static constexpr int k_return = -2;
  struct State {
    int packet = 0;          // about to issue
    int branch_target = -1;  // packet of the pending taken branch; k_return for a register branch; -1 none
    int branch_in = 0;       // cycles until it takes effect
  };
  struct Edge {
    int state = k_off_end;  // index into states(); k_return, or k_off_end when it runs past the last packet
    int cycles = 1;         // from this packet's issue to that one's
  };
  ControlFlow(const Program& program, const Pipeline& pipeline, const std::vector<int>& entries);

  const std::vector<State>& states() const { return m_states; }
  /// A branch's own edge is the first of its packet's; a second one, of a predicate that does not hold, follows.
  const std::vector<Edge>& successors(int state) const { return m_successors[state]; }
  /// States that issue packet `packet`.
  const std::vector<int>& states_of(int packet) const { return m_states_of[packet]; }
  bool reachable(int packet) const { return !m_states_of[packet].empty(); }
  /// Calls `visit(packet, distance)` for every packet that can issue 1 <= distance < horizon cycles after `packet`
  /// issues, over all paths. Return false from visit to stop following that path. Each (state, distance) is visited
  /// once.
  void walk(int packet, int horizon, const std::function<bool(int, int)>& visit) const;

 private:
  std::vector<State> m_states;
  std::vector<std::vector<Edge>> m_successors;
  std::vector<std::vector<int>> m_states_of;
};

}  // namespace mtsim::isa
