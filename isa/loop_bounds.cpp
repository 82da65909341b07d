// SPDX-License-Identifier: Apache-2.0
#include "isa/loop_bounds.h"

#include <fmt/format.h>

#include <algorithm>

#include "isa/internal.h"
#include "isa/modulo_exact.h"

namespace mtsim::isa {
namespace {

class IntervalSearch {
 public:
  IntervalSearch(const ModuloLoop& loop, const RegisterName& name, std::int64_t& budget, LoopReport& report)
      : m_loop(loop), m_name(name), m_budget(budget), m_report(report) {}

  std::optional<ModuloSchedule> run(int longer, int limit) {
    describe_bounds();
    const int bound = std::max(m_report.bound(), m_loop.pipeline.of(row(Mnemonic::SSUB)));
    const int first = bound + longer;
    std::optional<ModuloSchedule> found;
    std::vector<std::pair<int, int>> failed;  // interval, the instruction that found no place
    int interval = first;
    // Far above the bound single cycles no longer matter; an attempt on a long body must not be repeated without end.
    while (interval < limit && (failed.empty() || m_budget > 0)) {
      ModuloAttempt attempt = modulo_schedule(m_loop, interval);
      found = std::move(attempt.schedule);
      if (found) break;
      failed.emplace_back(interval, attempt.hardest);
      m_budget -= k_steps_per_attempt * static_cast<std::int64_t>(m_loop.body.size()) * interval;
      interval += std::max(1, (interval - first) / 8);
    }
    bool all_refuted = longer == 0;
    for (const auto& [shorter, hardest] : failed) {
      ExactSearch exact = search_modulo_schedule(m_loop, shorter, m_budget);
      if (exact.outcome == ExactSearch::Outcome::found) {
        found = std::move(exact.schedule);
        interval = shorter;
        break;
      }
      const bool none = exact.outcome == ExactSearch::Outcome::none;
      all_refuted = all_refuted && none;
      const std::string instruction = spelled(m_loop.body[index(hardest)]);
      m_report.blocked.push_back(
          {shorter,
           none ? fmt::format("exhaustive search: no schedule fits; {} is the hardest to place", instruction)
                : fmt::format("{} found no place; the search budget does not show that none exists", instruction)});
    }
    all_refuted = all_refuted && interval - first == static_cast<int>(m_report.blocked.size());
    std::reverse(m_report.blocked.begin(), m_report.blocked.end());
    if (!found) return std::nullopt;
    m_report.interval = interval;
    m_report.proved = all_refuted;
    if (bound > 1) m_report.blocked.push_back({bound - 1, bound_reason()});
    return found;
  }

 private:
  static constexpr int k_steps_per_attempt = 10;

  void describe_bounds() {
    m_report.resources = resource_bounds(m_loop);
    std::stable_sort(m_report.resources.begin(), m_report.resources.end(),
                     [](const ResourceBound& a, const ResourceBound& b) { return a.cycles > b.cycles; });
    m_report.resource_bound = m_report.resources.empty() ? 1 : m_report.resources.front().cycles;
    m_report.recurrence_bound = m_loop.graph.recurrence_bound();
    m_report.recurrence.clear();
    for (const int e : m_loop.graph.critical_cycle(m_report.recurrence_bound)) {
      const Dependence& edge = m_loop.graph.edges()[index(e)];
      m_report.recurrence.push_back(
          fmt::format("{} to {}: {} cycle{}{}, {} through {}", spelled(m_loop.body[index(edge.from)]),
                      spelled(m_loop.body[index(edge.to)]), edge.delay, edge.delay == 1 ? "" : "s",
                      edge.distance == 0   ? ""
                      : edge.distance == 1 ? " in the next iteration"
                                           : fmt::format(" {} iterations later", edge.distance),
                      to_string(edge.kind), m_name(edge.reg)));
      m_too_long = m_too_long || edge.kind == DependenceKind::anti;
    }
  }

  std::string bound_reason() const {
    if (m_report.recurrence_bound > m_report.resource_bound) {
      return m_too_long
                 ? "a value that lives too long: its register would be overwritten before its last read (cycle above)"
                 : "the cycle of dependences above";
    }
    const ResourceBound& first = m_report.resources.front();
    if (first.instructions == 0) return first.name;
    return fmt::format("{}: {} instruction{}, {} a cycle", first.name, first.instructions,
                       first.instructions == 1 ? "" : "s", first.slots);
  }

  const ModuloLoop& m_loop;
  const RegisterName& m_name;
  std::int64_t& m_budget;
  LoopReport& m_report;
  bool m_too_long = false;
};

}  // namespace

std::optional<ModuloSchedule> find_schedule(const ModuloLoop& loop, const RegisterName& name, int longer, int limit,
                                            std::int64_t& search_budget, LoopReport& report) {
  return IntervalSearch(loop, name, search_budget, report).run(longer, limit);
}

}  // namespace mtsim::isa
