// SPDX-License-Identifier: Apache-2.0
// dma_broadcast: a rendezvous of all cores, then one read of the source in the background.
#include <catch2/catch.hpp>

#include "zone_bench.h"

using namespace mtsim::sim;

namespace {
const Pointer k_source{Space::ddr, -1, 0};
}

TEST_CASE("a broadcast holds every core until the rendezvous after the last one called", "[broadcast]") {
  const LaunchResult result = fresh().launch([](Dsp& dsp) {
    const Pointer buffer = dsp.vector_malloc(8192);
    dsp.scalar_work(100 * dsp.thread_id());
    dsp.dma_broadcast(k_source, row(4000), buffer, row(4000), 0);
    CHECK(dsp.now() == k_launch + k_verb + 300 + k_issue + k_rendezvous);
  });
  for (int core = 0; core < k_cores; ++core) {
    CHECK(of(result.cores[core], CycleClass::broadcast_step) == 300 - 100 * core + k_rendezvous);
    CHECK(of(result.cores[core], CycleClass::dma_issue) == k_issue);
  }
}

TEST_CASE("the bytes of a broadcast move once, in the background, faster by the broadcast factor", "[broadcast]") {
  fresh().launch([](Dsp& dsp) {
    const Pointer buffer = dsp.vector_malloc(8192);
    const int channel = dsp.dma_broadcast(k_source, row(4000), buffer, row(4000), 15);
    const std::int64_t background = cycles_of(dsp, [&] { dsp.dma_wait(channel); });
    CHECK(background == k_start + 4000 / 10 * 9 / 10 + k_wait);
  });
}

TEST_CASE("an exposed broadcast returns when its bytes are there", "[broadcast]") {
  MachineConfig machine = bench_machine();
  machine.dma.broadcast_exposed = 1;
  const LaunchResult result = fresh({}, machine).launch([](Dsp& dsp) {
    const Pointer buffer = dsp.vector_malloc(8192);
    int channel = -1;
    const std::int64_t verb =
        cycles_of(dsp, [&] { channel = dsp.dma_broadcast(k_source, row(4000), buffer, row(4000), 0); });
    CHECK(verb == k_issue + k_rendezvous + k_start + 4000 / 10 * 9 / 10);
    CHECK(cycles_of(dsp, [&] { dsp.dma_wait(channel); }) == k_wait);
  });
  CHECK(result.findings.empty());
  CHECK(of(result.cores[2], CycleClass::broadcast_step) == k_rendezvous + k_start + 360);
}

TEST_CASE("the broadcast factor holds where the ports bind, too", "[broadcast]") {
  const auto background = [](double gsm, double ddr, Pointer source) {
    MachineConfig machine = bench_machine();
    machine.cluster.gsm_bandwidth_gb_s = gsm;
    machine.ddr.bandwidth_gb_s = ddr;
    std::int64_t cycles = 0;
    fresh({}, machine).launch([&](Dsp& dsp) {
      const int channel = dsp.dma_broadcast(source, row(4000), dsp.vector_malloc(8192), row(4000), 0);
      const std::int64_t taken = cycles_of(dsp, [&] { dsp.dma_wait(channel); });
      if (dsp.thread_id() == 0) cycles = taken - k_start - k_wait;
    });
    return cycles;
  };
  const Pointer gsm{Space::gsm, -1, 0};
  CHECK(background(k_gsm, k_ddr, gsm) == 4000 / 20 * 9 / 10);     // port
  CHECK(background(8, k_ddr, gsm) == 4000 / 8 * 9 / 10);          // GSM
  CHECK(background(k_gsm, 10, k_source) == 4000 / 10 * 9 / 10);   // DDR
  CHECK(background(k_gsm, 100, k_source) == 4000 / 20 * 9 / 10);  // port
}

TEST_CASE("two broadcasts of one barrier id may be in flight", "[broadcast]") {
  fresh().launch([](Dsp& dsp) {
    const Pointer buffer = dsp.vector_malloc(16384);
    const int first = dsp.dma_broadcast(k_source, row(8000), buffer, row(8000), 2);
    const int second = dsp.dma_broadcast(k_source, row(8000), buffer + 8192, row(8000), 2);
    CHECK(first != second);
    dsp.dma_wait(first);
    dsp.dma_wait(second);
  });
}

TEST_CASE("every core gets the bytes of the source, in rows of its own", "[broadcast]") {
  Cluster& cluster = fresh();
  const auto data = numbers(1024);
  cluster.write(k_source, data);
  cluster.launch([](Dsp& dsp) {
    if (dsp.thread_id() % 2 == 0) {
      dsp.dma_wait(dsp.dma_broadcast(k_source, row(1024), {Space::am, static_cast<std::int16_t>(dsp.thread_id()), 256},
                                     row(1024), 0));
    } else {
      dsp.dma_wait(dsp.dma_broadcast(k_source, row(1024), {Space::sm, static_cast<std::int16_t>(dsp.thread_id()), 0},
                                     {2, 512, 512}, 0));
    }
  });
  CHECK(read(cluster, {Space::am, 2, 256}, 1024) == data);
  CHECK(read(cluster, {Space::sm, 3, 1024}, 512) == std::vector<std::byte>(data.begin() + 512, data.end()));
}

TEST_CASE("cores that disagree about a broadcast are named", "[broadcast]") {
  Cluster& cluster = fresh();
  const auto message = [&](const auto& source, const auto& bytes, const auto& id) {
    return refusal(
        cluster,
        [&](Dsp& dsp) {
          const int me = dsp.thread_id();
          dsp.scalar_work(10 * me);
          dsp.dma_broadcast(source(me), row(bytes(me)), dsp.vector_malloc(8192), row(bytes(me)), id(me));
        },
        2);
  };
  const auto both = Catch::Contains("core 0 and core 1 disagree");
  const auto same = [](int) { return k_source; };
  const auto k4 = [](int) { return 4096; };
  const auto id0 = [](int) { return 0; };
  CHECK_THAT(message([](int me) { return k_source + me * 256; }, k4, id0), both && Catch::Contains("ddr+0x100"));
  CHECK_THAT(message(
                 same, [](int me) { return 4096 - me; }, id0),
             both && Catch::Contains("4095"));
  CHECK_THAT(message(same, k4, [](int me) { return me; }), both && Catch::Contains("barrier id: 0 and 1"));
}

TEST_CASE("a broadcast writes only into the caller's SM or AM and has barrier ids 0 to 15", "[broadcast]") {
  Cluster& cluster = fresh();
  const auto to = [&](Pointer destination, int id) {
    return refusal(cluster, [&](Dsp& dsp) { dsp.dma_broadcast(k_source, row(64), destination, row(64), id); });
  };
  CHECK_THAT(to({Space::gsm, -1, 0}, 0), Catch::Contains("gsm+0x0") && Catch::Contains("SM or AM"));
  CHECK_THAT(to({Space::am, 1, 0}, 0), Catch::Contains("am[1]"));
  CHECK_THAT(to({Space::am, 0, 0}, 16), Catch::Contains("barrier id 16"));
}
