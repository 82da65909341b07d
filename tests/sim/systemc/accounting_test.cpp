// SPDX-License-Identifier: Apache-2.0
// Every cycle of a launch has a class, on every core.
#include <catch2/catch.hpp>

#include "zone_bench.h"

using namespace mtsim::sim;

TEST_CASE("an empty program takes the launch cost", "[accounting]") {
  const LaunchResult result = fresh().launch([](Dsp& dsp) { CHECK(dsp.now() == k_launch); });
  CHECK(result.cycles == k_launch);
  REQUIRE(result.cores.size() == k_cores);
  for (const CoreReport& core : result.cores) CHECK(of(core, CycleClass::launch) == k_launch);
}

TEST_CASE("scalar work, loops and verbs are scalar_assumed; asking who and when is free", "[accounting]") {
  const LaunchResult result = fresh().launch(
      [](Dsp& dsp) {
        dsp.scalar_work(100);
        for (int i = 0; i < 3; ++i) dsp.loop_iteration();
        dsp.vector_malloc(1);
        dsp.scalar_malloc(1);
        dsp.dma_query(0);
        CHECK(dsp.group_size() == 1);
        CHECK(dsp.thread_id() == 0);
        CHECK(dsp.machine().name == "bench");
        CHECK(dsp.now() == k_launch + 100 + 3 * 10 + 3 * k_verb);
      },
      1);
  CHECK(of(result.cores[0], CycleClass::scalar_assumed) == 100 + 3 * 10 + 3 * k_verb);
}

TEST_CASE("a core that ends early idles until the last one ends", "[accounting]") {
  const LaunchResult result = fresh().launch([](Dsp& dsp) { dsp.scalar_work(100 * dsp.thread_id()); });
  CHECK(result.cycles == k_launch + 300);
  for (int core = 0; core < k_cores; ++core) CHECK(of(result.cores[core], CycleClass::idle_tail) == 300 - 100 * core);
}

TEST_CASE("a barrier ends a fixed time after the last core arrives", "[accounting][barrier]") {
  const LaunchResult result = fresh().launch([](Dsp& dsp) {
    for (int id = 0; id < 16; ++id) {
      dsp.scalar_work(100 * (id % 2 == 0 ? dsp.thread_id() : dsp.group_size() - 1 - dsp.thread_id()));
      dsp.group_barrier(id);
      CHECK(dsp.now() == k_launch + (id + 1) * (300 + k_barrier));
    }
  });
  for (const CoreReport& core : result.cores) CHECK(of(core, CycleClass::barrier) == 16 * (k_barrier + 300) - 8 * 300);
}

TEST_CASE("only the cores of the launch take part in a barrier", "[accounting][barrier]") {
  const LaunchResult result = fresh().launch([](Dsp& dsp) { dsp.group_barrier(0); }, 2);
  CHECK(result.cores.size() == 2);
  CHECK(result.cycles == k_launch + k_barrier);
}

TEST_CASE("the classes of a program with everything sum to its cycles on every core", "[accounting]") {
  Cluster& cluster = fresh();
  const Kernel copy = load(cluster, k_copy_kernel);
  const LaunchResult result = cluster.launch([&](Dsp& dsp) {
    const Pointer buffer = dsp.vector_malloc(8192), word = dsp.scalar_malloc(8);
    dsp.dma_wait(dsp.dma_broadcast({Space::ddr, -1, 0}, row(4096), buffer, row(4096), 3));
    for (int i = 0; i <= dsp.thread_id(); ++i) dsp.call(copy, {buffer, buffer + 4096, word, 10});
    dsp.dma_wait(dsp.dma_p2p(buffer, row(4096), {Space::gsm, -1, 0}, row(4096)));
    dsp.group_barrier(1);
  });
  for (const CoreReport& core : result.cores) {
    CHECK(core.total() == result.cycles);
    for (int c = 0; c < k_cycle_classes; ++c) CHECK(core.cycles[c] >= 0);
  }
  CHECK(of(result.cores[2], CycleClass::busy) == 3 * copy_cycles(10));
  CHECK(of(result.cores[2], CycleClass::call) == 3 * k_call);
  CHECK(result.cores[2].kernel_calls == 3);
  CHECK(of(result.cores[2], CycleClass::dma_issue) == 2 * k_issue);
}

TEST_CASE("bytes are counted by path, and a broadcast reads its source once", "[accounting]") {
  const LaunchResult result = fresh().launch([&](Dsp& dsp) {
    const Pointer buffer = dsp.vector_malloc(8192);
    dsp.dma_wait(dsp.dma_broadcast({Space::ddr, -1, 0}, row(4096), buffer, row(4096), 0));
    dsp.dma_wait(dsp.dma_p2p(buffer, row(100), {Space::gsm, -1, 0}, row(100)));
  });
  const auto ddr = static_cast<int>(Space::ddr), am = static_cast<int>(Space::am), gsm = static_cast<int>(Space::gsm);
  CHECK(result.bytes.read[ddr][am] == 4096);
  CHECK(result.bytes.written[ddr][am] == k_cores * 4096);
  CHECK(result.bytes.read[am][gsm] == k_cores * 100);
  CHECK(result.bytes.written[am][gsm] == k_cores * 100);
  CHECK(result.dma_transfers == 1 + k_cores);
}
