// SPDX-License-Identifier: Apache-2.0
// Baseline, AVX2 and AVX-512 host code give the same bits.
#include <catch2/catch.hpp>
#include <random>

#include "bench_core.h"

using namespace mtsim;
using namespace mtsim::sim;

TEST_CASE("all host levels give the same bits on any input bits", "[core][host-level]") {
  const isa::Program program = isa::assemble(
      " VLDDW *AR0, VR1:VR0\n| VLDDW *+AR0[16], VR3:VR2\n SNOP 8\n"
      " VFMULAS32.M1 VR0, VR1, VR2, VR10\n| VFMULAD.M2 VR0, VR1, VR2, VR11\n| VFMULAH16.M3 VR0, VR1, VR2, VR12\n"
      "| VBALE2H VR0, VR1, VR13\n| SFMULS32.M1 R10, R11, R12\n SNOP 6\n"
      " VFMULAS32.M1 VR10, VR10, VR3, VR10\n| VFMULAD.M2 VR11, VR11, VR3, VR11\n| VFMULAH16.M3 VR12, VR12, VR3, VR12\n "
      "SNOP 6\n"
      " VSTDW0M16 VR11:VR10, *+AR0[64]\n| VSTDW1M16 VR13:VR12, *+AR0[80]\n SSTW R12, *AR8\n SBR R63\n SNOP 6\n",
      "bits.s");
  const DecodedProgram decoded(program, {});
  std::mt19937_64 random(3);
  for (int round = 0; round < 500; ++round) {
    std::vector<std::byte> seed(512);
    for (auto& byte : seed) byte = static_cast<std::byte>(random());
    const std::uint64_t r10 = random(), r11 = random();
    std::vector<std::byte> expected_am, expected_sm;
    for (const HostLevel level : supported_host_levels()) {
      std::vector<std::byte> sm(4096), am(8192);
      std::copy(seed.begin(), seed.end(), am.begin());
      Executor executor(sm, am, level);
      executor.registers().r[10] = r10;
      executor.registers().r[11] = r11;
      REQUIRE(executor.run(decoded).status == RunStatus::done);
      if (expected_am.empty()) {
        expected_am = am;
        expected_sm = sm;
      }
      CAPTURE(round, to_string(level));
      REQUIRE((am == expected_am));
      REQUIRE((sm == expected_sm));
    }
  }
}

TEST_CASE("this host supports at least the baseline, and the best level is one of the supported",
          "[core][host-level]") {
  const auto levels = supported_host_levels();
  CHECK(levels.front() == HostLevel::baseline);
  CHECK(std::find(levels.begin(), levels.end(), best_host_level()) != levels.end());
}
