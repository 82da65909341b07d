// SPDX-License-Identifier: Apache-2.0
// Workloads, made up and read from traces.
#include <catch2/catch.hpp>
#include <cmath>

#include "runtime/error.h"
#include "runtime/serving/request.h"
#include "tests/support/third_party.h"

using namespace mtsim::runtime;

namespace {

std::string error_of(const std::string& text, const TraceOptions& options = {}) {
  try {
    parse_trace(text, "t.csv", options);
  } catch (const RuntimeError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a uniform workload is there at once", "[workload]") {
  const Workload workload = uniform_workload(3, 512, 128);
  REQUIRE(workload.size() == 3);
  CHECK(workload[2].id == 2);
  CHECK(workload[2].arrival_s == 0);
  CHECK(workload[2].prompt_tokens == 512);
  CHECK(workload[2].output_tokens == 128);
  CHECK_THROWS_AS(uniform_workload(0, 1, 1), RuntimeError);
}

TEST_CASE("Poisson arrivals have the rate they are asked for, and the same times for a seed", "[workload]") {
  const Workload workload = poisson_workload(20000, 4, 10, 5, 1), again = poisson_workload(20000, 4, 10, 5, 1);
  CHECK(workload.back().arrival_s == again.back().arrival_s);
  CHECK(workload.back().arrival_s != poisson_workload(20000, 4, 10, 5, 2).back().arrival_s);
  // 2469588189546311528 is the first number of MT19937-64 with seed 1, 0.133877 of its range.
  CHECK(workload.front().arrival_s == Approx(-std::log(2469588189546311528 / 0x1p64) / 4).epsilon(1e-12));
  double sum = 0, squares = 0, last = 0;
  for (const Request& request : workload) {
    REQUIRE(request.arrival_s > last);
    const double gap = request.arrival_s - last;
    sum += gap;
    squares += gap * gap;
    last = request.arrival_s;
  }
  const double mean = sum / 20000, deviation = std::sqrt(squares / 20000 - mean * mean);
  CHECK(mean == Approx(0.25).epsilon(0.03));
  CHECK(deviation == Approx(0.25).epsilon(0.03));  // exponential: as large as the mean
  CHECK_THROWS_AS(poisson_workload(1, 0, 1, 1, 1), RuntimeError);
}

TEST_CASE("a trace is read by the names of its columns", "[workload]") {
  const Workload workload = parse_trace(
      "\xEF\xBB\xBFmodel, Output Tokens ,\"TIMESTAMP\",Prompt_tokens\r\n"
      "x,3,2023-11-16 23:59:59.9799600,100\r\n"
      "\r\n"
      "\"a, b\",4,2023-11-17T00:00:00.4799600Z,200",
      "t.csv", {});
  REQUIRE(workload.size() == 2);
  CHECK(workload[0].arrival_s == 0);
  CHECK(workload[0].output_tokens == 3);
  CHECK(workload[1].arrival_s == Approx(0.5).margin(1e-9));
  CHECK(workload[1].prompt_tokens == 200);
  CHECK(workload[1].id == 1);
}

TEST_CASE("a trace may be cut, sped up, and out of order", "[workload]") {
  const std::string text = "time,prompt,output\n10,1,1\n14,2,1\n12,3,1\n20,4,1\n";
  const Workload workload = parse_trace(text, "t.csv", {1, 3, 2});
  REQUIRE(workload.size() == 3);
  CHECK(workload[0].prompt_tokens == 3);
  CHECK(workload[0].arrival_s == 0);
  CHECK(workload[1].prompt_tokens == 2);
  CHECK(workload[1].arrival_s == 1);
  CHECK(workload[2].arrival_s == 4);
}

TEST_CASE("what is wrong with a trace is said with its place", "[workload]") {
  const std::string header = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  CHECK(error_of("") == "t.csv:1:1: the trace is empty: a header that names its columns comes first");
  CHECK(error_of("TIMESTAMP,ContextTokens,Foo\n1,2,3\n") ==
        "t.csv:1:1: the header names no column for output tokens (GeneratedTokens); it has 'TIMESTAMP', "
        "'ContextTokens', 'Foo'");
  CHECK(error_of("time,prompt,output,Input Tokens\n") ==
        "t.csv:1:20: a second column for prompt tokens (ContextTokens)");
  CHECK(error_of(header + "1,2,3\n1,x,3\n") == "t.csv:3:3: 'x' is no number of prompt tokens from 1 to 1000000000");
  CHECK(error_of(header + "1,2,0\n") == "t.csv:2:5: '0' is no number of output tokens from 1 to 1000000000");
  CHECK(error_of(header + "1,2\n") == "t.csv:2:1: 2 fields, the header names 3");
  CHECK(error_of(header + "2023-02-30 00:00:00,2,3\n") ==
        "t.csv:2:1: '2023-02-30 00:00:00' is no time: seconds, or 2023-11-16 18:17:03.97");
  CHECK(error_of(header + "\"1,2,3\n") == "t.csv:2:1: a quoted field does not end");
  CHECK(error_of(header + "\"1\"x,2,3\n") == "t.csv:2:4: text behind the quote that ends a field");
  CHECK(error_of(header) == "trace t.csv: it has no row 0");
  CHECK(error_of(header + "1,2,3\n", {5, -1, 1}) == "trace t.csv: it has no row 5");
  CHECK(error_of(header + "1,2,3\n", {0, 0, 1}).starts_with("trace t.csv: rows from 0, 0 of them"));
  for (const char* time : {"-1", "nan", "1e300", "2023-11-16", "2023-11-16 24:00:00", "2023-11-16 18:17", ""})
    CHECK(error_of(header + time + ",2,3\n").starts_with("t.csv:2:1: "));
  CHECK_THROWS_WITH(trace_workload("/nowhere/t.csv", {}), "trace /nowhere/t.csv: it cannot be opened");
}

TEST_CASE("the Azure trace has its requests, in the second they came", "[workload][data]") {
  const auto path = mtsim::test::test_data("traces/azure_llm_code_2023.csv");
  if (!path) return;
  const Workload workload = trace_workload(*path, {});
  REQUIRE(workload.size() == 8819);
  CHECK(workload[0].prompt_tokens == 4808);
  CHECK(workload[1].arrival_s == Approx(0.052).margin(1e-7));
  CHECK(workload[2].output_tokens == 27);
  CHECK(workload.back().arrival_s > 3000);
}
