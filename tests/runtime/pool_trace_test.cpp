// SPDX-License-Identifier: Apache-2.0
// What the trace of the pools has is what the run did.
#include "runtime/serving/pool_trace.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/runtime/fake_cost.h"
#include "tests/support/temporary_folder.h"

using namespace mtsim::runtime;
using mtsim::runtime::test::FakeCost;

namespace {

struct Traced {
  ServingResult result;
  nlohmann::json events;
};

Traced traced(mtsim::sim::TraceWindow window) {
  const mtsim::test::TemporaryFolder folder;
  ServingPlan plan;
  plan.prefill = {1, 2, 1, 1};
  plan.buffer.clusters = 1;
  plan.decode = {1, 2, 1, 2};
  FakeCost cost;
  cost.weights = 4'000'000'000;
  cost.position = 40'000'000;
  cost.memory = 10'000'000'000;
  cost.host_request_s = 0.001;
  PoolTrace trace(folder.path("trace.json"), plan, window);
  ServeOptions options;
  options.context = 100;
  options.keep_events = true;
  options.observer = &trace;
  Traced done{serve(plan, uniform_workload(8, 10, 6), cost, options), {}};
  trace.finish();
  std::ifstream file(folder.path("trace.json"));
  done.events = nlohmann::json::parse(file).at("traceEvents");
  return done;
}

std::vector<nlohmann::json> of_kind(const Traced& trace, const char* kind) {
  std::vector<nlohmann::json> result;
  for (const auto& event : trace.events) {
    if (event.at("ph") == kind) result.push_back(event);
  }
  return result;
}

}  // namespace

TEST_CASE("every iteration of every stage is a slice of its track, with its requests", "[serving][trace]") {
  const Traced trace = traced({});
  const auto slices = of_kind(trace, "X");
  REQUIRE(slices.size() == trace.result.events.size());
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const StageEvent& event = trace.result.events[i];
    REQUIRE(slices[i].at("pid") == event.pool + 1);
    REQUIRE(slices[i].at("tid") == event.stage);
    REQUIRE(slices[i].at("ts").get<double>() == Approx(1e6 * event.start_s));
    REQUIRE(slices[i].at("dur").get<double>() == Approx(1e6 * event.time.busy_s()));
    REQUIRE(slices[i].at("args").at("requests").get<std::vector<std::int64_t>>() == event.requests);
  }
  std::set<std::string> names;
  for (const auto& event : of_kind(trace, "M")) {
    if (event.at("args").contains("name")) names.insert(event.at("args").at("name").get<std::string>());
  }
  CHECK(names == std::set<std::string>{"serving", "prefill", "decode", "replica 0 stage 0", "replica 0 stage 1"});
}

TEST_CASE("counters follow what waits and what caches take", "[serving][trace]") {
  const Traced trace = traced({});
  double most_buffer = 0, last_buffer = -1;
  for (const auto& event : of_kind(trace, "C")) {
    if (event.at("name") != "buffer") continue;
    last_buffer = event.at("args").at("MB").get<double>();
    most_buffer = std::max(most_buffer, last_buffer);
  }
  CHECK(most_buffer >= 400);  // a cache of ten positions
  CHECK(most_buffer == Approx(static_cast<double>(trace.result.peak_buffer_bytes) / 1e6).margin(0.005));
  CHECK(last_buffer == 0);
}

TEST_CASE("a window has what meets it, and the counters as they were when it opens", "[serving][trace]") {
  const Traced whole = traced({}), part = traced({100'000'000, 200'000'000});
  const auto slices = of_kind(part, "X"), counters = of_kind(part, "C");
  CHECK(slices.size() > 1);
  CHECK(slices.size() < of_kind(whole, "X").size());
  for (const auto& slice : slices) {
    const double from = slice.at("ts").get<double>();
    CHECK(from < 200'000);
    CHECK(from + slice.at("dur").get<double>() > 100'000);
  }
  REQUIRE(counters.size() >= 6);
  for (std::size_t i = 0; i < 6; ++i) CHECK(counters[i].at("ts").get<double>() == 100'000);
}
