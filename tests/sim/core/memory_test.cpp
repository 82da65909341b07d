// SPDX-License-Identifier: Apache-2.0
// Addressing, pairs, order of loads and stores, and the transposing stores, as validated kernels use them.
#include <catch2/catch.hpp>

#include "bench_core.h"

using namespace mtsim::sim;

namespace {

// Every 64-bit word of AM (or SM) holds its own byte address.
void number(std::vector<std::byte>& memory) {
  for (std::size_t i = 0; i + 8 <= memory.size(); i += 8) {
    const std::uint64_t address = i;
    std::memcpy(memory.data() + i, &address, 8);
  }
}

}  // namespace

TEST_CASE("an index counts access units: 8 for VLDW, 16 for VLDDW, 4, 8 and 16 for SLDH, SLDW and SLDDW",
          "[core][memory]") {
  BenchCore core;
  number(core.am);
  number(core.sm);
  core.ar(0) = core.ar(8) = 1024;
  core.orr(1) = core.orr(9) = 6;
  core.run(
      " VLDW *+AR0[3], VR0\n| SLDH *+AR8[4], R20\n"
      " VLDDW *+AR0[OR1], VR3:VR2\n| SLDW *+AR8[OR9], R21\n"
      " VLDW *-AR0[2], VR4\n| SLDDW *-AR8[3], R23:R22\n"
      " SNOP 9\n" +
      k_return);
  CHECK(core.vr(0).lane[0] == 1024 + 24);
  CHECK(core.vr(2).lane[0] == 1024 + 96);
  CHECK(core.vr(4).lane[0] == 1024 - 16);
  CHECK(core.r(20) == 1024 + 16);
  CHECK(core.r(21) == 1024 + 48);
  CHECK(core.r(22) == 1024 - 48);
  CHECK(core.r(23) == 1024 - 40);
}

TEST_CASE("a pair lies in memory low register first, for loads and stores, vectors and scalars", "[core][memory]") {
  BenchCore core;
  number(core.am);
  number(core.sm);
  core.run(
      " VLDDW *AR0, VR1:VR0\n| SLDDW *AR8, R21:R20\n SNOP 9\n"
      " VSTDW VR1:VR0, *+AR0[64]\n| SSTDW R21:R20, *+AR8[4]\n" +
      k_return);
  CHECK(core.vr(0).lane[15] == 120);
  CHECK(core.vr(1).lane[0] == 128);
  CHECK(core.r(20) == 0);
  CHECK(core.r(21) == 8);
  CHECK(std::memcmp(core.am.data(), core.am.data() + 1024, 256) == 0);
  CHECK(std::memcmp(core.sm.data(), core.sm.data() + 64, 16) == 0);
}

TEST_CASE("SLDH zero-extends and SSTH writes four bytes", "[core][memory]") {
  BenchCore core;
  core.poke<std::uint64_t>(core.sm, 0, 0xFFFFFFFF'89ABCDEFull);
  core.run(" SLDH *AR8, R20\n SNOP 7\n SSTH R20, *+AR8[2]\n" + k_return);
  CHECK(core.r(20) == 0x89ABCDEFull);
  CHECK(core.peek<std::uint64_t>(core.sm, 8) == 0x89ABCDEFull);
}

TEST_CASE("post-modify: the access and its packet see the old address, the next packet the new one", "[core][memory]") {
  BenchCore core;
  number(core.am);
  core.ar(0) = 256;
  core.orr(0) = 16;
  core.run(
      " VLDDW *AR0++[OR0], VR1:VR0\n| VLDDW *AR0, VR3:VR2\n| SMVAAG.M1 AR0, R20\n"
      " VLDW *AR0--[OR0], VR4\n| SMVAAG.M1 AR0, R21\n"
      " VLDW *AR0, VR5\n SNOP 9\n" +
      k_return);
  CHECK(core.vr(0).lane[0] == 256);
  CHECK(core.vr(2).lane[0] == 256);
  CHECK(core.r(20) == 256);
  CHECK(core.vr(4).lane[0] == 512);
  CHECK(core.r(21) == 512);
  CHECK(core.vr(5).lane[0] == 384);
}

TEST_CASE("a post-modify by immediate counts access units", "[core][memory]") {
  BenchCore core;
  core.ar(8) = 64;
  core.run(" SLDW *AR8++[3], R20\n SLDH *AR8--[1], R21\n SNOP 7\n" + k_return);
  CHECK(core.ar(8) == 64 + 24 - 4);
}

TEST_CASE("a vector address need only be a multiple of 8, a pair's of 16", "[core][memory]") {
  BenchCore core;
  number(core.am);
  core.ar(0) = 8;
  CHECK(core.run(" VLDW *AR0, VR0\n SNOP 9\n" + k_return).status == RunStatus::done);
  CHECK(core.vr(0).lane[0] == 8);
  CHECK(core.run(" VLDDW *AR0, VR1:VR0\n" + k_return).fault.kind == FaultKind::alignment);
}

TEST_CASE("a load one cycle after a store sees it; in one packet the load reads first", "[core][memory]") {
  BenchCore core;
  core.fill(0, 0x55);
  core.run(
      " VSTW VR0, *AR0\n| VLDW *AR0, VR1\n"
      " VLDW *AR0, VR2\n SNOP 9\n" +
      k_return);
  CHECK(core.vr(1).lane[0] == 0);
  CHECK(core.vr(2).lane[0] == 0x55);
}

TEST_CASE("a load does not see a store issued after it, though the load's result lands later", "[core][memory]") {
  BenchCore core;
  core.fill(0, 0x55);
  core.run(" VLDW *AR0, VR1\n SNOP 6\n VSTW VR0, *AR0\n SNOP 4\n" + k_return);
  CHECK(core.vr(1).lane[0] == 0);
}

TEST_CASE("store data is read at issue", "[core][memory]") {
  BenchCore core;
  core.fill(0, 1);
  core.run(" VSTW VR0, *AR0\n| VMOVI 2, VR0\n VSTW VR0, *+AR0[16]\n" + k_return);
  CHECK(core.peek<std::uint64_t>(core.am, 0) == 1);
  CHECK(core.peek<std::uint64_t>(core.am, 128) == 2);
}

TEST_CASE("VSTDW0M16 and VSTDW1M16 in one packet and a reload transpose a 4x16 block of 64-bit lanes",
          "[core][memory]") {
  BenchCore core;
  for (int reg = 0; reg < 4; ++reg) {
    for (int lane = 0; lane < 16; ++lane) core.vr(reg).lane[lane] = 100 * reg + lane;
  }
  core.ar(0) = 512;
  core.run(
      " VSTDW0M16 VR1:VR0, *AR0\n| VSTDW1M16 VR3:VR2, *+AR0[16]\n"
      " VLDDW *AR0, VR11:VR10\n| VLDDW *+AR0[16], VR13:VR12\n SNOP 9\n" +
      k_return);
  // Memory now holds lane 0 of VR0..VR3, then lane 1 of VR0..VR3, ...
  for (int word = 0; word < 64; ++word) {
    CHECK(core.peek<std::uint64_t>(core.am, 512 + 8 * word) == static_cast<std::uint64_t>(100 * (word % 4) + word / 4));
  }
  CHECK(core.vr(10).lane[5] == 101);
  CHECK(core.vr(13).lane[15] == 315);
}

TEST_CASE("an over-read inside the memory is no fault, one past its end is", "[core][memory]") {
  BenchCore core;
  core.ar(0) = 786432 - 512;
  const std::string loop = " VLDDW *AR0++[16], VR1:VR0\n VLDDW *AR0++[16], VR3:VR2\n";
  CHECK(core.run(loop + k_return).status == RunStatus::done);
  core.ar(0) = 786432 - 256;
  CHECK(core.run(loop + k_return).fault.kind == FaultKind::address);
}
