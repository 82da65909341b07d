// SPDX-License-Identifier: Apache-2.0
// row_syn: the cores of a mask start together and share each row's cost.
#include <catch2/catch.hpp>

#include <array>

#include "zone_bench.h"

using namespace mtsim::sim;

namespace {
const Rows k_strided{8, 100, 200};
}

TEST_CASE("transfers of a row_syn group start when the last core of the mask issues, and share the row cost",
          "[row_syn]") {
  MachineConfig machine = bench_machine();
  machine.ddr.row_cost_ns = 6;
  std::array<std::int64_t, k_cores> end{};
  fresh({}, machine).launch([&](Dsp& dsp) {
    const int me = dsp.thread_id();
    if (me == 2) return;
    dsp.scalar_work(100 * me);
    dsp.dma_wait(dsp.dma_p2p({Space::ddr, -1, 0}, k_strided, {Space::am, static_cast<std::int16_t>(me), 0}, row(800),
                             true, 0b1011));
    end[me] = dsp.now();
  });
  // Three transfers of 8 * 6 / 3 + 80 = 96 DDR cycles each, at a third of the DDR, from core 3's issue on.
  const std::int64_t expected = k_launch + 300 + move_cycles(3 * 96);
  CHECK(end == std::array<std::int64_t, k_cores>{expected, expected, 0, expected});
}

TEST_CASE("the n-th transfer of each core of a mask belong together", "[row_syn]") {
  std::array<std::int64_t, 2> first{}, second{};
  fresh().launch(
      [&](Dsp& dsp) {
        const auto me = static_cast<std::int16_t>(dsp.thread_id());
        const auto issue = [&](int i) {
          return dsp.dma_p2p({Space::ddr, -1, 0}, row(1000), {Space::am, me, static_cast<std::uint64_t>(1000 * i)},
                             row(1000), true, 0b11);
        };
        const int a = issue(0);
        if (me == 1) dsp.scalar_work(5000);
        const int b = issue(1);
        dsp.dma_wait(a);
        first[me] = dsp.now();
        dsp.dma_wait(b);
        second[me] = dsp.now();
      },
      2);
  CHECK(first[0] == k_launch + move_cycles(200));
  CHECK(second[0] == second[1]);
  CHECK(second[0] > k_launch + 5000);
}

TEST_CASE("a row_syn mask holds the caller and only cores of the launch", "[row_syn]") {
  Cluster& cluster = fresh();
  const auto with = [&](std::uint64_t mask) {
    return refusal(
        cluster,
        [&](Dsp& dsp) {
          dsp.dma_p2p({Space::ddr, -1, 0}, row(64), dsp.vector_malloc(64), row(64), true, mask);
        },
        2);
  };
  CHECK_THAT(with(0b100), Catch::Contains("mask 0x4"));
  CHECK_THAT(with(0b111), Catch::Contains("0 to 1"));
  CHECK_THAT(refusal(cluster,
                     [](Dsp& dsp) {
                       dsp.dma_p2p({Space::ddr, -1, 0}, row(64), dsp.vector_malloc(64), row(64), false, 0b1);
                     }),
             Catch::Contains("mask 0x1 without row_syn"));
}

TEST_CASE("a row_syn group that never completes is a deadlock that names the missing core", "[row_syn][deadlock]") {
  const std::string message = refusal(
      fresh(),
      [](Dsp& dsp) {
        if (dsp.thread_id() == 1) return;
        dsp.dma_wait(dsp.dma_p2p({Space::ddr, -1, 0}, row(64), dsp.vector_malloc(64), row(64), true, 0b11));
      },
      2);
  CHECK_THAT(message, Catch::Contains("deadlock") && Catch::Contains("core 0 waits for channel 0") &&
                          Catch::Contains("mask 0x3 still without core 1"));
}
