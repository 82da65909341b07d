// SPDX-License-Identifier: Apache-2.0
// Logical channels: which one a transfer gets, what is refused and what is only noticed.
#include <catch2/catch.hpp>

#include "zone_bench.h"

using namespace mtsim::sim;

namespace {

const Pointer k_ddr_start{Space::ddr, -1, 0};

std::string refused_move(Pointer source, Rows source_rows, Pointer destination, Rows destination_rows) {
  return refusal(fresh(), [&](Dsp& dsp) { dsp.dma_p2p(source, source_rows, destination, destination_rows); });
}

}  // namespace

TEST_CASE("a transfer takes the lowest channel that is known to be free", "[channel]") {
  fresh().launch(
      [](Dsp& dsp) {
        const Pointer buffer = dsp.vector_malloc(4096);
        const auto issue = [&] { return dsp.dma_p2p(k_ddr_start, row(64), buffer, row(64)); };
        CHECK(issue() == 0);
        CHECK(issue() == 1);
        CHECK(issue() == 2);
        dsp.dma_wait(1);
        CHECK(issue() == 1);
        CHECK(issue() == 3);
        dsp.scalar_work(100'000);
        CHECK(issue() == 4);  // complete is not enough: the program must know
        dsp.scalar_work(100'000);
        CHECK(dsp.dma_query(2));
        CHECK(issue() == 2);
        for (int channel = 0; channel < 5; ++channel) dsp.dma_wait(channel);
      },
      1);
}

// A program that polls learns from the query what a wait would have told it, so it owes no wait any more.
TEST_CASE("a query tells whether the transfer is done, and then stands for the wait", "[channel]") {
  const LaunchResult result = fresh().launch(
      [](Dsp& dsp) {
        CHECK(dsp.dma_query(0));
        const int channel = dsp.dma_p2p(k_ddr_start, row(4000), dsp.vector_malloc(4096), row(4000));
        dsp.scalar_work(k_start + 400 - k_verb - 1);
        CHECK_FALSE(dsp.dma_query(channel));
        dsp.scalar_work(1);
        CHECK(dsp.dma_query(channel));
        CHECK(dsp.dma_p2p(k_ddr_start, row(64), {Space::am, 0, 0}, row(64)) == channel);
        while (!dsp.dma_query(channel)) dsp.scalar_work(10);
      },
      1);
  CHECK(result.findings.empty());
}

TEST_CASE("a wait for what is done, or for an idle channel, costs its fixed cycles", "[channel]") {
  const LaunchResult result = fresh().launch(
      [](Dsp& dsp) {
        const int channel = dsp.dma_p2p(k_ddr_start, row(64), dsp.vector_malloc(4096), row(64));
        dsp.scalar_work(100'000);
        CHECK(cycles_of(dsp, [&] { dsp.dma_wait(channel); }) == k_wait);
        CHECK(cycles_of(dsp, [&] { dsp.dma_wait(9); }) == k_wait);
      },
      1);
  CHECK(of(result.cores[0], CycleClass::dma_wait) == 2 * k_wait);
  CHECK(result.findings.empty());
}

TEST_CASE("a transfer beyond the last channel is refused and tells what is outstanding", "[channel]") {
  const std::string message = refusal(fresh(), [](Dsp& dsp) {
    const Pointer buffer = dsp.vector_malloc(4096);
    for (int i = 0; i < 17; ++i) dsp.dma_p2p(k_ddr_start + i * 256, row(64), buffer, row(64));
  });
  CHECK_THAT(message, Catch::Contains("all 16 channels are taken") &&
                          Catch::Contains("channel 15: ddr+0xf00 -> am[0]+0x0, 64 bytes") &&
                          Catch::Contains("core 0, cycle"));
}

TEST_CASE("reusing a busy channel is a finding and blocks until it is free", "[channel][finding]") {
  const LaunchResult result = fresh().launch(
      [](Dsp& dsp) {
        const Pointer buffer = dsp.vector_malloc(16384);
        dsp.raw_dma_p2p(k_ddr_start, row(4000), buffer, row(4000), 1, 5);
        const std::int64_t before = dsp.now();
        dsp.raw_dma_p2p(k_ddr_start, row(4000), buffer + 8192, row(4000), 1, 5);
        CHECK(dsp.now() - before == k_start + 400 + k_issue);
        dsp.dma_wait(5);
      },
      1);
  REQUIRE(result.findings.size() == 1);
  CHECK(result.findings[0].kind == "channel-reused");
  CHECK(result.findings[0].core == 0);
  CHECK(result.findings[0].cycle == k_launch + k_verb + k_issue);
  CHECK_THAT(result.findings[0].message,
             Catch::Contains("channel 5") && Catch::Contains("am[0]+0x2000") && Catch::Contains("am[0]+0x0"));
  CHECK(of(result.cores[0], CycleClass::dma_wait) == (k_start + 400) + (k_start + 400) + k_wait);
}

TEST_CASE("reusing a channel that is complete but was never waited for is a finding", "[channel][finding]") {
  const LaunchResult result = fresh().launch(
      [](Dsp& dsp) {
        const Pointer buffer = dsp.vector_malloc(16384);
        dsp.raw_dma_p2p(k_ddr_start, row(4000), buffer, row(4000), 1, 5);
        dsp.scalar_work(10'000);
        const std::int64_t before = dsp.now();
        dsp.raw_dma_p2p(k_ddr_start, row(4000), buffer + 8192, row(4000), 1, 5);
        CHECK(dsp.now() - before == k_issue);
        dsp.dma_wait(5);
        dsp.raw_dma_p2p(k_ddr_start, row(4000), buffer, row(4000), 1, 5);
        dsp.scalar_work(10'000);
        CHECK(dsp.dma_query(5));
        dsp.raw_dma_p2p(k_ddr_start, row(4000), buffer, row(4000), 1, 5);
        dsp.dma_wait(5);
      },
      1);
  REQUIRE(result.findings.size() == 1);
  CHECK(result.findings[0].kind == "channel-reused");
  CHECK_THAT(result.findings[0].message, Catch::Contains("channel 5") && Catch::Contains("am[0]+0x2000") &&
                                             Catch::Contains("am[0]+0x0") && Catch::Contains("read too early"));
}

TEST_CASE("a wait never made is a finding at the program's end", "[channel][finding]") {
  const LaunchResult result = fresh().launch(
      [](Dsp& dsp) {
        const Pointer buffer = dsp.vector_malloc(4096);
        dsp.dma_p2p(k_ddr_start, row(64), buffer, row(64));
        dsp.dma_wait(dsp.dma_p2p(k_ddr_start, row(64), buffer + 64, row(64)));
      },
      2);
  REQUIRE(result.findings.size() == 1);
  CHECK(result.findings[0].kind == "wait-never-made");
  CHECK(result.findings[0].core == 0);
  CHECK(result.findings[0].count == 2);
  CHECK_THAT(result.findings[0].message, Catch::Contains("channel 0") && Catch::Contains("am[0]+0x0 (64 bytes") &&
                                             Catch::Contains("2 times on 2 cores"));
}

TEST_CASE("impossible transfers are refused with the bytes", "[channel]") {
  const Pointer am{Space::am, 0, 0}, sm{Space::sm, 0, 0}, gsm{Space::gsm, -1, 0};
  CHECK_THAT(refused_move(k_ddr_start, {4, 100, 0}, am, row(300)),
             Catch::Contains("400 bytes") && Catch::Contains("has 300"));
  CHECK_THAT(refused_move(am, row(64), sm, row(64)), Catch::Contains("go through GSM"));
  CHECK_THAT(refused_move(sm, row(64), am, row(64)), Catch::Contains("go through GSM"));
  CHECK_THAT(refused_move(k_ddr_start, row(65537), sm, row(65537)),
             Catch::Contains("65536 bytes") && Catch::Contains("1 bytes beyond"));
  CHECK_THAT(refused_move(gsm, {3, 1 << 20, 4 << 20}, am, row(3 << 20)), Catch::Contains("source gsm+0x0"));
  CHECK_THAT(refused_move(k_ddr_start, row(0), am, row(0)), Catch::Contains("nothing to move"));
  CHECK_THAT(refused_move(k_ddr_start, row(64), {Space::am, 4, 0}, row(64)), Catch::Contains("no core 4"));
  CHECK_THAT(refused_move(k_ddr_start, {INT64_MAX, INT64_MAX, 0}, am, row(64)), Catch::Contains("does not fit"));
  CHECK_THAT(refused_move(k_ddr_start, {2, 32, -33}, am, row(64)), Catch::Contains("runs backwards"));
  CHECK_THAT(refused_move(k_ddr_start, {2, 8, INT64_MIN}, am, row(16)), Catch::Contains("runs backwards"));
  CHECK_THAT(refused_move(k_ddr_start, {2, 8, INT64_MAX}, am, row(16)), Catch::Contains("does not fit"));
  CHECK_THAT(refused_move(k_ddr_start, {1, 8, INT64_MAX}, am, row(8)), Catch::Contains("does not fit"));
  CHECK_THAT(refused_move(k_ddr_start, row(16), am, {2, 8, INT64_MAX}), Catch::Contains("does not fit"));
  CHECK_THAT(refused_move(k_ddr_start, {INT64_MAX, 8, -8}, am, row(16)), Catch::Contains("does not fit"));
  CHECK_THAT(
      refused_move(k_ddr_start, {std::int64_t{1} << 34, std::int64_t{1} << 34, -(std::int64_t{1} << 34)}, am, row(16)),
      Catch::Contains("does not fit"));
}

TEST_CASE("the last byte of a memory can be moved, and SM of one core to AM of another", "[channel]") {
  fresh().launch(
      [](Dsp& dsp) {
        dsp.dma_wait(dsp.dma_p2p({Space::gsm, -1, (6 << 20) - 64}, row(64), {Space::sm, 0, 65536 - 64}, row(64)));
        dsp.dma_wait(dsp.dma_p2p({Space::sm, 0, 0}, row(64), {Space::am, 1, 0}, row(64)));
      },
      1);
}

TEST_CASE("a channel or priority that does not exist is refused", "[channel]") {
  Cluster& cluster = fresh();
  CHECK_THAT(refusal(cluster, [](Dsp& dsp) { dsp.dma_wait(16); }), Catch::Contains("channel 16"));
  CHECK_THAT(refusal(cluster, [](Dsp& dsp) { dsp.dma_query(-1); }), Catch::Contains("channel -1"));
  CHECK_THAT(refusal(cluster, [](Dsp& dsp) { dsp.set_priority(-1); }), Catch::Contains("priority -1"));
}
