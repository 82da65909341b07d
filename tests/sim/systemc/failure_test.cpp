// SPDX-License-Identifier: Apache-2.0
// Faults, errors and deadlocks end a launch, release every core and leave the cluster usable.
#include <catch2/catch.hpp>

#include <stdexcept>

#include "zone_bench.h"

using namespace mtsim::sim;

namespace {

const std::string k_bad_load = " SMOVI 0xC0000, R1\n SMVAGA.M1 R1, AR0\n SNOP 1\n VLDW *AR0, VR0\n SBR R63\n SNOP 6\n";

/// All verbs still take the time they should.
void check_usable(Cluster& cluster) {
  cluster.reset();
  std::int64_t ends = 0;
  const LaunchResult result = cluster.launch([&](Dsp& dsp) {
    const Pointer buffer = dsp.vector_malloc(4096);
    dsp.dma_wait(dsp.dma_broadcast({Space::ddr, -1, 0}, row(1000), buffer, row(1000), 0));
    dsp.group_barrier(0);
    ++ends;
  });
  CHECK(ends == k_cores);
  CHECK(result.cycles == k_launch + k_verb + k_issue + k_rendezvous + k_start + 90 + k_wait + k_barrier);
  CHECK(result.findings.empty());
}

struct CountsUnwinding {
  int& count;
  ~CountsUnwinding() { ++count; }
};

}  // namespace

TEST_CASE("a fault on one core stops the others wherever they wait", "[failure][fault]") {
  Cluster& cluster = fresh();
  const Kernel bad = load(cluster, k_bad_load);
  int unwound = 0, passed = 0;
  const LaunchResult result = cluster.launch([&](Dsp& dsp) {
    CountsUnwinding guard{unwound};
    const Pointer buffer = dsp.vector_malloc(1 << 19);
    switch (dsp.thread_id()) {
      case 0: dsp.group_barrier(0); break;
      case 1: dsp.dma_broadcast({Space::ddr, -1, 0}, row(64), buffer, row(64), 0); break;
      case 2: dsp.dma_wait(dsp.dma_p2p({Space::ddr, -1, 0}, row(1 << 19), buffer, row(1 << 19))); break;
      case 3:
        dsp.scalar_work(500);
        dsp.call(bad, {});
        break;
    }
    ++passed;
  });
  CHECK(passed == 0);
  CHECK(unwound == k_cores);
  REQUIRE(result.fault);
  CHECK(result.fault->kind == FaultKind::address);
  CHECK(result.fault->core == 3);
  CHECK(result.fault->pc == 3);
  CHECK(result.cycles == k_launch + k_verb + 500 + k_call + 4);
  for (const CoreReport& core : result.cores) CHECK(core.total() == result.cycles);
  check_usable(cluster);
}

TEST_CASE("the earliest failure in simulated time is the one reported", "[failure]") {
  Cluster& cluster = fresh();
  const std::string message = refusal(
      cluster,
      [](Dsp& dsp) {
        dsp.scalar_work(1000 - 100 * dsp.thread_id());
        dsp.dma_wait(99);
      },
      4);
  CHECK_THAT(message, Catch::Contains("core 3, cycle 1700"));
  check_usable(cluster);
}

TEST_CASE("an exception of the DSP program reaches the caller of launch", "[failure]") {
  Cluster& cluster = fresh();
  CHECK_THROWS_WITH(cluster.launch([](Dsp& dsp) {
    dsp.group_barrier(0);
    if (dsp.thread_id() == 2) throw std::runtime_error("tile too large");
    dsp.group_barrier(1);
  }),
                    "tile too large");
  check_usable(cluster);
}

TEST_CASE("a program that catches everything is still stopped", "[failure]") {
  Cluster& cluster = fresh();
  const std::string message = refusal(
      cluster,
      [](Dsp& dsp) {
        if (dsp.thread_id() == 1) dsp.dma_wait(99);
        try {
          dsp.group_barrier(0);
        } catch (const std::exception&) {
          FAIL("not for programs");
        }
      },
      2);
  CHECK_THAT(message, Catch::Contains("channel 99"));
  check_usable(cluster);
}

TEST_CASE("a deadlock tells who waits where", "[failure][deadlock]") {
  Cluster& cluster = fresh();
  const std::string message = refusal(
      cluster,
      [](Dsp& dsp) {
        const Pointer buffer = dsp.vector_malloc(64);
        switch (dsp.thread_id()) {
          case 0: return dsp.group_barrier(3);
          case 1: return dsp.group_barrier(4);
          case 2: dsp.dma_broadcast({Space::ddr, -1, 0}, row(64), buffer, row(64), 7); return;
          default: return;
        }
      },
      4);
  CHECK_THAT(message, Catch::Contains("deadlock") &&
                          Catch::Contains("core 0 waits in group_barrier 3 since cycle 1005") &&
                          Catch::Contains("core 1 waits in group_barrier 4") &&
                          Catch::Contains("core 2 waits in dma_broadcast with barrier id 7 since cycle 1045") &&
                          !Catch::Contains("core 3"));
  check_usable(cluster);
}

TEST_CASE("a launch cannot start another, reset the cluster, or ask for more cores than there are", "[failure]") {
  Cluster& cluster = fresh();
  CHECK_THAT(refusal(cluster, [&](Dsp&) { cluster.launch([](Dsp&) {}); }), Catch::Contains("cannot start another"));
  CHECK_THAT(refusal(cluster, [&](Dsp&) { cluster.reset(); }), Catch::Contains("a launch is running"));
  CHECK_THROWS_WITH(cluster.launch([](Dsp&) {}, 5), Catch::Contains("5 cores asked, the cluster has 4"));
  check_usable(cluster);
}

TEST_CASE("a launch that takes longer than its limit is given up, one that takes as long is not", "[failure][cut]") {
  const auto program = [](Dsp& dsp) {
    const Pointer buffer = dsp.vector_malloc(4096);
    for (int i = 0; i < 8; ++i) dsp.dma_wait(dsp.dma_p2p({Space::ddr, -1, 0}, row(1000), buffer, row(1000)));
  };
  const std::int64_t cycles = fresh().launch(program).cycles;
  for (const std::int64_t limit : {cycles, cycles + 1, std::int64_t{1'000'000}}) {
    CHECK(fresh({.max_launch_cycles = limit}).launch(program).cycles == cycles);
  }
  for (const std::int64_t limit : {std::int64_t{1}, cycles / 2, cycles - 1}) {
    CAPTURE(limit);
    Cluster& cluster = fresh({.max_launch_cycles = limit});
    CHECK_THROWS_AS(cluster.launch(program), LaunchCut);
    cluster.reset(bench_machine(), {});
    check_usable(cluster);
  }
}
