// SPDX-License-Identifier: Apache-2.0
#include "isa/loop_search.h"

#include <fmt/format.h>

#include <algorithm>

#include "isa/internal.h"
#include "isa/modulo_exact.h"

namespace mtsim::isa {
namespace {

constexpr int k_steps_per_attempt = 10;

void set_reason(LoopReport& report, int interval, std::string reason) {
  for (BlockedInterval& blocked : report.blocked) {
    if (blocked.interval == interval) blocked.reason = std::move(reason);
  }
}

ExactSearch::Outcome outcome_of(const ModuloLoop& loop, int interval, std::int64_t& budget) {
  return budget > 0 ? search_modulo_schedule(loop, interval, budget).outcome : ExactSearch::Outcome::unknown;
}

}  // namespace

FoundSchedule find_schedule(const ModuloLoop& loop, int longer, int limit, SearchBudget& budget, LoopReport& report) {
  const int bound = interval_bound(loop), first = bound + longer;
  report.copied_bound = bound;
  FoundSchedule found;
  std::vector<ModuloAttempt> attempts;  // that failed
  int interval = first;
  // Far above the bound single cycles no longer matter; an attempt on a long body must not be repeated without end.
  while (interval < limit && (attempts.empty() || budget.heuristic > 0)) {
    ModuloAttempt attempt = modulo_schedule(loop, interval);
    found.schedule = std::move(attempt.schedule);
    if (found.schedule) break;
    attempts.push_back(attempt);
    found.failed.push_back({interval, false});
    budget.heuristic -= k_steps_per_attempt * static_cast<std::int64_t>(loop.body.size()) * interval;
    interval += std::max(1, (interval - first) / 8);
  }
  for (std::size_t i = 0; i < attempts.size() && budget.exhaustive > 0; ++i) {
    FailedInterval& failed = found.failed[i];
    ExactSearch exact = search_modulo_schedule(loop, failed.interval, budget.exhaustive);
    if (exact.outcome == ExactSearch::Outcome::found) {
      found.schedule = std::move(exact.schedule);
      interval = failed.interval;
      found.failed.resize(i);
      break;
    }
    failed.none = exact.outcome == ExactSearch::Outcome::none;
  }
  for (std::size_t i = found.failed.size(); i-- > 0;) {
    const int open = found.failed[i].interval;
    report.blocked.push_back({open, obstacle(loop, open, attempts[i].hardest)});
  }
  if (!found.schedule) return found;
  report.interval = interval;
  if (bound > report.bound()) report.blocked.push_back({bound - 1, lifetime_reason(loop)});
  if (report.bound() > 1) report.blocked.push_back({report.bound() - 1, bound_reason(report)});
  return found;
}

void prove(const ModuloLoop& written, const ModuloLoop& scheduled, const std::vector<FailedInterval>& failed,
           std::int64_t budget, LoopReport& report) {
  using Outcome = ExactSearch::Outcome;
  const DependenceGraph values = written.graph.without_lifetimes();
  const ModuloLoop in_any_registers{written.body, values, written.pipeline, written.allow_assumed};
  const int bound_here = interval_bound(scheduled);
  std::int64_t any_budget = budget / 2, here_budget = budget - any_budget;
  bool refuted = true, here = true;
  for (int interval = report.interval - 1; interval >= report.bound() && here; --interval) {
    // Refuting one interval only does not make a proof.
    const Outcome any = refuted ? outcome_of(in_any_registers, interval, any_budget) : Outcome::unknown;
    if (any == Outcome::none) {
      set_reason(report, interval, "units and dependences, whatever the registers (exhaustive search)");
      continue;
    }
    refuted = false;
    if (interval < bound_here) continue;
    const auto known = std::find_if(failed.begin(), failed.end(),
                                    [&](const FailedInterval& other) { return other.interval == interval; });
    const bool none = known != failed.end() && known->none;
    const Outcome outcome = none ? Outcome::none : outcome_of(scheduled, interval, here_budget);
    here = outcome == Outcome::none;
    if (outcome == Outcome::none) {
      set_reason(report, interval, "units, dependences and lifetimes in these registers (exhaustive search)");
    } else if (outcome == Outcome::found) {
      set_reason(report, interval, "the scheduler's budget: a longer search finds a schedule");
    }
  }
  report.refuted = refuted;
  report.refuted_here = here && !refuted;
}

}  // namespace mtsim::isa
