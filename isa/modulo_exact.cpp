// SPDX-License-Identifier: Apache-2.0
// Branch and bound over the kernel rows of the instructions. What is known of the distances between issue cycles is
// kept as a matrix of lower bounds; giving an instruction a row makes the distances to those that have one a fixed
// number modulo the interval, which raises bounds and empties rows of others. Rows found for all leave only the stages,
// a longest-path problem.
#include "isa/modulo_exact.h"

#include <algorithm>
#include <limits>

#include "isa/internal.h"

namespace mtsim::isa {
namespace {

constexpr int k_none = std::numeric_limits<int>::min() / 4;  // no bound

int floor_mod(int a, int b) { return ((a % b) + b) % b; }

class Search {
 public:
  Search(const ModuloLoop& loop, int interval, std::int64_t& budget)
      : m_loop(loop),
        m_interval(interval),
        m_count(static_cast<int>(loop.body.size()) -
                2),  // without the counter and the branch, which are tied to nothing
        m_budget(budget),
        m_table(loop.body, loop.pipeline, {interval, loop.allow_assumed, false}),
        m_row(index(m_count), -1) {}

  ExactSearch run() {
    constexpr int k_most_instructions = 200;
    if (m_count == 0 || m_count > k_most_instructions) return {};
    Node root{std::vector<int>(index(m_count * m_count), k_none),
              std::vector<std::vector<bool>>(index(m_count), std::vector<bool>(index(m_interval), true))};
    if (!close(root)) return {ExactSearch::Outcome::none, {}};
    descend(root, m_count);
    if (m_found) return {ExactSearch::Outcome::found, m_found};
    return {m_budget <= 0 || m_inexact ? ExactSearch::Outcome::unknown : ExactSearch::Outcome::none, {}};
  }

 private:
  struct Node {
    std::vector<int> least;               // cycle(j) - cycle(i) >= least[i * count + j]
    std::vector<std::vector<bool>> rows;  // still possible, by instruction
  };

  int& least(Node& node, int i, int j) const { return node.least[index(i * m_count + j)]; }

  // All pairs of longest paths; false for a cycle of positive length.
  bool close(Node& node) {
    for (int i = 0; i < m_count; ++i) least(node, i, i) = 0;
    for (const Dependence& edge : m_loop.graph.edges()) {
      int& bound = least(node, edge.from, edge.to);
      bound = std::max(bound, edge.delay - m_interval * edge.distance);
    }
    m_budget -= static_cast<std::int64_t>(m_count) * m_count * m_count;
    for (int k = 0; k < m_count; ++k) {
      for (int i = 0; i < m_count; ++i) {
        const int first = least(node, i, k);
        if (first == k_none) continue;
        for (int j = 0; j < m_count; ++j) {
          const int second = least(node, k, j);
          if (second != k_none) least(node, i, j) = std::max(least(node, i, j), first + second);
        }
      }
    }
    for (int i = 0; i < m_count; ++i) {
      if (least(node, i, i) > 0) return false;
    }
    return true;
  }

  // The smallest number >= bound that is `difference` modulo the interval.
  int raised(int bound, int difference) const { return bound + floor_mod(difference - bound, m_interval); }

  // Is there a distance of that residue between the bounds of i and j?
  bool possible(Node& node, int i, int j, int difference) const {
    const int low = least(node, i, j), back = least(node, j, i);
    if (low == k_none || back == k_none) return true;
    return raised(low, difference) <= -back;
  }

  bool fix(Node& node, int chosen, int row) {
    m_row[index(chosen)] = row;
    m_budget -= 3 * static_cast<std::int64_t>(m_count) * m_count;
    for (int i = 0; i < m_count; ++i) {
      if (i == chosen || m_row[index(i)] < 0) continue;
      const int difference = row - m_row[index(i)];
      if (!possible(node, i, chosen, difference)) return false;
      int& forward = least(node, i, chosen);
      if (forward != k_none) forward = raised(forward, difference);
      int& backward = least(node, chosen, i);
      if (backward != k_none) backward = raised(backward, -difference);
    }
    // Bounds changed only beside `chosen`: paths to it, then from it, then through it.
    for (int a = 0; a < m_count; ++a) {
      for (int i = 0; i < m_count; ++i) {
        const int to = least(node, a, i), on = least(node, i, chosen);
        if (to != k_none && on != k_none) least(node, a, chosen) = std::max(least(node, a, chosen), to + on);
        const int from = least(node, chosen, i), off = least(node, i, a);
        if (from != k_none && off != k_none) least(node, chosen, a) = std::max(least(node, chosen, a), from + off);
      }
    }
    if (least(node, chosen, chosen) > 0) return false;
    for (int a = 0; a < m_count; ++a) {
      const int to = least(node, a, chosen);
      if (to == k_none) continue;
      for (int b = 0; b < m_count; ++b) {
        const int from = least(node, chosen, b);
        if (from != k_none) least(node, a, b) = std::max(least(node, a, b), to + from);
      }
      if (least(node, a, a) > 0) return false;
    }
    return filter(node, chosen, row);
  }

  // Takes away the rows that the bounds to `chosen` no longer allow.
  bool filter(Node& node, int chosen, int row) {
    for (int j = 0; j < m_count; ++j) {
      if (m_row[index(j)] >= 0) continue;
      bool any = false;
      for (int r = 0; r < m_interval; ++r) {
        if (!node.rows[index(j)][index(r)]) continue;
        const bool stays = possible(node, chosen, j, r - row);
        node.rows[index(j)][index(r)] = stays;
        any = any || stays;
      }
      if (!any) return false;
    }
    m_budget -= m_count * m_interval;
    return true;
  }

  void descend(const Node& node, int left) {
    if (m_budget <= 0 || m_found) return;
    if (left == 0) {
      finish();
      return;
    }
    const int chosen = most_constrained(node);
    // A schedule stays one when all rows move alike: the first instruction may take row 0.
    const int rows = left == m_count ? 1 : m_interval;
    for (int row = 0; row < rows && m_budget > 0 && !m_found; ++row) {
      if (!node.rows[index(chosen)][index(row)] || !m_table.place(chosen, row)) continue;
      Node next = node;
      if (fix(next, chosen, row)) descend(next, left - 1);
      m_row[index(chosen)] = -1;
      m_table.remove(chosen);
    }
  }

  int most_constrained(const Node& node) {
    int best = -1;
    std::ptrdiff_t fewest = 0;
    for (int i = 0; i < m_count; ++i) {
      if (m_row[index(i)] >= 0) continue;
      const auto& rows = node.rows[index(i)];
      const auto open = std::count(rows.begin(), rows.end(), true);
      if (best < 0 || open < fewest) {
        best = i;
        fewest = open;
      }
    }
    return best;
  }

  // Every instruction has a row: the stages follow from the dependences, if they can.
  void finish() {
    std::vector<int> cycle = m_row;
    bool changed = true;
    for (int round = 0; changed; ++round) {
      if (round > m_count) return;
      changed = false;
      for (const Dependence& edge : m_loop.graph.edges()) {
        const int bound = cycle[index(edge.from)] + edge.delay - m_interval * edge.distance;
        int& to = cycle[index(edge.to)];
        if (to >= bound) continue;
        to = raised(bound, to);
        changed = true;
      }
      m_budget -= static_cast<std::int64_t>(m_loop.graph.edges().size());
    }
    m_found = assign_units(m_loop, m_interval, cycle);
    // Ports of results are not part of the search: a schedule may fail there that another choice of units would pass.
    if (!m_found) m_inexact = true;
  }

  const ModuloLoop& m_loop;
  int m_interval;
  int m_count;
  std::int64_t& m_budget;
  ReservationTable m_table;
  std::vector<int> m_row;
  std::optional<ModuloSchedule> m_found;
  bool m_inexact = false;
};

}  // namespace

ExactSearch search_modulo_schedule(const ModuloLoop& loop, int interval, std::int64_t& budget) {
  return Search(loop, interval, budget).run();
}

}  // namespace mtsim::isa
