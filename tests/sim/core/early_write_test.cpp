// SPDX-License-Identifier: Apache-2.0
// Writing a result early is an optimisation nobody can see: random programs end in the same state with and without it.
#include <catch2/catch.hpp>
#include <random>

#include "bench_core.h"

using namespace mtsim;
using namespace mtsim::sim;

namespace {

// Random packets over few registers, so that reads and writes in flight meet all the time; a counted loop with work in
// its delay slots around them.
class RandomProgram {
 public:
  explicit RandomProgram(unsigned seed) : m_random(seed) {}

  std::string text() {
    std::string out = " SMOVI 3, R20\n SMOVI 8, R21\n SMVAGA.M1 R21, OR0\n| SMVAGA.M2 R21, OR8\n SNOP 1\nloop:\n";
    const int length = pick(4, 14);
    for (int i = 0; i < length; ++i) out += packet();
    out += " SSUB.M1 1, R20, R20\n SLT 0, R20, R5\n [R5] SBR loop\n";
    for (int i = 0; i < 6; ++i) out += pick(0, 3) == 0 ? " SNOP 1\n" : packet();
    for (int i = 0; i < 3; ++i) out += packet();
    return out + k_return;
  }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(m_random); }
  std::string v() { return "VR" + std::to_string(pick(0, 5)); }
  std::string vpair() {
    const int low = 2 * pick(0, 2);
    return "VR" + std::to_string(low + 1) + ":VR" + std::to_string(low);
  }
  std::string r() { return "R" + std::to_string(pick(10, 14)); }
  std::string predicate() { return pick(0, 5) == 0 ? (pick(0, 1) ? "[R1] " : "[!R1] ") : ""; }

  std::string packet() {
    std::vector<std::string> ops;
    if (pick(0, 1)) ops.push_back("VFMULAS32.M1 " + v() + ", " + v() + ", " + v() + ", " + v());
    if (pick(0, 2) == 0) ops.push_back("VMOV.M2 " + v() + ", " + v());
    if (pick(0, 2) == 0) ops.push_back("VBALE2 " + v() + ", " + v() + ", " + v());
    if (pick(0, 2) == 0) ops.push_back(predicate() + "VLDDW *AR0++[OR0], " + vpair());
    if (pick(0, 3) == 0) ops.push_back("VSTW " + v() + ", *AR0");
    if (pick(0, 2) == 0) ops.push_back("SVBCAST.M1 " + r() + ", " + v());
    if (pick(0, 2) == 0) ops.push_back(predicate() + "SADD.M2 " + r() + ", " + r() + ", " + r());
    if (pick(0, 2) == 0) ops.push_back("SBALE2 " + r() + ", " + r() + ", " + r());
    if (pick(0, 2) == 0) ops.push_back(predicate() + "SLDW *AR8++[OR8], " + (pick(0, 2) == 0 ? "R1" : r()));
    if (pick(0, 6) == 0 && ops.empty()) ops.push_back("SADDA.M1 16, AR0, AR0");
    if (ops.empty()) return " SNOP " + std::to_string(pick(1, 4)) + "\n";
    std::string out;
    for (std::size_t i = 0; i < ops.size(); ++i) out += (i ? "| " : " ") + ops[i] + "\n";
    return out;
  }

  std::mt19937 m_random;
};

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
