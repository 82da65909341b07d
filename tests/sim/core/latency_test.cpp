// SPDX-License-Identifier: Apache-2.0
// The exposed pipeline: a result is readable `latency` cycles after issue, and until then a read gives the old value.
#include <catch2/catch.hpp>

#include "bench_core.h"

using namespace mtsim;
using namespace mtsim::sim;

namespace {

// A producer, the register it writes, and an instruction that copies that register away.
struct Latency {
  std::string producer;
  std::string probe;  // with {} for the probe's destination register
  std::string early;  // destination of the probe one cycle too early
  std::string late;   // destination of the probe in time
  int cycles;
};

std::string with(std::string text, const std::string& destination) {
  return text.replace(text.find("{}"), 2, destination);
}

// The producer at cycle 0, one probe at `cycles` - 1 (in the producer's own packet for a latency of 1), one at
// `cycles`.
std::string program_of(const Latency& c) {
  std::string text = " " + c.producer + "\n";
  if (c.cycles > 2) text += " SNOP " + std::to_string(c.cycles - 2) + "\n";
  text += (c.cycles == 1 ? "| " : " ") + with(c.probe, c.early) + "\n " + with(c.probe, c.late) + "\n";
  return text + " SNOP 4\n" + k_return;
}

}  // namespace

TEST_CASE("a vector result is readable exactly latency cycles after issue, the old value before", "[core][latency]") {
  const auto c = GENERATE(Latency{"VFMULAS32.M1 VR1, VR2, VR3, VR10", "VMOV.M2 VR10, {}", "VR40", "VR41", 6},
                          Latency{"VFMULAD.M3 VR1, VR2, VR3, VR10", "VMOV.M2 VR10, {}", "VR40", "VR41", 6},
                          Latency{"VFMULAH16.M1 VR1, VR2, VR3, VR10", "VMOV.M2 VR10, {}", "VR40", "VR41", 6},
                          Latency{"SVBCAST.M1 R10, VR10", "VMOV.M2 VR10, {}", "VR40", "VR41", 4},
                          Latency{"VLDW *AR0, VR10", "VMOV.M2 VR10, {}", "VR40", "VR41", 9},
                          Latency{"VLDDW *AR0, VR11:VR10", "VMOV.M2 VR10, {}", "VR40", "VR41", 9},
                          Latency{"VLDDW *AR0, VR11:VR10", "VMOV.M2 VR11, {}", "VR40", "VR41", 9},
                          Latency{"VBALE2 VR1, VR2, VR10", "VMOV.M2 VR10, {}", "VR40", "VR41", 1},
                          Latency{"VBALE2H VR1, VR2, VR10", "VMOV.M2 VR10, {}", "VR40", "VR41", 1},
                          Latency{"VMOV.M1 VR1, VR10", "VMOV.M2 VR10, {}", "VR40", "VR41", 1},
                          Latency{"VMOVI 77, VR10", "VMOV.M2 VR10, {}", "VR40", "VR41", 1});
  CAPTURE(c.producer);
  BenchCore core;
  for (int i = 1; i <= 3; ++i) core.fill(i, 0x3C003C003F803F80ull + i);
  for (int i = 0; i < 256; ++i) core.am[i] = std::byte{0x42};
  core.r(10) = 0x1234;
  core.fill(10, 0xABCD);
  core.fill(11, 0xABCD);
  REQUIRE(core.run(program_of(c)).status == RunStatus::done);
  CHECK(core.vr(40).lane[3] == 0xABCD);
  CHECK(core.vr(41).lane[3] != 0xABCD);
}

TEST_CASE("a scalar result is readable exactly latency cycles after issue, the old value before", "[core][latency]") {
  const auto c = GENERATE(Latency{"SFMULS32.M1 R1, R2, R10", "SMOV.M2 R10, {}", "R40", "R41", 4},
                          Latency{"SLDH *AR8, R10", "SMOV.M2 R10, {}", "R40", "R41", 7},
                          Latency{"SLDW *AR8, R10", "SMOV.M2 R10, {}", "R40", "R41", 7},
                          Latency{"SLDDW *AR8, R11:R10", "SMOV.M2 R10, {}", "R40", "R41", 7},
                          Latency{"SLDDW *AR8, R11:R10", "SMOV.M2 R11, {}", "R40", "R41", 7},
                          Latency{"SADD.M1 1, R1, R10", "SMOV.M2 R10, {}", "R40", "R41", 1},
                          Latency{"SSUB.M1 R1, R2, R10", "SMOV.M2 R10, {}", "R40", "R41", 1},
                          Latency{"SLT R1, R2, R10", "SMOV.M2 R10, {}", "R40", "R41", 1},
                          Latency{"SSHFLL 3, R1, R10", "SMOV.M2 R10, {}", "R40", "R41", 1},
                          Latency{"SSHFLR 3, R1, R10", "SMOV.M2 R10, {}", "R40", "R41", 1},
                          Latency{"SBALE2 R1, R2, R10", "SMOV.M2 R10, {}", "R40", "R41", 1},
                          Latency{"SMOVI24 77, R10", "SMOV.M2 R10, {}", "R40", "R41", 1},
                          Latency{"SMOVI 77, R10", "SMOV.M2 R10, {}", "R40", "R41", 1},
                          Latency{"SMVAAG.M1 AR8, R10", "SMOV.M2 R10, {}", "R40", "R41", 2});
  CAPTURE(c.producer);
  BenchCore core;
  core.r(1) = BenchCore::pair_of(3, 5);
  core.r(2) = BenchCore::pair_of(7, 9);
  core.ar(8) = 64;
  for (int i = 64; i < 80; ++i) core.sm[i] = std::byte{0x42};
  core.r(10) = core.r(11) = 0xABCD;
  REQUIRE(core.run(program_of(c)).status == RunStatus::done);
  CHECK(core.r(40) == 0xABCD);
  CHECK(core.r(41) != 0xABCD);
}

TEST_CASE("SADDA takes 3 cycles to AR0-7 and 2 to AR8-15, SMVAGA takes 2", "[core][latency]") {
  const auto c = GENERATE(Latency{"SADDA.M1 8, AR0, AR1", "SMVAAG.M2 AR1, {}", "R40", "R41", 3},
                          Latency{"SSUBA.M1 8, AR0, AR1", "SMVAAG.M2 AR1, {}", "R40", "R41", 3},
                          Latency{"SADDA.M1 8, AR8, AR9", "SMVAAG.M2 AR9, {}", "R40", "R41", 2},
                          Latency{"SSUBA.M1 8, AR8, AR9", "SMVAAG.M2 AR9, {}", "R40", "R41", 2},
                          Latency{"SMVAGA.M1 R1, AR1", "SMVAAG.M2 AR1, {}", "R40", "R41", 2},
                          Latency{"SMVAGA.M1 R1, AR9", "SMVAAG.M2 AR9, {}", "R40", "R41", 2},
                          Latency{"SMVAGA.M1 R1, OR1", "SMVAAG.M2 OR1, {}", "R40", "R41", 2},
                          Latency{"SMVAGA.M1 R1, OR9", "SMVAAG.M2 OR9, {}", "R40", "R41", 2});
  CAPTURE(c.producer);
  BenchCore core;
  core.r(1) = 99;
  core.ar(0) = core.ar(8) = 1000;
  core.ar(1) = core.ar(9) = core.orr(1) = core.orr(9) = 0xABCD;
  REQUIRE(core.run(program_of(c)).status == RunStatus::done);
  CHECK(core.r(40) == 0xABCD);
  CHECK(core.r(41) != 0xABCD);
}

TEST_CASE("a chain of SADDA on one AR can issue every 3 cycles", "[core][latency]") {
  BenchCore core;
  core.run(" SADDA.M1 16, AR0, AR0\n SNOP 2\n SADDA.M1 16, AR0, AR0\n SNOP 2\n" + k_return);
  CHECK(core.ar(0) == 32);
}

TEST_CASE("two writes to one register in flight both land, the younger issue may land first", "[core][in-flight]") {
  // The load issues first and lands at 9; the FMA lands at 6 + 1 and is read in the gap.
  BenchCore core;
  core.fill_f32(1, 2, 2);
  core.fill_f32(2, 3, 3);
  for (int i = 0; i < 128; ++i) core.am[i] = std::byte{0x11};
  core.run(
      " VLDW *AR0, VR10\n VFMULAS32.M1 VR1, VR2, VR3, VR10\n SNOP 5\n VMOV.M1 VR10, VR40\n SNOP 1\n VMOV.M1 VR10, "
      "VR41\n" +
      k_return);
  CHECK(core.f32(40, 0) == 6.0f);
  CHECK(core.vr(41).lane[0] == 0x1111111111111111ull);
}

TEST_CASE("an FMA and a load issued in one packet to one register both land", "[core][in-flight]") {
  BenchCore core;
  core.fill_f32(1, 2, 2);
  core.fill_f32(2, 3, 3);
  core.run(
      " VFMULAS32.M1 VR1, VR2, VR3, VR10\n| VLDW *AR0, VR10\n SNOP 5\n VMOV.M1 VR10, VR40\n SNOP 2\n VMOV.M1 VR10, "
      "VR41\n" +
      k_return);
  CHECK(core.f32(40, 0) == 6.0f);
  CHECK(core.vr(41).lane[0] == 0);
}

TEST_CASE("a machine file's latency is what the executor uses", "[core][latency]") {
  isa::Pipeline slow;
  slow.override(isa::Mnemonic::VFMULAS32, 8);
  BenchCore core;
  core.fill_f32(1, 2, 2);
  core.fill_f32(2, 3, 3);
  core.run(
      ".scheduled_for VFMULAS32=8\n VFMULAS32.M1 VR1, VR2, VR3, VR10\n SNOP 6\n VMOV.M1 VR10, VR40\n VMOV.M1 VR10, "
      "VR41\n" +
          k_return,
      {}, slow);
  CHECK(core.f32(40, 0) == 0.0f);
  CHECK(core.f32(41, 0) == 6.0f);
}
