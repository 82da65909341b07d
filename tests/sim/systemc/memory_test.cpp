// SPDX-License-Identifier: Apache-2.0
// Memories, allocation, and what the DMA engines do to bytes.
#include <catch2/catch.hpp>

#include <algorithm>

#include "zone_bench.h"

using namespace mtsim::sim;

namespace {

std::vector<std::byte> part(const std::vector<std::byte>& data, std::size_t first, std::size_t bytes) {
  return {data.begin() + static_cast<std::ptrdiff_t>(first), data.begin() + static_cast<std::ptrdiff_t>(first + bytes)};
}

}  // namespace

TEST_CASE("pointers print their memory, owner and offset", "[memory]") {
  CHECK(Pointer{Space::am, 3, 0x8000}.str() == "am[3]+0x8000");
  CHECK((Pointer{Space::ddr, -1, 0} + 256).str() == "ddr+0x100");
}

TEST_CASE("the host reads back what it wrote, at both ends of 20 GB, and zeros elsewhere", "[memory]") {
  Cluster& cluster = fresh();
  const auto data = numbers(5000);
  for (const Pointer at : {Pointer{Space::ddr, -1, 0}, Pointer{Space::ddr, -1, (std::uint64_t{20} << 30) - 5000},
                           Pointer{Space::gsm, -1, 77}, Pointer{Space::sm, 1, 0}, Pointer{Space::am, 3, 4096}}) {
    cluster.write(at, data);
    CHECK(read(cluster, at, 5000) == data);
  }
  CHECK(read(cluster, {Space::ddr, -1, std::uint64_t{10} << 30}, 16) == std::vector<std::byte>(16));
}

TEST_CASE("reset forgets contents and allocations", "[memory]") {
  Cluster& cluster = fresh();
  cluster.write(cluster.ddr_malloc(4096), numbers(4096));
  cluster.write({Space::am, 2, 0}, numbers(64));
  cluster.reset();
  CHECK(cluster.ddr_malloc(1) == Pointer{Space::ddr, -1, 0});
  CHECK(read(cluster, {Space::ddr, -1, 0}, 4096) == std::vector<std::byte>(4096));
  CHECK(read(cluster, {Space::am, 2, 0}, 64) == std::vector<std::byte>(64));
}

TEST_CASE("allocations are 256-byte aligned, may fill the memory, and an overfull one is refused in bytes",
          "[memory]") {
  Cluster& cluster = fresh();
  CHECK(cluster.gsm_malloc(1).offset == 0);
  CHECK(cluster.gsm_malloc(257).offset == 256);
  CHECK(cluster.gsm_malloc(1).offset == 768);
  CHECK(cluster.gsm_malloc((6 << 20) - 1024).offset == 1024);
  CHECK_THROWS_WITH(cluster.gsm_malloc(1), Catch::Contains("1 bytes asked, 0 of 6291456 free"));
  CHECK_THROWS_AS(cluster.ddr_malloc((std::int64_t{20} << 30) + 1), SimError);

  for (int launch = 0; launch < 2; ++launch) {  // each launch starts with empty SM and AM
    const std::string message = refusal(cluster, [](Dsp& dsp) {
      CHECK(dsp.vector_malloc(786432) == Pointer{Space::am, 0, 0});
      CHECK(dsp.scalar_malloc(100) == Pointer{Space::sm, 0, 0});
      CHECK(dsp.scalar_malloc(100) == Pointer{Space::sm, 0, 256});
      dsp.scalar_malloc(65536);
    });
    CHECK_THAT(message, Catch::Contains("scalar_malloc: 65536 bytes asked, 65024 of 65536 free"));
  }
}

TEST_CASE("host accesses outside a memory are refused", "[memory]") {
  Cluster& cluster = fresh();
  CHECK_THROWS_WITH(cluster.write({Space::sm, 0, 65536 - 10}, numbers(11)),
                    Catch::Contains("11 bytes at sm[0]+0xfff6"));
  CHECK_THROWS_AS(read(cluster, {Space::ddr, -1, ~std::uint64_t{0}}, 2), SimError);
  CHECK_THROWS_WITH(read(cluster, {Space::am, 9, 0}, 1), Catch::Contains("no core 9"));
}

TEST_CASE("a 2-D transfer gathers and scatters rows, whose lengths need not agree", "[memory][dma]") {
  Cluster& cluster = fresh();
  const auto data = numbers(1000);
  cluster.write({Space::ddr, -1, 0}, data);
  cluster.launch(
      [](Dsp& dsp) {
        // Rows of 60 at 0, 100, 200, 300 -> rows of 80 at 0, 128, 256.
        dsp.dma_wait(dsp.dma_p2p({Space::ddr, -1, 0}, {4, 60, 40}, {Space::am, 0, 0}, {3, 80, 48}));
      },
      1);
  std::vector<std::byte> stream;
  for (int row = 0; row < 4; ++row) {
    const auto piece = part(data, static_cast<std::size_t>(row) * 100, 60);
    stream.insert(stream.end(), piece.begin(), piece.end());
  }
  for (int row = 0; row < 3; ++row) {
    CHECK(read(cluster, {Space::am, 0, static_cast<std::uint64_t>(row) * 128}, 80) ==
          part(stream, static_cast<std::size_t>(row) * 80, 80));
    CHECK(read(cluster, {Space::am, 0, static_cast<std::uint64_t>(row) * 128 + 80}, 48) == std::vector<std::byte>(48));
  }
}

TEST_CASE("a step of minus a row repeats the row", "[memory][dma]") {
  Cluster& cluster = fresh();
  cluster.write({Space::ddr, -1, 0}, numbers(64));
  cluster.launch(
      [](Dsp& dsp) {
        dsp.dma_wait(dsp.dma_p2p({Space::ddr, -1, 0}, {3, 64, -64}, {Space::am, 0, 0}, row(192)));
      },
      1);
  CHECK(read(cluster, {Space::am, 0, 128}, 64) == numbers(64));
}

TEST_CASE("a destination holds NaN patterns from issue to completion, and its gaps are left alone", "[memory][dma]") {
  Cluster& cluster = fresh();
  const auto data = numbers(128);
  cluster.write({Space::ddr, -1, 0}, data);
  cluster.write({Space::am, 0, 0}, std::vector<std::byte>(256, std::byte{1}));
  std::vector<std::byte> during, after;
  cluster.launch(
      [&](Dsp& dsp) {
        const int channel = dsp.dma_p2p({Space::ddr, -1, 0}, row(128), {Space::am, 0, 0}, {2, 64, 64});
        during = read(cluster, {Space::am, 0, 0}, 256);
        dsp.dma_wait(channel);
        after = read(cluster, {Space::am, 0, 0}, 256);
      },
      1);
  CHECK(part(during, 0, 64) == std::vector<std::byte>(64, std::byte{0xFF}));
  CHECK(part(during, 64, 64) == std::vector<std::byte>(64, std::byte{1}));
  CHECK(part(after, 0, 64) == part(data, 0, 64));
  CHECK(part(after, 64, 64) == std::vector<std::byte>(64, std::byte{1}));
  CHECK(part(after, 128, 64) == part(data, 64, 64));
}

TEST_CASE("without poison a destination keeps its bytes until the transfer is done", "[memory][dma]") {
  Cluster& cluster = fresh({.poison = false});
  cluster.write({Space::am, 0, 0}, numbers(64));
  cluster.launch(
      [&](Dsp& dsp) {
        const int channel = dsp.dma_p2p({Space::ddr, -1, 0}, row(64), {Space::am, 0, 0}, row(64));
        CHECK(read(cluster, {Space::am, 0, 0}, 64) == numbers(64));
        dsp.dma_wait(channel);
      },
      1);
  CHECK(read(cluster, {Space::am, 0, 0}, 64) == std::vector<std::byte>(64));
}

TEST_CASE("timing depth moves no bytes", "[memory][dma]") {
  Cluster& cluster = fresh();
  cluster.write({Space::gsm, -1, 0}, numbers(64));
  cluster.reset(bench_machine(), {.depth = Depth::timing});
  cluster.write({Space::ddr, -1, 0}, numbers(64));
  cluster.launch(
      [&](Dsp& dsp) {
        dsp.dma_wait(dsp.dma_p2p({Space::ddr, -1, 0}, row(64), {Space::am, 0, 0}, row(64)));
      },
      1);
  auto untouched = numbers(64);
  cluster.read({Space::am, 0, 0}, untouched);
  CHECK(untouched == numbers(64));
}

TEST_CASE("another machine may differ in every number but cores and memory sizes", "[memory]") {
  MachineConfig machine = bench_machine();
  machine.ddr.bandwidth_gb_s = 1;
  machine.dma.channels = 4;
  CHECK_NOTHROW(fresh({}, machine));
  CHECK_THAT(refusal(fresh({}, machine), [](Dsp& dsp) { dsp.dma_wait(4); }), Catch::Contains("0 to 3"));
  machine.cluster.gsm_bytes *= 2;
  CHECK_THROWS_WITH(fresh({}, machine),
                    Catch::Contains("cluster.gsm_bytes is 6291456") && Catch::Contains("another process"));
  CHECK_THROWS_WITH(Cluster(bench_machine()), Catch::Contains("before the first of them runs"));
}
