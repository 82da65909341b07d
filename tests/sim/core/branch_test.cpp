// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "bench_core.h"

using namespace mtsim::sim;

TEST_CASE("a return through R63 executes its six delay slots and counts them once", "[core][branch]") {
  BenchCore core;
  const RunResult result = core.run(
      " SBR R63\n SADD.M1 1, R1, R1\n SADD.M1 1, R1, R1\n SADD.M1 1, R1, R1\n SADD.M1 1, R1, R1\n SADD.M1 1, R1, R1\n"
      " SADD.M1 1, R1, R1\n SADD.M1 100, R1, R1\n");
  CHECK(result.status == RunStatus::done);
  CHECK(core.r(1) == 6);
  CHECK(result.cycles == 7);
  CHECK(result.packets == 7);
  CHECK(result.idles == 0);
  CHECK(result.instructions == 7);
  CHECK(result.units[static_cast<int>(mtsim::isa::Unit::SBR)] == 1);
  CHECK(result.units[static_cast<int>(mtsim::isa::Unit::SMAC1)] == 6);
}

TEST_CASE("SNOP n is one packet and n-1 idles", "[core][branch]") {
  BenchCore core;
  const RunResult result = core.run(" SNOP 5\n SBR R63\n SNOP 6\n");
  CHECK(result.cycles == 5 + 7);
  CHECK(result.packets == 3);
  CHECK(result.idles == 9);
}

TEST_CASE("a taken branch cuts an SNOP that reaches past its last delay cycle", "[core][branch]") {
  BenchCore core;
  const RunResult result = core.run(" SBR R63\n SNOP 3\n SNOP 60\n SADD.M1 1, R1, R1\n");
  CHECK(result.status == RunStatus::done);
  CHECK(result.cycles == 7);
  CHECK(core.r(1) == 0);
}

TEST_CASE("results land in the cycles of an SNOP", "[core][branch]") {
  BenchCore core;
  core.fill_f32(1, 2, 2);
  core.fill_f32(2, 3, 3);
  core.run(" VFMULAS32.M1 VR1, VR2, VR3, VR10\n SNOP 5\n VMOV.M1 VR10, VR11\n" + k_return);
  CHECK(core.f32(11, 31) == 6.0f);
}

TEST_CASE("a loop with its branch's delay slots inside runs its count", "[core][branch]") {
  BenchCore core;
  core.r(1) = 10;
  const RunResult result =
      core.run("loop: SSUB.M1 1, R1, R1\n SLT 0, R1, R0\n [R0] SBR loop\n SADD.M1 1, R2, R2\n SNOP 5\n" + k_return);
  CHECK(core.r(2) == 10);
  CHECK(result.cycles == 10 * 9 + 7);
}

TEST_CASE("the predicate is sampled when the branch issues and tests nonzero, not bit 0", "[core][branch]") {
  BenchCore core;
  core.r(0) = 2;
  core.run(" [R0] SBR R63\n SMOVI24 0, R0\n SADD.M1 1, R1, R1\n SNOP 4\n SADD.M1 100, R1, R1\n" + k_return);
  CHECK(core.r(1) == 1);
}

TEST_CASE("a branch in the last delay slot with the complementary predicate takes over: loop, then return",
          "[core][branch]") {
  BenchCore core;
  core.r(1) = 3;
  const RunResult result = core.run(
      "loop: SSUB.M1 1, R1, R1\n"
      " SLT 0, R1, R0\n"
      " [R0] SBR loop\n SADD.M1 1, R2, R2\n SNOP 4\n"
      " [!R0] SBR R63\n"  // last delay slot of the loop's branch
      " SADD.M1 1, R3, R3\n SNOP 5\n");
  CHECK(result.status == RunStatus::done);
  CHECK(core.r(2) == 3);
  CHECK(core.r(3) == 1);
}

TEST_CASE("complementary predicates may write one register in one packet", "[core][predicate]") {
  const bool taken = GENERATE(true, false);
  BenchCore core;
  core.r(1) = taken ? 1 : 0;
  core.r(10) = 500;
  core.ar(0) = 100;
  core.run(" [R1] SADDA.M1 8, AR0, AR1\n| [!R1] SMVAGA.M2 R10, AR1\n SNOP 3\n" + k_return);
  CHECK(core.ar(1) == (taken ? 108u : 500u));
}

TEST_CASE("a predicated-off instruction writes nothing and modifies no address", "[core][predicate]") {
  BenchCore core;
  core.orr(8) = 2;
  core.poke<std::uint64_t>(core.sm, 0, 7);
  core.run(" [R1] SLDW *AR8++[OR8], R20\n| [R1] SADD.M1 1, R2, R2\n SNOP 7\n" + k_return);
  CHECK(core.r(20) == 0);
  CHECK(core.ar(8) == 0);
  CHECK(core.r(2) == 0);
}

TEST_CASE("a predicated load that changes its own predicate still modifies its address", "[core][predicate]") {
  BenchCore core;
  core.r(0) = 1;
  core.orr(8) = 8;
  core.run(" [R0] SLDW *AR8++[OR8], R0\n SNOP 7\n" + k_return);
  CHECK(core.r(0) == 0);
  CHECK(core.ar(8) == 64);
}

TEST_CASE("an entry label starts the program there", "[core][branch]") {
  BenchCore core;
  const std::string text = " SADD.M1 1, R1, R1\nsecond: SADD.M1 10, R1, R1\n" + k_return;
  core.run(text, {.entry = "second"});
  CHECK(core.r(1) == 10);
  CHECK_THROWS_WITH(core.run(text, {.entry = "secnd"}), Catch::Contains("did you mean 'second'"));
}

TEST_CASE("an endless loop ends at max_cycles and says where", "[core][branch]") {
  BenchCore core;
  const RunResult result = core.run("loop: SBR loop\n SNOP 6\n", {.max_cycles = 1000});
  CHECK(result.status == RunStatus::max_cycles);
  CHECK(result.cycles == 1000);
  CHECK(result.fault.kind == FaultKind::runaway);
  CHECK(result.fault.cycle == 1000);
  CHECK(result.fault.pc == 1);  // 1000 = 142 * 7 + 6: in the SNOP, which the limit cuts
  CHECK(result.fault.place.line == 2);
  CHECK_THAT(result.fault.message, Catch::Contains("1000 cycles"));
}
