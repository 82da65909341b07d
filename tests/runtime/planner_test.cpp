// SPDX-License-Identifier: Apache-2.0
// The planner finds what trying everything finds, for any number of devices, and says why a plan cannot be.
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "runtime/error.h"
#include "runtime/planner/planner.h"
#include "tests/support/analytic_cost.h"

using namespace mtsim;
using namespace mtsim::runtime;
using Catch::Matchers::Contains;
using mtsim::test::AnalyticCost;
using mtsim::test::AnalyticNumbers;

namespace {

PlannerOptions options_for(std::int64_t clusters) {
  PlannerOptions options;
  options.clusters = clusters;
  return options;
}

/// Tokens a second of a plan by eqs. (12) to (21) written out; 0 where memory or clusters do not suffice.
double tokens_s(const models::LlamaConfig& config, AnalyticCost& cost, const PlannerOptions& options,
                const ServingPlan& plan) {
  const std::int64_t prompt = options.prompt_tokens, generated = options.output_tokens, s_max = prompt + generated;
  const auto decode_stage = [&](std::int64_t stage) {
    const std::vector<models::SequenceStep> batch(static_cast<std::size_t>(plan.decode.micro_batch),
                                                  {1, prompt + generated / 2});
    return cost.stage({plan.decode.tp, plan.decode.pp, stage}, batch).busy_s();
  };
  const auto prefill_stage = [&](const Pool& pool, std::int64_t stage) {
    const std::vector<models::SequenceStep> batch(static_cast<std::size_t>(plan.prefill.micro_batch), {prompt, 0});
    return cost.stage({pool.tp, pool.pp, stage}, batch).busy_s();
  };
  const auto cycle = [&](const Pool& pool, std::int64_t tokens, const auto& stage) {
    double sum = 0, most = 0;
    for (std::int64_t s = 0; s < pool.pp; ++s) {
      sum += stage(s);
      most = std::max(most, stage(s));
    }
    const double message = cost.message_s(tokens * cost.activation_bytes_per_token(), pool.tp * pool.pp <= 4);
    return std::max(static_cast<double>(pool.pp) * most,
                    sum + static_cast<double>(pool.pp - 1) * message + cost.host_s(pool.micro_batch));
  };
  const auto usable = cost.memory_bytes() - cost.overhead_bytes();
  const std::int64_t decode_slack =
      usable - cost.weight_bytes(plan.decode.tp, plan.decode.pp) -
      plan.decode.pp * plan.decode.micro_batch * s_max * cost.kv_bytes_per_token(plan.decode.tp, plan.decode.pp);
  if (decode_slack <= 0) return 0;
  const std::int64_t batch = plan.decode.batch();
  const double decode_s =
      static_cast<double>(generated - 1) * cycle(plan.decode, plan.decode.micro_batch, decode_stage);
  const double prefill_cycle = cycle(plan.prefill, plan.prefill.micro_batch * prompt,
                                     [&](std::int64_t s) { return prefill_stage(plan.prefill, s); });
  const double prefill_s = static_cast<double>(batch) / static_cast<double>(plan.prefill.micro_batch) * prefill_cycle /
                           static_cast<double>(plan.prefill.pp);
  std::int64_t clusters = plan.decode.clusters();
  double period = prefill_s + decode_s;
  if (plan.mode == PipelineMode::bounded) {
    const std::int64_t prefill_slack =
        usable - cost.weight_bytes(1, plan.prefill.pp) -
        plan.prefill.micro_batch * prompt * cost.kv_bytes_per_token(1, 1) / config.layers;
    if (prefill_slack <= 0) return 0;
    const std::int64_t wanted = batch * prompt * cost.kv_bytes_per_token(1, 1) -
                                plan.prefill.clusters() * prefill_slack - plan.decode.clusters() * decode_slack;
    clusters += plan.prefill.clusters() + (wanted > 0 ? (wanted + usable - 1) / usable : 0);
    period = std::max(prefill_s / static_cast<double>(plan.prefill.dp), decode_s);
  }
  return static_cast<double>(options.clusters / clusters * batch * generated) / period;
}

/// The best of everything.
double brute_force(const models::LlamaConfig& config, AnalyticCost& cost, const PlannerOptions& options) {
  double best = 0;
  for (const std::int64_t tp : tensor_degrees(config, 16)) {
    for (std::int64_t pp = 1; tp * pp <= options.clusters; ++pp) {
      for (std::int64_t b = 1; b <= options.most_micro_batch; ++b) {
        ServingPlan plan;
        plan.mode = PipelineMode::coupled;
        plan.decode = {tp, pp, 1, b};
        plan.prefill = {tp, pp, 1, 1};
        best = std::max(best, tokens_s(config, cost, options, plan));
        plan.mode = PipelineMode::bounded;
        for (std::int64_t dp = 1; tp * pp * dp <= options.clusters; ++dp) {
          plan.decode.dp = dp;
          for (std::int64_t prefill_pp = 1; prefill_pp <= options.clusters; ++prefill_pp) {
            for (std::int64_t prefill_dp = 1; prefill_pp * prefill_dp + tp * pp * dp <= options.clusters;
                 ++prefill_dp) {
              for (const std::int64_t micro_batch : {1, 2, 4}) {
                plan.prefill = {1, prefill_pp, prefill_dp, micro_batch};
                best = std::max(best, tokens_s(config, cost, options, plan));
              }
            }
          }
        }
      }
    }
  }
  return best;
}

}  // namespace

TEST_CASE("the planner finds what trying everything finds", "[planner]") {
  models::LlamaConfig config = models::load_config("TinyLlama-1.1B");
  config.layers = 6;
  AnalyticNumbers small;
  small.memory = std::int64_t{900} << 20;  // the model takes two clusters and a handful of caches fill one
  small.overhead = std::int64_t{64} << 20;
  for (const std::int64_t clusters : {1, 3, 5, 8}) {
    AnalyticCost cost(config, small);
    PlannerOptions options = options_for(clusters);
    options.most_micro_batch = 24;
    const PlanSearch search = search_plans(config, cost, options);
    REQUIRE(search.alive() > 0);
    const PlanRow& best = search.rows.front();
    const double all = brute_force(config, cost, options);
    INFO(clusters << " clusters: " << best.plan.str() << ", " << best.tokens_s << " tokens/s, of all " << all);
    CHECK(best.tokens_s == Approx(all).epsilon(0.03));  // layer times are interpolated
    CHECK(best.tokens_s == Approx(tokens_s(config, cost, options, best.plan)).epsilon(0.03));
  }
}

TEST_CASE("plans for 8 to 18 devices, uneven ones too, use no more clusters than there are", "[planner]") {
  for (const char* model : {"Llama-2-7B", "Llama-2-13B", "LLaMA-30B", "Llama-2-70B"}) {
    const models::LlamaConfig config = models::load_config(model);
    double before = 0;
    for (const std::int64_t devices : {8, 9, 10, 11, 16, 18}) {
      AnalyticCost cost(config);
      const PlanSearch search = search_plans(config, cost, options_for(4 * devices));
      INFO(model << " on " << devices << " devices");
      REQUIRE(search.alive() > 0);
      const PlanRow& best = search.rows.front();
      CHECK(best.groups == 4 * devices / best.plan.clusters());
      CHECK(best.clusters == best.plan.clusters());
      CHECK(best.tokens_s >= before);  // what fits eight fits nine
      CHECK(cost.queries() < 400);
      before = best.tokens_s;
    }
  }
}

TEST_CASE("every row has its numbers, and a dead one the constraint with what is needed and there", "[planner]") {
  const models::LlamaConfig config = models::load_config("LLaMA-30B");
  AnalyticCost cost(config);
  const PlanSearch search = search_plans(config, cost, options_for(12));
  std::set<Death> seen;
  for (const PlanRow& row : search.rows) {
    INFO(row.plan.str() << ": " << row.why);
    seen.insert(row.death);
    if (row.alive()) {
      CHECK(row.decode_memory.fits());
      CHECK(row.tokens_s > 0);
      CHECK(row.groups >= 1);
      CHECK(row.why.empty());
    } else {
      CHECK(row.needed > row.there - 1e-12);
      CHECK_FALSE(row.why.empty());
    }
  }
  CHECK(seen.contains(Death::none));
  CHECK(seen.contains(Death::decode_memory));
  CHECK(seen.contains(Death::clusters));
  const auto dead = std::find_if(search.rows.begin(), search.rows.end(),
                                 [](const PlanRow& row) { return row.death == Death::decode_memory; });
  CHECK_THAT(dead->why, Contains("GB of weights") && Contains("it has 21.47 GB (eq. 16)"));
}

TEST_CASE("a model that fits nowhere leaves only dead rows", "[planner]") {
  const models::LlamaConfig config = models::load_config("Llama-2-70B");
  AnalyticCost cost(config);
  const PlanSearch search = search_plans(config, cost, options_for(4));
  CHECK(search.alive() == 0);
  for (const auto& [death, count] : search.deaths()) {
    CHECK((death == Death::decode_memory || death == Death::clusters));
    CHECK(count > 0);
  }
}

TEST_CASE("an SLO on the time between tokens bounds the micro-batch", "[planner]") {
  const models::LlamaConfig config = models::load_config("Llama-2-7B");
  AnalyticCost cost(config);
  PlannerOptions options = options_for(16);
  const double free_tpot = search_plans(config, cost, options).rows.front().tpot_s;
  options.slo.tpot_s = free_tpot / 2;
  const PlanSearch bound = search_plans(config, cost, options);
  REQUIRE(bound.alive() > 0);
  for (const PlanRow& row : bound.rows) {
    if (row.alive()) CHECK(row.tpot_s <= options.slo.tpot_s);
  }
  options.slo.tpot_s = 1e-6;
  const PlanSearch none = search_plans(config, cost, options);
  CHECK(none.alive() == 0);
  const auto deaths = none.deaths();
  CHECK(std::any_of(deaths.begin(), deaths.end(), [](const auto& d) { return d.first == Death::slo; }));
}

TEST_CASE("tensor parallelism divides heads, KV heads, feed-forward width and vocabulary", "[planner]") {
  models::LlamaConfig config = models::load_config("Llama-2-70B");
  CHECK(tensor_degrees(config, 16) == std::vector<std::int64_t>{1, 2, 4, 8});                         // 8 KV heads
  CHECK(tensor_degrees(models::load_config("LLaMA-30B"), 16) == std::vector<std::int64_t>{1, 2, 4});  // 52 heads
  config.vocab_size = 32001;
  CHECK(tensor_degrees(config, 16) == std::vector<std::int64_t>{1});
}

TEST_CASE("a slow link makes tensor parallelism die of its all-reduce", "[planner]") {
  const models::LlamaConfig config = models::load_config("Llama-2-7B");
  AnalyticNumbers slow;
  slow.latency_s = 20e-3;
  AnalyticCost cost(config, slow);
  const PlanSearch search = search_plans(config, cost, options_for(8));
  REQUIRE(search.alive() > 0);
  for (const PlanRow& row : search.rows) {
    if (row.alive()) CHECK(row.plan.decode.tp == 1);
  }
}

TEST_CASE("an objective is read strictly", "[planner]") {
  CHECK(parse_objective("goodput") == Objective::goodput);
  CHECK_THROWS_WITH(parse_objective("speed"), Contains("there are throughput and goodput"));
}

TEST_CASE("there is no plan for nothing", "[planner]") {
  const models::LlamaConfig config = models::load_config("Llama-2-7B");
  AnalyticCost cost(config);
  CHECK_THROWS_WITH(search_plans(config, cost, options_for(0)), Contains("0 clusters"));
  PlannerOptions options = options_for(8);
  options.prompt_tokens = 4090;
  CHECK_THROWS_WITH(search_plans(config, cost, options), Contains("holds 4096"));
}
