// SPDX-License-Identifier: Apache-2.0
// Functional and timing depth give the same cycles, and so does every repetition.
#include <catch2/catch.hpp>

#include "zone_bench.h"

using namespace mtsim::sim;

namespace {

/// Uneven work, all verbs: broadcast, shared DDR with a row cost, kernels of three sizes, barriers.
void mixed_program(Dsp& dsp, const Kernel& copy) {
  const int me = dsp.thread_id();
  const Pointer ddr{Space::ddr, -1, 0}, gsm{Space::gsm, -1, 0};
  const Pointer a = dsp.vector_malloc(4096), b = dsp.vector_malloc(4096), word = dsp.scalar_malloc(256);
  for (int step = 0; step < 5; ++step) {
    const int shared = dsp.dma_broadcast(ddr, {4, 256, 300}, a, row(1024), step);
    const int own = dsp.dma_p2p(ddr + 8192 * me, {7, 100 + me * 4, 60}, b, row(7 * (100 + me * 4)));
    const int scalars = dsp.dma_p2p(gsm, row(256), word, row(256));
    dsp.dma_wait(scalars);
    dsp.dma_wait(own);
    dsp.call(copy, {b, b + 2048, word, 1 + me % 3});
    dsp.dma_wait(shared);
    for (int i = 0; i < me; ++i) dsp.call(copy, {a, b, word, 8});
    const int out = dsp.dma_p2p(b, row(512), gsm + 4096 * (me + 1), row(512));
    dsp.loop_iteration();
    dsp.dma_wait(out);
    if (step % 2 == 0) dsp.group_barrier(0);
  }
}

LaunchResult run(const ClusterOptions& options, int cores) {
  MachineConfig machine = bench_machine();
  machine.ddr.row_cost_ns = 1.7;
  machine.ddr.bandwidth_gb_s = 7.3;
  Cluster& cluster = fresh(options, machine);
  const Kernel copy = load(cluster, k_copy_kernel);
  return cluster.launch([&](Dsp& dsp) { mixed_program(dsp, copy); }, cores);
}

void check_same(const LaunchResult& a, const LaunchResult& b) {
  CHECK(a.cycles == b.cycles);
  REQUIRE(a.cores.size() == b.cores.size());
  for (std::size_t core = 0; core < a.cores.size(); ++core) {
    CHECK(a.cores[core].cycles == b.cores[core].cycles);
    CHECK(a.cores[core].packets == b.cores[core].packets);
    CHECK(a.cores[core].instructions == b.cores[core].instructions);
    CHECK(a.cores[core].units == b.cores[core].units);
  }
  CHECK(a.bytes.read == b.bytes.read);
  CHECK(a.bytes.written == b.bytes.written);
  CHECK(a.dma_transfers == b.dma_transfers);
}

}  // namespace

TEST_CASE("functional depth and timing depth, with and without the memo, give the same cycles", "[depth]") {
  const int cores = GENERATE(1, 2, 4);
  const LaunchResult functional = run({.depth = Depth::functional}, cores);
  CHECK_FALSE(functional.fault);
  CHECK(functional.findings.empty());
  check_same(functional, run({.depth = Depth::timing}, cores));
  check_same(functional, run({.depth = Depth::timing, .memo = false}, cores));
}

TEST_CASE("a launch repeated after a reset takes the same cycles", "[depth]") {
  const LaunchResult first = run({.depth = Depth::timing}, 4);
  for (int i = 0; i < 3; ++i) check_same(first, run({.depth = Depth::timing}, 4));
}
