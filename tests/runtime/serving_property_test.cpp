// SPDX-License-Identifier: Apache-2.0
// What holds for every workload on every plan.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <random>
#include <tuple>

#include "runtime/error.h"
#include "runtime/serving/serve.h"
#include "tests/runtime/fake_cost.h"

using namespace mtsim::runtime;
using mtsim::runtime::test::FakeCost;

namespace {

struct Case {
  ServingPlan plan;
  Workload workload;
  FakeCost cost;
  ServeOptions options;
};

/// Plans that fit or hardly fit, links from fast to slower than a layer, requests that are too long among others.
Case random_case(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto from = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(high - low + 1));
  };
  Case its;
  its.plan.mode = static_cast<PipelineMode>(seed % 3);
  its.plan.coupled_batch = from(0, 1) == 0 ? CoupledBatch::together : CoupledBatch::continuous;
  its.plan.prefill = {from(1, 2), from(1, 3), from(1, 3), from(1, 3)};
  its.plan.decode = {from(1, 2), from(1, 3), from(1, 2), from(1, 4)};
  its.plan.buffer = {from(0, 2), from(0, 1) == 0};
  its.plan.kv.mode = from(0, 1) == 0 ? KvMode::paged : KvMode::reserve;
  its.plan.kv.block = its.plan.kv.mode == KvMode::paged ? 4 * from(1, 3) : 0;
  its.cost.model_layers = from(3, 7);
  its.cost.weights = its.cost.model_layers * 900;
  its.cost.position = its.cost.model_layers * 4;
  its.cost.overhead = from(0, 200);
  const Pool &prefill = its.plan.prefill, &decode = its.plan.decode;
  its.cost.memory =
      std::max(its.cost.weight_bytes(prefill.tp, prefill.pp), its.cost.weight_bytes(decode.tp, decode.pp)) +
      from(0, 250) * its.cost.kv_bytes_per_token(decode.tp, decode.pp);
  its.cost.latency_s = from(0, 3) * 0.004;
  its.cost.byte_s = from(0, 2) * 1e-4;
  its.cost.far_byte_s = 2 * its.cost.byte_s;
  its.cost.host_request_s = from(0, 1) * 0.003;
  its.cost.layer_s = static_cast<double>(from(1, 4)) * 0.005;
  its.cost.score_s = from(0, 1) * 1e-5;
  its.options.context = from(30, 70);
  its.options.keep_events = true;
  const std::int64_t requests = from(1, 30), spread = from(0, 2) * 100;
  double at = 0;
  for (std::int64_t id = 0; id < requests; ++id) {
    its.workload.push_back({id, at, from(1, 40), from(1, 30)});
    at += 0.001 * static_cast<double>(from(0, spread));
  }
  return its;
}

/// How many requests were preempted in all cases, and so on: that the cases are what they are meant to be.
struct Seen {
  std::int64_t served = 0, refused = 0, rejected = 0, preempted = 0, paused = 0, buffered = 0;
};

void check_requests(const Case& its, const ServingResult& result) {
  REQUIRE(result.requests.size() == its.workload.size());
  std::int64_t tokens = 0, rejected = 0, preemptions = 0;
  double last = 0;
  for (const RequestRecord& request : result.requests) {
    CAPTURE(request.id);
    preemptions += request.preemptions;
    if (request.outcome == Outcome::rejected) {
      ++rejected;
      REQUIRE_FALSE(request.why.empty());
      REQUIRE(request.output_tokens == 0);
      continue;
    }
    const Request& asked = its.workload[static_cast<std::size_t>(request.id)];
    REQUIRE(request.output_tokens == asked.output_tokens);
    REQUIRE(request.arrival_s == asked.arrival_s);
    REQUIRE(request.prefill_start_s >= request.arrival_s);
    REQUIRE(request.first_token_s > request.prefill_start_s);
    REQUIRE(request.finish_s >= request.first_token_s);
    if (asked.output_tokens > 1) {
      REQUIRE(request.decode_start_s >= request.first_token_s);
      REQUIRE(request.finish_s > request.decode_start_s);
    }
    tokens += request.output_tokens;
    last = std::max(last, request.finish_s);
  }
  REQUIRE(rejected == result.rejected);
  REQUIRE(preemptions == result.preemptions);
  REQUIRE(last == result.makespan_s);
  std::int64_t emitted = 0;
  for (const Emission& emission : result.emissions) emitted += emission.tokens;
  REQUIRE(emitted == tokens);
}

void check_memory(const Case& its, const ServingResult& result) {
  const Pool& pool = its.plan.decode;
  const std::int64_t position = its.cost.kv_bytes_per_token(pool.tp, pool.pp);
  const std::int64_t room = its.cost.memory - its.cost.overhead - its.cost.weight_bytes(pool.tp, pool.pp);
  const std::int64_t caches = pool.dp * (room / position) * its.cost.position;  // of the whole model
  for (const Occupancy& now : result.occupancy) {
    if (its.plan.mode == PipelineMode::bounded) REQUIRE(now.buffer_bytes <= result.buffer_capacity_bytes);
    REQUIRE(now.buffer_bytes >= 0);
    REQUIRE(now.kv_bytes - now.buffer_bytes <= caches);
    REQUIRE(now.decoding <= pool.batch());
    REQUIRE(std::min({now.queued, now.prefilling, now.buffered, now.decoding}) >= 0);
  }
  const Occupancy& end = result.occupancy.back();
  REQUIRE(end == Occupancy{end.at_s, 0, 0, 0, 0, 0, 0});
}

void check_stages(const Case& its, const ServingResult& result) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, double> free_at;
  std::map<std::int64_t, std::int64_t> prefilled;  // tokens by request
  std::vector<double> busy(result.pools.size());
  for (const StageEvent& event : result.events) {
    double& free = free_at[{event.pool, event.replica, event.stage}];
    REQUIRE(event.start_s >= free);
    free = event.start_s + event.time.busy_s();
    busy[static_cast<std::size_t>(event.pool)] += event.time.busy_s();
    const bool is_decode = event.batch.front().context > 0;
    const Pool& pool = is_decode ? its.plan.decode : its.plan.prefill;
    REQUIRE(std::ssize(event.requests) <= pool.micro_batch);
    REQUIRE(event.requests.size() == event.batch.size());
    for (std::size_t i = 0; i < event.batch.size(); ++i) {
      const std::int64_t request = event.requests[i];
      if (event.stage > 0) continue;
      if (!is_decode) {
        REQUIRE(event.batch[i].context == 0);
        REQUIRE(event.batch[i].tokens > prefilled[request]);  // again only with what was generated since
        prefilled[request] = event.batch[i].tokens;
      } else {
        REQUIRE(event.batch[i].tokens == 1);
        REQUIRE(event.batch[i].context >= prefilled[request]);
      }
    }
  }
  for (std::size_t i = 0; i < busy.size(); ++i) {
    REQUIRE(result.pools[i].busy_s == Approx(busy[i]));
    REQUIRE(busy[i] <= result.pools[i].available_s * (1 + 1e-9));
  }
}

}  // namespace

TEST_CASE("whatever comes: each request ends once, no cluster is above its memory, the buffer within its bound",
          "[serving]") {
  Seen seen;
  for (std::uint32_t seed = 1; seed <= 1000; ++seed) {
    CAPTURE(seed);
    Case its = random_case(seed);
    CAPTURE(its.plan.str());
    ServingResult result;
    try {
      result = serve(its.plan, its.workload, its.cost, its.options);
    } catch (const RuntimeError& error) {
      ++seen.refused;
      REQUIRE(std::string(error.what()).find_first_of("0123456789") != std::string::npos);
      continue;
    }
    check_requests(its, result);
    check_memory(its, result);
    check_stages(its, result);
    ++seen.served;
    seen.rejected += result.rejected;
    seen.preempted += result.preemptions;
    seen.paused += result.pools.front().paused_s > 0 ? 1 : 0;
    seen.buffered += result.peak_buffer_bytes > 0 ? 1 : 0;
  }
  CHECK(seen.served > 400);
  CHECK(seen.refused > 50);
  CHECK(seen.rejected > 500);
  CHECK(seen.preempted > 50);
  CHECK(seen.paused > 20);
  CHECK(seen.buffered > 100);
}

TEST_CASE("a run is the same when it is run again", "[serving]") {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Case its = random_case(seed);
    const auto run = [&]() -> std::optional<ServingResult> {
      try {
        return serve(its.plan, its.workload, its.cost, its.options);
      } catch (const RuntimeError&) {
        return std::nullopt;
      }
    };
    const auto first = run(), second = run();
    REQUIRE(first.has_value() == second.has_value());
    if (!first) continue;
    REQUIRE(first->makespan_s == second->makespan_s);
    REQUIRE(first->occupancy == second->occupancy);
    REQUIRE(first->events.size() == second->events.size());
    for (std::size_t i = 0; i < first->events.size(); ++i) {
      REQUIRE(first->events[i].start_s == second->events[i].start_s);
      REQUIRE(first->events[i].requests == second->events[i].requests);
    }
  }
}
