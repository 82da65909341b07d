// SPDX-License-Identifier: Apache-2.0
// How long transfers take, alone and beside others: start + service, max-min shares, priorities, row cost.
#include <catch2/catch.hpp>

#include <array>

#include "zone_bench.h"

using namespace mtsim::sim;

namespace {

/// Each core moves `bytes[core]` from `source` to its AM once; cycles of its issue and wait.
std::array<std::int64_t, k_cores> all_at_once(Cluster& cluster, Space source, std::array<std::int64_t, k_cores> bytes,
                                              std::array<int, k_cores> priorities = {1, 1, 1, 1}) {
  std::array<std::int64_t, k_cores> cycles{};
  cluster.launch([&](Dsp& dsp) {
    const int me = dsp.thread_id();
    const Pointer buffer = dsp.vector_malloc(65536);
    if (bytes[me] == 0) return;
    cycles[me] = cycles_of(dsp, [&] {
      dsp.dma_wait(dsp.raw_dma_p2p({source, -1, 0}, row(bytes[me]), buffer, row(bytes[me]), priorities[me], 0));
    });
  });
  return cycles;
}

}  // namespace

TEST_CASE("a transfer alone takes the issue, the start, its bytes over the bandwidth, and the wait", "[fabric]") {
  Cluster& cluster = fresh();
  CHECK(all_at_once(cluster, Space::ddr, {4000, 0, 0, 0})[0] == move_cycles(4000 / 10));
  CHECK(all_at_once(cluster, Space::gsm, {4000, 0, 0, 0})[0] ==
        move_cycles(4000 / 20));  // the port is narrower than the GSM
}

TEST_CASE("a transfer ends on a whole cycle, rounded up", "[fabric]") {
  Cluster& cluster = fresh();
  CHECK(all_at_once(cluster, Space::ddr, {4001, 0, 0, 0})[0] == move_cycles(401));
  CHECK(all_at_once(cluster, Space::ddr, {4009, 0, 0, 0})[0] == move_cycles(401));
  CHECK(all_at_once(cluster, Space::ddr, {4011, 0, 0, 0})[0] == move_cycles(402));
}

TEST_CASE("two transfers share the DDR equally, and the longer has it alone afterwards", "[fabric]") {
  Cluster& cluster = fresh();
  const auto equal = all_at_once(cluster, Space::ddr, {4000, 4000, 0, 0});
  CHECK(equal[0] == move_cycles(800));
  CHECK(equal[1] == move_cycles(800));
  const auto unequal = all_at_once(cluster, Space::ddr, {4000, 8000, 0, 0});
  CHECK(unequal[0] == move_cycles(800));
  CHECK(unequal[1] == move_cycles(800 + 400));
}

TEST_CASE("all GSM ports together are bounded by the GSM", "[fabric]") {
  const auto cycles = all_at_once(fresh(), Space::gsm, {4000, 4000, 4000, 4000});
  for (const std::int64_t c : cycles) CHECK(c == move_cycles(4000 * 4 / 40));
}

TEST_CASE("what one resource denies a transfer, the others on a shared port may use", "[fabric]") {
  std::int64_t gsm_cycles = 0, ddr_cycles = 0;
  fresh().launch(
      [&](Dsp& dsp) {
        const Pointer buffer = dsp.vector_malloc(16384);
        const std::int64_t start = dsp.now() + k_issue;
        const int from_ddr = dsp.dma_p2p({Space::ddr, -1, 0}, row(8000), buffer, row(8000));
        if (dsp.thread_id() != 0) return dsp.dma_wait(from_ddr);
        const int from_gsm = dsp.dma_p2p({Space::gsm, -1, 0}, row(6000), buffer + 8192, row(6000));
        dsp.dma_wait(from_gsm);
        gsm_cycles = dsp.now() - start;
        dsp.dma_wait(from_ddr);
        ddr_cycles = dsp.now() - start;
      },
      2);
  // Two cores halve the DDR: 5 bytes a cycle each. That leaves 15 of core 0's port to its GSM transfer.
  CHECK(gsm_cycles == k_issue + k_start + 6000 / 15 + k_wait);
  CHECK(ddr_cycles == k_start + 8000 / 5 + k_wait);
}

TEST_CASE("a lower priority number is served first, strictly", "[fabric]") {
  Cluster& cluster = fresh();
  const auto ddr = all_at_once(cluster, Space::ddr, {4000, 4000, 0, 0}, {1, 0, 1, 1});
  CHECK(ddr[1] == move_cycles(400));
  CHECK(ddr[0] == move_cycles(800));
  const auto gsm = all_at_once(cluster, Space::gsm, {4000, 4000, 4000, 0}, {0, 1, 1, 1});
  CHECK(gsm[0] == move_cycles(200));        // all its port can
  CHECK(gsm[1] == move_cycles(200 + 100));  // 10 a cycle of what is left, then 20
  CHECK(gsm[2] == move_cycles(200 + 100));
}

TEST_CASE("set_priority holds for later transfers", "[fabric]") {
  std::array<std::int64_t, 2> end{};
  fresh().launch(
      [&](Dsp& dsp) {
        const int me = dsp.thread_id();
        CHECK(cycles_of(dsp, [&] { dsp.set_priority(me == 0 ? 2 : 1); }) == k_verb);
        end[me] = cycles_of(dsp, [&] {
          dsp.dma_wait(
              dsp.dma_p2p({Space::ddr, -1, 0}, row(4000), {Space::am, static_cast<std::int16_t>(me), 0}, row(4000)));
        });
      },
      2);
  CHECK(end[1] == move_cycles(400));
  CHECK(end[0] == move_cycles(800));
}

TEST_CASE("each row of a strided DDR transfer costs the row cost; rows without gaps are one row", "[fabric][ddr]") {
  MachineConfig machine = bench_machine();
  machine.ddr.row_cost_ns = 5;
  fresh({}, machine)
      .launch(
          [&](Dsp& dsp) {
            const Pointer ddr{Space::ddr, -1, 0};
            const Pointer buffer = dsp.vector_malloc(4096);
            CHECK(cycles_of(dsp, [&] {
                    dsp.dma_wait(dsp.dma_p2p(ddr, {8, 100, 200}, buffer, row(800)));
                  }) == move_cycles(8 * 5 + 80));
            CHECK(cycles_of(dsp, [&] {
                    dsp.dma_wait(dsp.dma_p2p(ddr, {8, 100, 0}, buffer, row(800)));
                  }) == move_cycles(5 + 80));
            CHECK(cycles_of(dsp, [&] {
                    dsp.dma_wait(dsp.dma_p2p(buffer, row(800), ddr, {8, 100, 28}));
                  }) == move_cycles(8 * 5 + 80));
          },
          1);
}

TEST_CASE("a copy within the DDR or the GSM uses it twice", "[fabric]") {
  fresh().launch(
      [&](Dsp& dsp) {
        const Pointer ddr{Space::ddr, -1, 0}, gsm{Space::gsm, -1, 0};
        CHECK(cycles_of(dsp, [&] { dsp.dma_wait(dsp.dma_p2p(ddr, row(4000), ddr + 8000, row(4000))); }) ==
              move_cycles(800));
        CHECK(cycles_of(dsp, [&] { dsp.dma_wait(dsp.dma_p2p(gsm, row(4000), gsm + 8000, row(4000))); }) ==
              move_cycles(200));
      },
      1);
}

TEST_CASE("moving to another core's memory uses the ports of both", "[fabric]") {
  std::array<std::int64_t, k_cores> cycles{};
  fresh().launch([&](Dsp& dsp) {
    const auto me = static_cast<std::int16_t>(dsp.thread_id());
    if (me > 1) return;
    const Pointer own{Space::am, me, 0}, other{Space::am, static_cast<std::int16_t>(me + 1), 4096};
    cycles[me] = cycles_of(dsp, [&] { dsp.dma_wait(dsp.dma_p2p(own, row(4000), other, row(4000))); });
  });
  // Core 1's port carries both: 0 -> 1 and 1 -> 2.
  CHECK(cycles[0] == move_cycles(4000 / 10));
  CHECK(cycles[1] == move_cycles(4000 / 10));
}

TEST_CASE("an unknown DDR model is refused with the known names", "[fabric][ddr]") {
  MachineConfig machine = bench_machine();
  machine.ddr.memory_model = "banks";
  CHECK_THROWS_WITH(fresh({}, machine), Catch::Contains("'banks'") && Catch::Contains("bandwidth"));
}
