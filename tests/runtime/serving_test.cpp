// SPDX-License-Identifier: Apache-2.0
// What serving does, second by second, on clusters of round numbers.
#include "runtime/serving/serve.h"

#include <catch2/catch.hpp>

#include "runtime/error.h"
#include "runtime/serving/metrics.h"
#include "tests/runtime/fake_cost.h"

using namespace mtsim::runtime;
using mtsim::runtime::test::FakeCost;

namespace {

ServeOptions context(std::int64_t tokens = 1000) {
  ServeOptions options;
  options.context = tokens;
  options.keep_events = true;
  return options;
}

/// A cluster that prefills, one that decodes `seats` requests.
ServingPlan pools(PipelineMode mode, std::int64_t seats, std::int64_t buffer_clusters = 0) {
  ServingPlan plan;
  plan.mode = mode;
  plan.prefill = {1, 1, 1, 1};
  plan.buffer.clusters = buffer_clusters;
  plan.decode = {1, 1, 1, seats};
  return plan;
}

std::string error_of(const ServingPlan& plan, const Workload& workload, FakeCost cost) {
  try {
    serve(plan, workload, cost, context());
  } catch (const RuntimeError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a coupled batch takes T_p + T_d: B * N / (T_p + T_d) tokens a second", "[serving]") {
  FakeCost cost;  // four layers of 10 ms and 1 ms a token
  ServingPlan plan = pools(PipelineMode::coupled, 4);
  plan.prefill.micro_batch = 4;
  const ServingResult result = serve(plan, uniform_workload(4, 10, 5), cost, context());
  const double prefill_s = 4 * (0.010 + 40 * 0.001), decode_s = 4 * 4 * (0.010 + 4 * 0.001);
  CHECK(result.makespan_s == Approx(prefill_s + decode_s));
  CHECK(result.tokens_per_s() == Approx(4 * 5 / (prefill_s + decode_s)));
  CHECK(result.requests[3].first_token_s == Approx(prefill_s));
  CHECK(result.pools.front().busy_s == Approx(result.pools.front().available_s));
}

TEST_CASE("a batch that stays together waits for its longest text, a continuous one gives seats on", "[serving]") {
  FakeCost cost;
  ServingPlan plan = pools(PipelineMode::coupled, 2);
  const Workload workload = {{0, 0, 10, 2}, {1, 0, 10, 20}, {2, 0, 10, 10}};
  const ServingResult together = serve(plan, workload, cost, context());
  CHECK(together.requests[2].prefill_start_s == together.requests[1].finish_s);
  plan.coupled_batch = CoupledBatch::continuous;
  const ServingResult continuous = serve(plan, workload, cost, context());
  CHECK(continuous.requests[2].prefill_start_s == continuous.requests[0].finish_s);
  CHECK(continuous.makespan_s < together.makespan_s);
  // Its prefill goes before the next token of request 1, which waits for it.
  CHECK(continuous.requests[1].finish_s > together.requests[1].finish_s);
}

TEST_CASE("a micro-batch of each stage is under way, one behind the other", "[serving]") {
  FakeCost cost;
  ServingPlan plan = pools(PipelineMode::coupled, 1);
  plan.decode.pp = 2;
  const ServingResult result = serve(plan, uniform_workload(2, 10, 101), cost, context());
  const double stage_s = 2 * (0.010 + 0.001);  // two layers, one token
  // Each token of a request takes both stages; the other request has the stage it leaves.
  CHECK(result.requests[0].tpot_s() == Approx(2 * stage_s).epsilon(0.02));
  CHECK(result.steady_tokens_per_s() == Approx(1 / stage_s).epsilon(0.02));
}

TEST_CASE("caches leave layer by layer: what a link takes longer than the layers is seen", "[serving]") {
  FakeCost cost;
  const double layer_s = 0.010 + 10 * 0.001;
  const auto decode_start = [&](double message_s) {
    cost.byte_s = message_s / (10 * cost.position / 4);
    return serve(pools(PipelineMode::bounded, 1), {{0, 0, 10, 2}}, cost, context()).requests[0].decode_start_s;
  };
  CHECK(decode_start(0.001) == Approx(4 * layer_s + 0.001));  // the last layer's message alone
  CHECK(decode_start(layer_s) == Approx(5 * layer_s));
  CHECK(decode_start(0.1) == Approx(layer_s + 4 * 0.1));  // the link is what takes time
}

TEST_CASE("a full buffer pauses prefill; without the bound caches pile up beyond it", "[serving]") {
  FakeCost cost;
  cost.score_s = 0.001;  // decode is slower than prefill
  cost.memory = 4000 + 12 * cost.position;
  cost.weights = 4000;
  ServingPlan plan = pools(PipelineMode::bounded, 1);
  plan.buffer.slack = true;
  const Workload workload = uniform_workload(30, 3, 6);  // 8 positions when they end
  const ServingResult bounded = serve(plan, workload, cost, context());
  CHECK(bounded.buffer_capacity_bytes == (6 + 4) * cost.position);  // beside two prompts, beside one text
  CHECK(bounded.peak_buffer_bytes == 9 * cost.position);            // three caches
  CHECK(bounded.pools.front().paused_s > 1);
  plan.mode = PipelineMode::unbounded;
  const ServingResult unbounded = serve(plan, workload, cost, context());
  CHECK(unbounded.pools.front().paused_s == 0);
  CHECK(unbounded.peak_buffer_bytes > 5 * bounded.buffer_capacity_bytes);
  CHECK(unbounded.requests.back().first_token_s < bounded.requests.back().first_token_s);
  CHECK(unbounded.makespan_s == Approx(bounded.makespan_s).epsilon(0.02));
}

TEST_CASE("the newest request gives its cache up and is computed again", "[serving]") {
  FakeCost cost;
  cost.weights = 0;
  cost.memory = 20 * cost.position;
  ServingPlan plan = pools(PipelineMode::coupled, 2);
  plan.coupled_batch = CoupledBatch::continuous;
  plan.kv = {KvMode::paged, 4, 0};
  const ServingResult result = serve(plan, uniform_workload(2, 6, 10), cost, context());
  CHECK(result.requests[0].preemptions == 0);
  CHECK(result.requests[1].preemptions == 1);
  CHECK(result.preemptions == 1);
  CHECK(result.requests[1].output_tokens == 10);
  std::int64_t prefilled = 0;
  for (const StageEvent& event : result.events) {
    if (event.requests == std::vector<std::int64_t>{1} && event.batch[0].context == 0)
      prefilled = event.batch[0].tokens;
  }
  CHECK(prefilled == 6 + 3);  // with what it had when both wanted a third of five blocks
  CHECK(result.requests[1].first_token_s < result.requests[0].finish_s);
  CHECK(result.requests[1].finish_s > result.requests[0].finish_s);
}

TEST_CASE("requests that are too long are rejected, and say why", "[serving]") {
  FakeCost cost;
  cost.memory = 4000 + 50 * cost.position;
  const ServingResult result =
      serve(pools(PipelineMode::coupled, 1), {{0, 0, 10, 5}, {1, 0, 90, 20}, {2, 0, 40, 20}}, cost, context(100));
  CHECK(result.rejected == 2);
  CHECK(result.requests[0].outcome == Outcome::finished);
  CHECK(result.requests[1].why == "90 prompt and 20 output tokens take 109 positions, the model was made for 100");
  CHECK(result.requests[2].why ==
        "40 prompt and 20 output tokens take 59 positions, the caches of a decode replica have 48");
  CHECK(metrics_of(result, ServiceLevel{10, 10}).attainment == Approx(1.0 / 3));
}

TEST_CASE("a plan that does not fit is refused with the bytes of eq. (16)", "[serving]") {
  FakeCost cost;
  const Workload workload = uniform_workload(1, 10, 11);
  CHECK(error_of(pools(PipelineMode::coupled, 7), workload, cost) == "");  // (10000 - 4000) / (20 * 40) = 7
  CHECK_THAT(error_of(pools(PipelineMode::coupled, 8), workload, cost),
             Catch::Contains("8 requests of 20 positions reserve 6400 bytes of KV") &&
                 Catch::Contains("6000 of its 10000 are left (eq. 16); at most 7 requests fit"));
  cost.overhead = 6001;
  CHECK_THAT(error_of(pools(PipelineMode::bounded, 1), workload, cost),
             Catch::Contains("keeps 4000 bytes of weights and 6001 of overhead (eq. 16), it has 10000"));
  cost.overhead = 0;
  ServingPlan plan = pools(PipelineMode::bounded, 1);
  plan.prefill.micro_batch = 16;
  CHECK_THAT(error_of(plan, workload, cost), Catch::Contains("prefill pool: 16 prompts of 10 tokens make 6400 bytes"));
  plan.prefill.pp = 5;
  CHECK_THAT(error_of(plan, workload, cost), Catch::Contains("prefill pool of 5 stages for a model of 4 layers"));
  CHECK_THAT(error_of(pools(PipelineMode::coupled, 0), workload, cost), Catch::Contains("with 0 requests"));
  CHECK_THAT(error_of(pools(PipelineMode::coupled, 1), uniform_workload(2, 400, 11), cost),
             Catch::StartsWith("none of 2 requests can be served; the first: 400 prompt"));
  CHECK_THAT(error_of(pools(PipelineMode::coupled, 1), {}, cost), Catch::Contains("without requests"));
}

TEST_CASE("a plan says itself in a line", "[serving]") {
  ServingPlan plan;
  plan.prefill = {1, 1, 2, 1};
  plan.buffer.clusters = 2;
  plan.decode = {2, 2, 1, 23};
  CHECK(plan.str() == "prefill 2x1, buffer 2, decode TP2 PP2, 23 a micro-batch");
  CHECK(plan.clusters() == 8);
  plan.buffer = {0, true};
  plan.decode.dp = 2;
  CHECK(plan.str() == "prefill 2x1, buffer slack, decode TP2 PP2 DP2, 23 a micro-batch");
  plan.mode = PipelineMode::coupled;
  CHECK(plan.clusters() == 8);
}

TEST_CASE("percentiles are values that there are, a service level is met or not", "[serving]") {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  const Percentiles p = percentiles(values);
  CHECK(p.p50 == 50);
  CHECK(p.p90 == 90);
  CHECK(p.p99 == 99);
  CHECK(p.worst == 100);
  CHECK(p.mean == Approx(50.5));
  CHECK(percentiles({}).p99 == 0);
  CHECK(percentiles({7}).p50 == 7);

  const ServiceLevel level = ServiceLevel::parse("ttft=2,tpot=0.25");
  RequestRecord request;
  request.output_tokens = 5;
  request.first_token_s = 2;
  request.finish_s = 3;
  CHECK(request.tpot_s() == 0.25);
  CHECK(level.met_by(request));
  request.finish_s = 3.1;
  CHECK_FALSE(level.met_by(request));
  CHECK(ServiceLevel::parse("ttft=2").met_by(request));
  for (const char* text :
       {"", "ttft", "ttft=", "ttft=0", "ttft=-1", "ttft=x", "ttft=1,", "ttft=1,ttft=2", "foo=1", "tpot=inf"})
    CHECK_THROWS_AS(ServiceLevel::parse(text), RuntimeError);
}
