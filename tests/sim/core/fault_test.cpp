// SPDX-License-Identifier: Apache-2.0
// A simulated fault is an outcome with core, cycle, pc, packet and place; the host never crashes.
#include <catch2/catch.hpp>

#include "bench_core.h"

using namespace mtsim;
using namespace mtsim::sim;

namespace {

Fault fault_of(const std::string& text) {
  BenchCore core;
  const RunResult result = core.run(text, {.core = 7});
  REQUIRE(result.status == RunStatus::fault);
  return result.fault;
}

}  // namespace

TEST_CASE("an access outside its memory faults and names core, cycle, pc, packet and place", "[core][fault]") {
  const Fault fault =
      fault_of(" SNOP 3\n SMOVI 0xC0000, R1\n SMVAGA.M1 R1, AR0\n SNOP 1\n VLDW *AR0, VR0\n" + k_return);
  CHECK(fault.kind == FaultKind::address);
  CHECK(fault.core == 7);
  CHECK(fault.cycle == 6);
  CHECK(fault.pc == 4);
  CHECK_THAT(fault.packet, Catch::Contains("VLDW"));
  CHECK(fault.place.line == 5);
  CHECK_THAT(fault.str(), Catch::Contains("0xc0000") && Catch::Contains("AM") && Catch::Contains("test.s:5"));
}

TEST_CASE("address and alignment faults cover every memory instruction", "[core][fault]") {
  const auto [access, unit] = GENERATE(table<std::string, int>({{"VLDW *AR0, VR0", 8},
                                                                {"VLDDW *AR0, VR1:VR0", 16},
                                                                {"VSTW VR0, *AR0", 8},
                                                                {"VSTDW VR1:VR0, *AR0", 16},
                                                                {"VSTDW0M16 VR1:VR0, *AR0", 16},
                                                                {"SLDH *AR8, R20", 4},
                                                                {"SLDW *AR8, R20", 8},
                                                                {"SLDDW *AR8, R21:R20", 16},
                                                                {"SSTH R20, *AR8", 4},
                                                                {"SSTW R20, *AR8", 8},
                                                                {"SSTDW R21:R20, *AR8", 16}}));
  CAPTURE(access);
  const auto at = [&](std::int64_t address) {
    BenchCore core;
    core.ar(0) = core.ar(8) = static_cast<std::uint64_t>(address);
    return core.run(" " + access + "\n" + k_return);
  };
  CHECK(at(512).status == RunStatus::done);
  CHECK(at(512 + unit).status == RunStatus::done);
  CHECK(at(512 + unit / 2).fault.kind == FaultKind::alignment);
  CHECK(at(-512).fault.kind == FaultKind::address);
  CHECK(at(0x7FFFFFFFFFFFFF00).fault.kind == FaultKind::address);
  CHECK(at(786432).fault.kind == FaultKind::address);
}

TEST_CASE("the last bytes of a memory are reachable and the next are not", "[core][fault]") {
  BenchCore core;
  core.ar(0) = 786432 - 128;
  core.ar(8) = 65536 - 4;
  CHECK(core.run(" VLDW *AR0, VR0\n| SLDH *AR8, R1\n" + k_return).status == RunStatus::done);
  core.ar(0) += 8;
  CHECK(core.run(" VLDW *AR0, VR0\n" + k_return).fault.kind == FaultKind::address);
  core.ar(8) += 4;
  CHECK(core.run(" SLDH *AR8, R1\n" + k_return).fault.kind == FaultKind::address);
}

TEST_CASE("the 1M16 store's lowest byte lies 240 below its address", "[core][fault]") {
  BenchCore core;
  core.ar(0) = 240;
  CHECK(core.run(" VSTDW1M16 VR1:VR0, *AR0\n" + k_return).status == RunStatus::done);
  core.ar(0) = 224;
  CHECK(core.run(" VSTDW1M16 VR1:VR0, *AR0\n" + k_return).fault.kind == FaultKind::address);
}

TEST_CASE("two taken branches in flight fault", "[core][fault]") {
  const Fault fault = fault_of("a: SBR a\n SNOP 2\n SBR R63\n SNOP 6\n");
  CHECK(fault.kind == FaultKind::two_taken_branches);
  CHECK(fault.cycle == 3);
}

TEST_CASE("a branch to a register that holds no return address faults", "[core][fault]") {
  const Fault fault = fault_of(" SMOVI 0x1000, R5\n SBR R5\n SNOP 6\n");
  CHECK(fault.kind == FaultKind::branch_target);
  CHECK_THAT(fault.message, Catch::Contains("0x1000"));
}

TEST_CASE("running off the end of the program faults", "[core][fault]") {
  CHECK(fault_of(" SADD.M1 1, R1, R1\n").kind == FaultKind::end_of_program);
}

TEST_CASE("a packet no assembler would make faults as illegal when it is reached", "[core][fault]") {
  isa::Program program = isa::assemble(" SADD.M1 1, R1, R1\n| SADD.M2 1, R2, R2\n" + k_return, "test.s");
  program.packets[0].instructions[1].unit = isa::Unit::SMAC1;
  BenchCore core;
  Executor executor(core.sm, core.am);
  const RunResult result = executor.run(DecodedProgram(program, {}));
  CHECK(result.fault.kind == FaultKind::illegal_packet);
}

TEST_CASE("after a fault the same core runs the next program", "[core][fault]") {
  BenchCore core;
  core.ar(0) = 4;
  CHECK(core.run(" VLDW *AR0, VR0\n" + k_return).status == RunStatus::fault);
  CHECK(core.run(" SADD.M1 1, R1, R1\n" + k_return).status == RunStatus::done);
  CHECK(core.r(1) == 1);
}

TEST_CASE("a fault in a loop that was entered for fewer iterations than .trip promises names the promise",
          "[core][fault][linear]") {
  const std::string text =
      ".param x, R10, pointer am\n.param y, R12, pointer am\n.param n, R16, count\n"
      ".linear\n.independent\n.reg AR, px, py\n.reg VR, a, b\n.reg R, left\n"
      "SMVAGA x, px\nSMVAGA y, py\nSMOV n, left\n"
      "loop: .trip 4\nVLDW *px++[16], a\nVFMULAS32 a, a, a, b\nVSTW b, *py++[16]\n"
      "SSUB 1, left, left\n[left] SBR loop\nSBR R63\n.endlinear\n";
  const isa::Program program = isa::assemble(text, "test.s");
  REQUIRE(program.linear_loops.at(0).stages == 3);
  const std::string promise = "the loop at 'loop' is promised to run at least 4 times (.trip at test.s:12:13)";
  const auto run = [&](std::uint64_t n, std::uint64_t y, std::int64_t max_cycles) {
    BenchCore core;
    core.r(10) = 0;
    core.r(12) = y;
    core.r(16) = n;
    return core.run(program, {.entry = "", .max_cycles = max_cycles});
  };
  for (const std::uint64_t n : {0, 1, 2}) {
    CAPTURE(n);
    const RunResult result = run(n, 0x40000, 100'000);
    REQUIRE(result.status == RunStatus::fault);
    CHECK(result.fault.kind == FaultKind::address);
    CHECK_THAT(result.fault.message, Catch::Contains(promise));
    // The other way such a run ends.
    const RunResult limit = run(n, 0x40000, 500);
    REQUIRE(limit.status == RunStatus::max_cycles);
    CHECK_THAT(limit.fault.message, Catch::Contains(promise));
  }
  // Three are enough for the code as it was scheduled.
  for (const std::uint64_t n : {3, 4, 40}) CHECK(run(n, 0x40000, 100'000).status == RunStatus::done);
  // Whatever else is wrong, up to the very last store, is no broken promise.
  for (const std::uint64_t n : {4, 5, 9}) {
    for (std::uint64_t stores = 0; stores < n; ++stores) {
      CAPTURE(n, stores);
      const RunResult result = run(n, 786432 - 128 * stores, 100'000);
      REQUIRE(result.status == RunStatus::fault);
      CHECK_THAT(result.fault.message, !Catch::Contains("promised"));
    }
  }
  const RunResult cut = run(1'000'000, 0x40000, 500);
  REQUIRE(cut.status == RunStatus::max_cycles);
  CHECK_THAT(cut.fault.message, !Catch::Contains("promised"));
}
