// SPDX-License-Identifier: Apache-2.0
#include "isa/control_flow.h"

#include <map>
#include <set>
#include <tuple>

namespace mtsim::isa {
namespace {

int target_of(const Instruction& branch) {
  const auto* target = std::get_if<Target>(&branch.operands[0]);
  return target ? target->packet : ControlFlow::k_return;
}

}  // namespace

ControlFlow::ControlFlow(const Program& program, const Pipeline& pipeline, const std::vector<int>& entries)
    : m_states_of(program.packets.size()) {
  const int packet_count = static_cast<int>(program.packets.size());
  std::map<std::tuple<int, int, int>, int> index;
  std::vector<int> pending;

  const auto state_of = [&](int packet, int target, int branch_in) {
    if (packet < 0 || packet >= packet_count) return k_off_end;
    const auto [it, is_new] = index.try_emplace({packet, target, branch_in}, static_cast<int>(m_states.size()));
    if (is_new) {
      m_states.push_back({packet, target, branch_in});
      m_successors.emplace_back();
      m_states_of[packet].push_back(it->second);
      pending.push_back(it->second);
    }
    return it->second;
  };

  for (const int entry : entries) state_of(entry, -1, 0);
  while (!pending.empty()) {
    const int current = pending.back();
    pending.pop_back();
    const State state = m_states[current];
    const Packet& packet = program.packets[state.packet];
    const int cycles = packet.cycles();

    // The state after this packet when the branch `target` takes effect in `branch_in` cycles (0: none pending).
    const auto advance = [&](int target, int branch_in) {
      Edge edge;
      if (branch_in > 0 && cycles >= branch_in) {  // a taken branch cuts an SNOP
        edge.cycles = branch_in;
        edge.state = target == k_return ? k_return : state_of(target, -1, 0);
      } else {
        edge.cycles = cycles;
        edge.state =
            branch_in > 0 ? state_of(state.packet + 1, target, branch_in - cycles) : state_of(state.packet + 1, -1, 0);
      }
      m_successors[current].push_back(edge);
    };

    const Instruction* branch = packet.branch();
    // A second branch in the delay slots of a taken one cannot be taken without trapping: only its untaken path goes
    // on.
    if (branch == nullptr || state.branch_in > 0) {
      advance(state.branch_target, state.branch_in);
      continue;
    }
    advance(target_of(*branch), pipeline.branch_cycles());
    if (branch->predicate) advance(-1, 0);
  }
}

void ControlFlow::walk(int packet, int horizon, const std::function<bool(int, int)>& visit) const {
  std::set<std::pair<int, int>> seen;  // state, distance
  std::vector<std::pair<int, int>> pending;
  const auto follow = [&](int state, int distance) {
    for (const Edge& edge : m_successors[state]) {
      const int next = distance + edge.cycles;
      if (edge.state >= 0 && next < horizon && seen.insert({edge.state, next}).second)
        pending.emplace_back(edge.state, next);
    }
  };
  for (const int state : m_states_of[packet]) follow(state, 0);
  while (!pending.empty()) {
    const auto [state, distance] = pending.back();
    pending.pop_back();
    if (visit(m_states[state].packet, distance)) follow(state, distance);
  }
}

}  // namespace mtsim::isa
