// SPDX-License-Identifier: Apache-2.0
// Microkernel calls: arguments, cycles, faults.
#include <catch2/catch.hpp>

#include "isa/diagnostic.h"
#include "zone_bench.h"

using namespace mtsim;
using namespace mtsim::sim;

namespace {

/// `count` in R16 without pointers: 3 + 8 * count cycles... see each use; never ends when count is 0.
const std::string k_endless = "loop: SBR loop\n SNOP 6\n";
const std::string k_data_loop =
    ".param from, R14, pointer sm\n SMVAGA.M1 R14, AR8\n SNOP 1\n SLDW *AR8, R0\n SNOP 6\n"
    " [R0] SBR R63\n| [!R0] SADD.M1 1, R1, R1\n SNOP 6\n SBR R63\n SNOP 6\n";

}  // namespace

TEST_CASE("a call costs the jump and the kernel's packets and idles", "[call]") {
  const auto depth = GENERATE(Depth::functional, Depth::timing);
  Cluster& cluster = fresh({.depth = depth});
  const Kernel copy = load(cluster, k_copy_kernel);
  const LaunchResult result = cluster.launch(
      [&](Dsp& dsp) {
        const Pointer am = dsp.vector_malloc(4096), sm = dsp.scalar_malloc(64);
        CHECK(cycles_of(dsp, [&] { dsp.call(copy, {am, am + 2048, sm, 5}); }) == k_call + copy_cycles(5));
        CHECK(cycles_of(dsp, [&] { dsp.call(copy, {am, am + 2048, sm, 1}); }) == k_call + copy_cycles(1));
        CHECK(cycles_of(dsp, [&] { dsp.call(copy, {am + 128, am + 2048, sm, 5}); }) == k_call + copy_cycles(5));
      },
      1);
  CHECK(result.cores[0].kernel_calls == 3);
  CHECK(result.cores[0].packets == 3 * 3 + 5 * 11 + 3 * 2);
  CHECK(result.cores[0].units[static_cast<int>(isa::Unit::SLDST)] == 11);
  CHECK(of(result.cores[0], CycleClass::busy) == 2 * copy_cycles(5) + copy_cycles(1));
}

TEST_CASE("a call works on this core's AM and SM", "[call]") {
  Cluster& cluster = fresh();
  const Kernel copy = load(cluster, k_copy_kernel);
  cluster.write({Space::am, 1, 0}, numbers(256));
  cluster.launch(
      [&](Dsp& dsp) {
        const Pointer am = dsp.vector_malloc(4096), sm = dsp.scalar_malloc(64);
        dsp.call(copy, {am, am + 2048, sm, 2});
      },
      2);
  CHECK(read(cluster, {Space::am, 1, 2048}, 256) == numbers(256));
  CHECK(read(cluster, {Space::am, 0, 2048}, 256) == std::vector<std::byte>(256));
}

TEST_CASE("a kernel may be entered at a label", "[call]") {
  const auto depth = GENERATE(Depth::functional, Depth::timing);
  Cluster& cluster = fresh({.depth = depth});
  const std::string text = "long: SNOP 9\nshort: SBR R63\n SNOP 6\n";
  const Kernel whole = load(cluster, text), tail = load(cluster, text, "short");
  CHECK(whole.program == tail.program);
  cluster.launch(
      [&](Dsp& dsp) {
        CHECK(cycles_of(dsp, [&] { dsp.call(whole, {}); }) == k_call + 9 + 7);
        CHECK(cycles_of(dsp, [&] { dsp.call(tail, {}); }) == k_call + 7);
      },
      1);
  CHECK_THROWS_AS(load(cluster, text, "nowhere"), isa::IsaError);
}

TEST_CASE("registers are zero but for the arguments when a kernel starts", "[call]") {
  Cluster& cluster = fresh();
  const Kernel sums =
      load(cluster,
           ".param to, R10, pointer sm\n.param value, R12, value\n SMVAGA.M1 R10, AR8\n| SADD.M2 R12, R20, R20\n"
           " SNOP 2\n SSTW R20, *AR8\n SBR R63\n SNOP 6\n");
  cluster.launch(
      [&](Dsp& dsp) {
        const Pointer sm = dsp.scalar_malloc(64);
        for (int i = 0; i < 3; ++i) dsp.call(sums, {sm, 5});
      },
      1);
  CHECK(read(cluster, {Space::sm, 0, 0}, 1)[0] == std::byte{5});
}

TEST_CASE("an argument goes to the register its .param names, in any file", "[call]") {
  Cluster& cluster = fresh();
  const Kernel store = load(cluster,
                            ".param to, AR8, pointer sm\n.param offset, OR8, count\n.param value, R12, value\n"
                            " SSTW R12, *+AR8[OR8]\n SBR R63\n SNOP 6\n");
  cluster.launch([&](Dsp& dsp) { dsp.call(store, {dsp.scalar_malloc(64), 2, 5}); }, 1);
  CHECK(read(cluster, {Space::sm, 0, 16}, 1)[0] == std::byte{5});
  cluster.reset(bench_machine(), {.depth = Depth::timing});
  const auto with_offset = [&](int offset) {
    return cluster.launch([&](Dsp& dsp) { dsp.call(store, {Pointer{Space::sm, 0, 0}, offset, 5}); }, 1).fault;
  };
  CHECK_FALSE(with_offset(65536 / 8 - 1));
  CHECK(with_offset(65536 / 8));
}

TEST_CASE("arguments must be as the kernel declares them", "[call]") {
  const auto depth = GENERATE(Depth::functional, Depth::timing);
  Cluster& cluster = fresh({.depth = depth});
  const Kernel copy = load(cluster, k_copy_kernel);
  const Pointer am{Space::am, 0, 0}, sm{Space::sm, 0, 0};
  const auto with = [&](std::vector<Argument> arguments) {
    return refusal(cluster, [&](Dsp& dsp) { dsp.call(copy, arguments); });
  };
  CHECK_THAT(with({am, am, sm}), Catch::Contains("takes 4 arguments (from, to, scale, count), 3 given"));
  CHECK_THAT(with({am, sm, sm, 1}), Catch::Contains("parameter to is a pointer into am[0], sm[0]+0x0 given"));
  CHECK_THAT(with({am, am, 7, 1}), Catch::Contains("parameter scale is a pointer into sm[0], the value 7 given"));
  CHECK_THAT(with({Pointer{Space::am, 1, 0}, am, sm, 1}), Catch::Contains("am[1]+0x0 given"));
  CHECK_THAT(with({am, am, sm, am}), Catch::Contains("parameter count is a value"));
  CHECK_THAT(refusal(cluster, [](Dsp& dsp) { dsp.call(Kernel{}, {}); }), Catch::Contains("kernel is empty"));
}

TEST_CASE("an access outside AM is a fault in both depths", "[call][fault]") {
  const auto depth = GENERATE(Depth::functional, Depth::timing);
  Cluster& cluster = fresh({.depth = depth});
  const Kernel copy = load(cluster, k_copy_kernel);
  const auto fault_at = [&](Pointer from, Pointer to) {
    return cluster.launch([&](Dsp& dsp) { dsp.call(copy, {from, to, Pointer{Space::sm, 0, 0}, 2}); }, 1).fault;
  };
  const Pointer am{Space::am, 0, 0};
  CHECK_FALSE(fault_at(am + (786432 - 256), am));  // over-reads and writes up to the last byte are fine
  const auto read_fault = fault_at(am + (786432 - 128), am);
  REQUIRE(read_fault);
  CHECK(read_fault->kind == FaultKind::address);
  CHECK_THAT(read_fault->message, Catch::Contains("bench") && Catch::Contains("of the launch"));
  REQUIRE(fault_at(am, am + (786432 - 128)));
  REQUIRE(fault_at(am + 4, am));
  CHECK(fault_at(am + 4, am)->kind == FaultKind::alignment);
}

TEST_CASE("a kernel that never ends is a fault", "[call][fault]") {
  const auto depth = GENERATE(Depth::functional, Depth::timing);
  Cluster& cluster = fresh({.depth = depth, .max_call_cycles = 10'000});
  const Kernel endless = load(cluster, k_endless);
  const LaunchResult result = cluster.launch([&](Dsp& dsp) { dsp.call(endless, {}); }, 1);
  REQUIRE(result.fault);
  CHECK(result.fault->kind == FaultKind::runaway);
  CHECK_FALSE(result.fault->packet.empty());
  CHECK_THAT(result.fault->message, Catch::Contains("10000 cycles") && Catch::Contains("of the launch"));
}

TEST_CASE("a kernel whose branches depend on data runs in functional depth and is refused in timing depth", "[call]") {
  Cluster& cluster = fresh();
  const auto program = [&](const Kernel& kernel) {
    return [&](Dsp& dsp) { dsp.call(kernel, {dsp.scalar_malloc(8)}); };
  };
  const Kernel functional = load(cluster, k_data_loop);
  CHECK_FALSE(cluster.launch(program(functional), 1).fault);
  cluster.reset(bench_machine(), {.depth = Depth::timing});
  CHECK_THAT(refusal(cluster, program(load(cluster, k_data_loop))),
             Catch::Contains("cannot run in timing depth") && Catch::Contains("R0"));
}

TEST_CASE("a kernel whose addresses depend on a value is refused in timing depth", "[call]") {
  Cluster& cluster = fresh({.depth = Depth::timing});
  const Kernel store = load(cluster,
                            ".param to, R10, pointer sm\n.param offset, R12, value\n SADD.M1 R10, R12, R12\n"
                            " SMVAGA.M1 R12, AR8\n SNOP 1\n SSTW R20, *AR8\n SBR R63\n SNOP 6\n");
  CHECK_THAT(refusal(cluster,
                     [&](Dsp& dsp) {
                       dsp.call(store, {dsp.scalar_malloc(64), 8});
                     }),
             Catch::Contains("cannot run in timing depth") && Catch::Contains("offset"));
}

TEST_CASE("a kernel is decoded once per program and latencies, and another machine needs its own", "[call]") {
  Cluster& cluster = fresh();
  const Kernel copy = load(cluster, k_copy_kernel);
  CHECK(load(cluster, k_copy_kernel).program == copy.program);
  MachineConfig machine = bench_machine();
  machine.pipeline.override(isa::Mnemonic::VLDW, 8);
  cluster.reset(machine, {});
  CHECK(load(cluster, k_copy_kernel).program != copy.program);
  CHECK_THAT(refusal(cluster, [&](Dsp& dsp) { dsp.call(copy, {}); }), Catch::Contains("load it again"));
  cluster.reset(bench_machine(), {});
  CHECK(load(cluster, k_copy_kernel).program == copy.program);
}
