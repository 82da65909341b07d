// SPDX-License-Identifier: Apache-2.0
#include "isa/dead_results.h"

#include <algorithm>

namespace mtsim::isa {
namespace {

constexpr int k_no_kill = k_max_latency + 1;

}  // namespace

bool DeadResults::dead(int packet, int cycles) {
  std::vector<std::uint32_t> starts;
  for (const int state : m_flow.states_of(packet)) {
    starts.push_back(enter({state, cycles, kill_in(packet, cycles, k_no_kill)}));
  }
  explore();
  if (stopped()) return false;
  return std::none_of(starts.begin(), starts.end(), [&](std::uint32_t start) { return m_nodes[start].escapes; });
}

std::uint32_t DeadResults::enter(Node node) {
  constexpr int k_bits = 8;
  static_assert(k_no_kill < 1 << k_bits);
  const std::uint64_t key = (static_cast<std::uint64_t>(node.state) << (2 * k_bits)) |
                            (static_cast<std::uint64_t>(node.lands_in) << k_bits) |
                            static_cast<std::uint64_t>(node.killed_in);
  const auto [it, is_new] = m_index.try_emplace(key, static_cast<std::uint32_t>(m_nodes.size()));
  if (is_new) {
    m_nodes.push_back({node, {}});
    m_pending.push_back(it->second);
  }
  return it->second;
}

void DeadResults::explore() {
  while (!m_pending.empty() && !stopped()) {
    const std::uint32_t current = m_pending.back();
    m_pending.pop_back();
    const Node node = m_nodes[current].node;
    for (const ControlFlow::Edge& edge : m_flow.successors(node.state)) {
      ++m_steps;
      if (edge.state < 0) {  // the value leaves the kernel
        escape(current);
        break;
      }
      if (node.killed_in <= edge.cycles) continue;
      const int lands_in = std::max(0, node.lands_in - edge.cycles);
      const int packet = m_flow.states()[static_cast<std::size_t>(edge.state)].packet;
      if (lands_in == 0 && m_accesses[static_cast<std::size_t>(packet)].read) {
        escape(current);
        break;
      }
      const int still = node.killed_in == k_no_kill ? k_no_kill : node.killed_in - edge.cycles;
      const std::uint32_t next = enter({edge.state, lands_in, kill_in(packet, lands_in, still)});
      m_nodes[next].from.push_back(current);
      if (m_nodes[next].escapes) {
        escape(current);
        break;
      }
    }
  }
}

void DeadResults::escape(std::uint32_t node) {
  std::vector<std::uint32_t> all{node};
  while (!all.empty()) {
    Facts& facts = m_nodes[all.back()];
    all.pop_back();
    if (facts.escapes) continue;
    facts.escapes = true;
    m_steps += static_cast<std::int64_t>(facts.from.size());
    all.insert(all.end(), facts.from.begin(), facts.from.end());
  }
}

int DeadResults::kill_in(int packet, int lands_in, int killed_in) const {
  for (const int cycles : m_accesses[static_cast<std::size_t>(packet)].kills) {
    if (cycles > lands_in) killed_in = std::min(killed_in, cycles);
  }
  return killed_in;
}

}  // namespace mtsim::isa
