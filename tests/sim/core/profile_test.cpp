// SPDX-License-Identifier: Apache-2.0
// A profile is a run without data: the same cycles and unit counts, and the footprint of every pointer.
#include <catch2/catch.hpp>

#include "bench_core.h"

using namespace mtsim;
using namespace mtsim::sim;

namespace {

const std::string k_copy =
    ".param from, R10, pointer am\n.param to, R12, pointer am\n.param scale, R14, pointer sm\n.param count, R16, "
    "count\n"
    " SMVAGA.M1 R10, AR0\n| SMVAGA.M2 R12, AR1\n"
    " SMVAGA.M1 R14, AR8\n"
    " SNOP 2\n"
    "loop: VLDW *AR0++[16], VR0\n| SLDW *+AR8[2], R20\n| SSUB.M1 1, R16, R16\n"
    " SLT 0, R16, R0\n"
    " SNOP 7\n"
    " [R0] SBR loop\n| VSTW VR0, *AR1++[16]\n"
    " SNOP 6\n"
    " SBR R63\n SNOP 6\n";

}  // namespace

TEST_CASE("a profile counts the cycles and issues of the run with data", "[core][profile]") {
  const DecodedProgram program(isa::assemble(k_copy, "copy.s"), {});
  const std::uint64_t arguments[] = {4096, 8192, 64, 5};
  const KernelProfile profiled = profile(program, arguments);
  BenchCore core;
  core.r(10) = 4096;
  core.r(12) = 8192;
  core.r(14) = 64;
  core.r(16) = 5;
  const RunResult run = core.run(k_copy);
  CHECK(profiled.result.status == RunStatus::done);
  CHECK(profiled.result.cycles == run.cycles);
  CHECK(profiled.result.packets == run.packets);
  CHECK(profiled.result.instructions == run.instructions);
  CHECK(profiled.result.units == run.units);
}

TEST_CASE("a profile knows what each pointer reads and writes, relative to it", "[core][profile]") {
  const DecodedProgram program(isa::assemble(k_copy, "copy.s"), {});
  const std::uint64_t arguments[] = {0, 0, 0, 5};
  const KernelProfile profiled = profile(program, arguments);
  REQUIRE(profiled.pointers.size() == 4);
  CHECK(profiled.pointers[0].read.lo == 0);
  CHECK(profiled.pointers[0].read.hi == 5 * 128);
  CHECK(profiled.pointers[0].write.empty());
  CHECK(profiled.pointers[0].alignment == 8);
  CHECK(profiled.pointers[1].read.empty());
  CHECK(profiled.pointers[1].write.hi == 5 * 128);
  CHECK(profiled.pointers[2].read.lo == 16);
  CHECK(profiled.pointers[2].read.hi == 24);
  CHECK(profiled.pointers[3].read.empty());
}

TEST_CASE("an address that comes from no pointer is a fault of the profile", "[core][profile]") {
  const DecodedProgram program(isa::assemble(" VLDW *AR0, VR0\n" + k_return, "stray.s"), {});
  const KernelProfile profiled = profile(program, {});
  CHECK(profiled.result.status == RunStatus::fault);
  CHECK(profiled.result.fault.kind == FaultKind::address);
}

TEST_CASE("the wrong number of arguments is refused", "[core][profile]") {
  const DecodedProgram program(isa::assemble(k_copy, "copy.s"), {});
  const std::uint64_t arguments[] = {0, 0};
  CHECK_THROWS_WITH(profile(program, arguments), Catch::Contains("takes 4 arguments") && Catch::Contains("got 2"));
}
