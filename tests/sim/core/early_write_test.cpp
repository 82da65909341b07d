// SPDX-License-Identifier: Apache-2.0
// Writing a result early is an optimisation nobody can see: random programs end in the same state with and without it.
#include <catch2/catch.hpp>
#include <random>

#include "bench_core.h"
#include "random_program.h"

using namespace mtsim;
using namespace mtsim::sim;

namespace {

struct Outcome {
  RunResult result;
  RegisterState registers;
  std::vector<std::byte> am;
};

Outcome outcome_of(const isa::Program& program, bool early_writes) {
  BenchCore core;
  std::mt19937 random(5);
  for (auto& byte : core.am) byte = static_cast<std::byte>(random());
  for (auto& byte : core.sm) byte = static_cast<std::byte>(random());
  Context context;
  context.memory[0] = {core.sm.data(), core.sm.size()};
  context.memory[1] = {core.am.data(), core.am.size()};
  context.registers.r[63] = k_return_address;
  context.registers.r[1] = 1;
  for (int i = 10; i < 15; ++i) context.registers.r[i] = 1000 + i;
  const auto decoded = decode(program, {}, {.early_writes = early_writes});
  RingStorage ring;
  ring.fit(context, *decoded);
  Outcome outcome;
  outcome.result = interpret(context, k_loop_baseline, *decoded, {.entry = "", .max_cycles = 10'000});
  outcome.registers = context.registers;
  outcome.am = core.am;
  return outcome;
}

}  // namespace

TEST_CASE("random programs give the same registers, memory and cycles with and without early writes", "[core][early]") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const std::string text = RandomProgram(seed).text();
    CAPTURE(seed, text);
    const isa::Program program = isa::assemble(text, "random.s");
    const Outcome early = outcome_of(program, true), late = outcome_of(program, false);
    REQUIRE(early.result.status == RunStatus::done);
    REQUIRE(early.result.cycles == late.result.cycles);
    REQUIRE(early.registers.r == late.registers.r);
    REQUIRE(early.registers.ar == late.registers.ar);
    REQUIRE((early.registers.vr == late.registers.vr));
    REQUIRE((early.am == late.am));
  }
}

TEST_CASE("in a well-packed loop every result is written early", "[core][early]") {
  const isa::Program program = isa::assemble(
      "loop: VFMULAS32.M1 VR1, VR2, VR3, VR3\n| VFMULAS32.M2 VR1, VR2, VR4, VR4\n| SSUB.M1 1, R1, R1\n SNOP 6\n"
      " SLT 0, R1, R0\n [R0] SBR loop\n SNOP 6\n" +
          k_return,
      "loop.s");
  const auto decoded = decode(program, {});
  CHECK(decoded->max_vector_landings == 0);
  CHECK(decoded->max_scalar_landings == 0);
}
