// SPDX-License-Identifier: Apache-2.0
// The rows of a search as served: what the closed form leaves out - filling and draining, waiting, random arrivals.
#include <algorithm>

#include "runtime/error.h"
#include "runtime/planner/planner.h"

namespace mtsim::runtime {
namespace {

constexpr double k_attained = 0.9;  // of the requests are within the SLO at the rate that counts
constexpr int k_rate_steps = 7;     // halvings: under 1 % of the closed form's rate
constexpr std::int64_t k_fewest_arrivals = 200;
constexpr std::int64_t k_batches = 4;  // that pass, so that the middle half has pools that are full
constexpr std::uint64_t k_seed = 1;

struct Ranking {
  const models::LlamaConfig& config;
  IterationCost& cost;
  const PlannerOptions& options;

  ServingResult run(const PlanRow& row, const Workload& workload) const {
    ServeOptions serving;
    serving.context = config.max_positions;
    serving.clusters_per_device = options.clusters_per_device;
    return serve(row.plan, workload, cost, serving);
  }

  double saturated(const PlanRow& row) const {
    const auto workload =
        uniform_workload(k_batches * row.plan.decode.batch(), options.prompt_tokens, options.output_tokens);
    return static_cast<double>(row.groups) * run(row, workload).steady_tokens_per_s();
  }

  /// Share of requests within the SLO when so many arrive a second in one pool.
  double attained(const PlanRow& row, double requests_s) const {
    const std::int64_t count = std::max(k_fewest_arrivals, k_batches * row.plan.decode.batch());
    const ServingResult result =
        run(row, poisson_workload(count, requests_s, options.prompt_tokens, options.output_tokens, k_seed));
    return metrics_of(result, options.slo).attainment;
  }

  void goodput(PlanRow& row) const {
    double low = 0, high = row.tokens_s / static_cast<double>(row.groups * options.output_tokens), share = 0;
    for (int step = 0; step <= k_rate_steps; ++step) {
      const double rate = step == 0 ? high : (low + high) / 2;
      const double its = attained(row, rate);
      if (its >= k_attained) {
        low = rate;
        share = its;
        if (step == 0) break;
      } else {
        high = rate;
      }
    }
    row.goodput_requests_s = static_cast<double>(row.groups) * low * share;
    row.goodput_tokens_s = *row.goodput_requests_s * static_cast<double>(options.output_tokens);
  }
};

}  // namespace

void rank_by_serving(PlanSearch& search, std::int64_t count, const models::LlamaConfig& config, IterationCost& cost,
                     const PlannerOptions& options, const std::function<void()>& on_row) {
  const Ranking ranking{config, cost, options};
  const auto end = search.rows.begin() + std::min(count, search.alive());
  for (auto row = search.rows.begin(); row != end; ++row) {
    try {
      row->served_tokens_s = ranking.saturated(*row);
      if (options.objective == Objective::goodput) ranking.goodput(*row);
    } catch (const RuntimeError& error) {
      row->death = Death::decode_memory;
      row->why = error.what();
    }
    if (on_row) on_row();
  }
  const auto key = [&](const PlanRow& row) {
    const auto& value = options.objective == Objective::goodput ? row.goodput_tokens_s : row.served_tokens_s;
    return std::pair(row.death, -value.value_or(0));
  };
  std::stable_sort(search.rows.begin(), end, [&](const PlanRow& a, const PlanRow& b) { return key(a) < key(b); });
  std::stable_partition(search.rows.begin(), search.rows.end(), [](const PlanRow& row) { return row.alive(); });
}

}  // namespace mtsim::runtime
