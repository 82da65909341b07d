// SPDX-License-Identifier: Apache-2.0
// The schedule doctor on hand packets: what it says of them, and that the program with its loops replaced writes the
// same bytes.
#include <catch2/catch.hpp>

#include <random>

#include "bench_core.h"
#include "isa/printer.h"
#include "isa/reschedule.h"

using namespace mtsim;
using namespace mtsim::sim;
using Catch::Matchers::Contains;

namespace {

using Registers = std::vector<std::pair<int, std::uint64_t>>;

struct Ended {
  std::vector<std::byte> am;
  std::int64_t cycles = 0;
};

Ended run(const isa::Program& program, const Registers& registers, const std::string& entry = "") {
  BenchCore core;
  std::mt19937 random(7);
  const auto fill = [&](std::vector<std::byte>& memory) {
    for (std::size_t i = 0; i < memory.size(); i += 4) {
      core.poke(memory, i, static_cast<float>(static_cast<int>(random() % 2048) - 1024) / 64);
    }
  };
  fill(core.sm);
  fill(core.am);
  for (const auto& [reg, value] : registers) core.r(reg) = value;
  RunOptions options;
  options.entry = entry;
  const RunResult result = core.run(program, options);
  INFO(result.fault.str());
  REQUIRE(result.status == RunStatus::done);
  return {core.am, result.cycles};
}

std::vector<std::byte> am_after(const isa::Program& program, const Registers& registers,
                                const std::string& entry = "") {
  return run(program, registers, entry).am;
}

std::int64_t cycles_of(const isa::Program& program, const Registers& registers) {
  return run(program, registers).cycles;
}

// y[i] = x[i]^3 on 128 bytes an iteration, 20 cycles of them: nothing overlaps.
const std::string k_cube =
    ".param x, R10, pointer am\n.param y, R12, pointer am\n.param n, R16, count\n"
    "SMVAGA.M1 R10, AR0 | SMVAGA.M2 R12, AR1\nVMOVI.M1 0, VR9 | SADD.M1 0, R16, R0\n"
    "loop:\n"
    "VLDW *AR0++[16], VR0 | SSUB.M1 1, R0, R0\nSNOP 8\nVFMULAS32.M1 VR0, VR0, VR9, VR1\nSNOP 5\n"
    "VFMULAS32.M1 VR1, VR0, VR9, VR2 | [R0] SBR loop\nSNOP 5\nVSTW VR2, *AR1++[16]\n"
    "SBR R63\nSNOP 6\n";

}  // namespace

TEST_CASE("a loop whose iterations do not overlap becomes a pipelined one with the same results",
          "[core][reschedule]") {
  const isa::Program hand = isa::assemble(k_cube, "cube.s");
  // Without a promise the next load must stay behind the store.
  CHECK(isa::reschedule(hand, {}).loops.at(0).report.interval == 22);
  const isa::Rescheduled result = isa::reschedule(hand, {}, {.allow_assumed = false, .independent = true});
  REQUIRE(result.loops.size() == 1);
  const isa::RescheduledLoop& loop = result.loops[0];
  CAPTURE(isa::print(loop));
  CHECK(loop.hand_interval == 22);
  CHECK(loop.report.interval == 7);
  REQUIRE(loop.replaced);
  for (const int n : {1, 2, 3, 40}) {
    CAPTURE(n);
    const std::vector<std::pair<int, std::uint64_t>> registers{
        {10, 0}, {12, 0x40000}, {16, static_cast<std::uint64_t>(n)}};
    CHECK((am_after(result.program, registers) == am_after(hand, registers)));
    if (n < loop.call_iterations) continue;
    const int further = n - loop.call_iterations;  // what a call takes is what it says
    const auto expected =
        loop.call_cycles - loop.hand_call_cycles + further * (loop.report.interval - loop.hand_interval);
    CHECK(cycles_of(result.program, registers) - cycles_of(hand, registers) == expected);
  }
  // Its text assembles to the same packets.
  const isa::Program again = isa::assemble(isa::print(result.program), "again.s");
  CHECK(again.fingerprint() == result.program.fingerprint());
}

TEST_CASE("a value that outlives its register is no bound: the doctor copies it, as the scheduler of linear code does",
          "[core][reschedule]") {
  // x is read again 12 cycles after it landed: 13 cycles an iteration in one register.
  const isa::Program hand = isa::assemble(
      ".param x, R10, pointer am\n.param y, R12, pointer am\n.param n, R16, count\n"
      "SMVAGA.M1 R10, AR0 | SMVAGA.M2 R12, AR1\nVMOVI.M1 0, VR9 | SADD.M1 0, R16, R0\n"
      "loop:\n"
      "VLDW *AR0++[16], VR0 | SSUB.M1 1, R0, R0\nSNOP 8\nVFMULAS32.M1 VR0, VR0, VR9, VR1\nSNOP 5\n"
      "VFMULAS32.M1 VR1, VR1, VR9, VR2\nSNOP 5\nVFMULAS32.M1 VR2, VR0, VR9, VR3 | [R0] SBR loop\nSNOP 5\n"
      "VSTW VR3, *AR1++[16]\nSBR R63\nSNOP 6\n",
      "late.s");
  const isa::Rescheduled result = isa::reschedule(hand, {}, {.allow_assumed = false, .independent = true});
  const isa::RescheduledLoop& loop = result.loops.at(0);
  CAPTURE(isa::print(loop));
  CHECK(loop.hand_interval == 28);
  CHECK(loop.report.lifetime.cycles == 13);
  CHECK(loop.report.bound() == 7);
  CHECK(loop.report.interval == 7);
  CHECK(loop.report.copies == 1);
  REQUIRE(loop.replaced);
  for (const int n : {1, 4, 5, 6, 40}) {
    CAPTURE(n);
    const std::vector<std::pair<int, std::uint64_t>> registers{
        {10, 0}, {12, 0x40000}, {16, static_cast<std::uint64_t>(n)}};
    CHECK((am_after(result.program, registers) == am_after(hand, registers)));
  }
  CHECK_THAT(isa::print(loop), Contains("lifetime bound     13") && !Contains("cannot be shorter"));
}

TEST_CASE("the doctor names --independent where a store and a load hold a loop up, and nothing of .trip",
          "[core][reschedule]") {
  const isa::Program hand = isa::assemble(k_cube, "cube.s");
  const isa::RescheduledLoop waits = isa::reschedule(hand, {}).loops.at(0);
  CAPTURE(isa::print(waits));
  CHECK(waits.report.bound() == 22);
  CHECK(waits.report.independent_bound == 7);
  CHECK_THAT(isa::print(waits),
             Contains("nothing shows that VSTW (line 13) and VLDW (line 7) touch different bytes: --independent") &&
                 Contains("the bound is 7\n") && Contains("it cannot be shorter without --independent\n"));
  const isa::RescheduleOptions promised{.allow_assumed = false, .independent = true};
  const std::string replaced = isa::print(isa::reschedule(hand, {}, promised).loops.at(0));
  CHECK_THAT(replaced, Contains("below 4 iterations the hand packets run, behind a test at run time\n"));
  // Its bound is that of its units.
  const isa::Program gemm = isa::assemble_file(MTSIM_SOURCE_DIR "/kernels/gemm/gemm_f32_6x128.s");
  const std::string kept = isa::print(isa::reschedule(gemm, {}).loops.at(0));
  for (const std::string& text : {isa::print(waits), replaced, kept}) CHECK_THAT(text, !Contains(".trip"));
  for (const std::string& text : {replaced, kept}) CHECK_THAT(text, !Contains("--independent"));
}

TEST_CASE("a hand loop may count with SADD -1", "[core][reschedule]") {
  std::string text = k_cube;
  text.replace(text.find("SSUB.M1 1, R0"), 13, "SADD.M1 -1, R0");
  const isa::Program hand = isa::assemble(text, "cube.s");
  const isa::Rescheduled result = isa::reschedule(hand, {}, {.allow_assumed = false, .independent = true});
  CAPTURE(isa::print(result.loops.at(0)));
  REQUIRE(result.loops.at(0).replaced);
  CHECK(result.loops[0].report.interval == 7);
  for (const int n : {1, 3, 4, 5, 40}) {
    CAPTURE(n);
    const Registers registers{{10, 0}, {12, 0x40000}, {16, static_cast<std::uint64_t>(n)}};
    CHECK((am_after(result.program, registers) == am_after(hand, registers)));
  }
}

TEST_CASE("the published GEMM micro-kernel: its loop cannot be shorter, and a new schedule gives the same bits",
          "[core][reschedule]") {
  const isa::Program hand = isa::assemble_file(MTSIM_SOURCE_DIR "/kernels/gemm/gemm_f32_6x128.s");
  const isa::Rescheduled kept = isa::reschedule(hand, {});
  CHECK_FALSE(kept.loops.at(0).replaced);
  CHECK_THAT(kept.loops.at(0).why_kept, Contains("the same initiation interval, and a call is 17 cycles shorter"));
  CHECK(kept.program.fingerprint() == hand.fingerprint());
  isa::RescheduleOptions equal;
  equal.replace_equal = true;
  const isa::Rescheduled result = isa::reschedule(hand, {}, equal);
  REQUIRE(result.loops.size() == 1);
  const isa::RescheduledLoop& loop = result.loops[0];
  CAPTURE(isa::print(loop));
  CHECK(loop.hand_interval == 16);
  CHECK(loop.report.interval == 16);
  CHECK(loop.report.bound() == 16);
  CHECK_THAT(isa::print(loop), Contains(": it cannot be shorter"));
  REQUIRE(loop.replaced);
  for (const int k : {4, 6, 8, 32}) {
    for (const std::string entry : {"accumulate", "write_only"}) {
      CAPTURE(k, entry);
      const auto size = static_cast<std::uint64_t>(k);
      const std::vector<std::pair<int, std::uint64_t>> registers{{10, 0},        {12, 0},   {14, 0x80000}, {16, size},
                                                                 {18, 4 * size}, {20, 512}, {22, 512}};
      CHECK((am_after(result.program, registers, entry) == am_after(hand, registers, entry)));
    }
  }
}

TEST_CASE("a packet's addresses are those in front of its post-modifies", "[core][reschedule]") {
  // y[i] = x[i]; x[i] = 1: the load moves AR0 in the packet in which the store still uses it.
  const isa::Program hand = isa::assemble(
      "SMVAGA.M1 R10, AR0 | SMVAGA.M2 R12, AR1\nVMOVI.M1 0x3f8000003f800000, VR9 | SADD.M1 0, R16, R1\nSNOP 3\n"
      "loop: VLDW *AR0++[16], VR0 | VSTW VR9, *AR0\nSSUB.M1 1, R1, R1\nSNOP 7\nVSTW VR0, *AR1++[16]\n"
      "[R1] SBR loop\nSNOP 6\nSBR R63\nSNOP 6\n",
      "take.s");
  const isa::Rescheduled result = isa::reschedule(hand, {});
  const std::vector<std::pair<int, std::uint64_t>> registers{{10, 0}, {12, 0x4000}, {16, 5}};
  CHECK((am_after(result.program, registers) == am_after(hand, registers)));
}

TEST_CASE("the doctor says why a loop stays", "[core][reschedule]") {
  const auto verdict = [](const std::string& text) {
    const isa::Rescheduled result = isa::reschedule(isa::assemble(text, "k.s"), {});
    REQUIRE(result.loops.size() == 1);
    CHECK_FALSE(result.loops[0].replaced);
    return result.loops[0].why_kept;
  };
  // The first iteration stores the old VR1 while the load in front of the loop is in flight.
  CHECK_THAT(verdict("VMOVI 0, VR1\nVLDW *AR0, VR1\nloop:\nVSTW VR1, *AR1++[16] | SSUB.M1 1, R0, R0\n"
                     "VLDW *AR0++[16], VR1\nSNOP 2\n[R0] SBR loop\nSNOP 6\nSBR R63\nSNOP 6\n"),
             Contains("reads the old VR1"));
  CHECK_THAT(verdict("loop:\nSLT R1, R2, R0\nSADD.M1 1, R1, R1\n[R0] SBR loop\nSNOP 6\nSBR R63\nSNOP 6\n"),
             Contains("how often the loop runs is not known"));
  // By two a pass the counter may never be zero.
  CHECK_THAT(verdict("loop:\nSADD.M1 -2, R0, R0\nSADD.M1 1, R1, R1\n[R0] SBR loop\nSNOP 6\nSBR R63\nSNOP 6\n"),
             Contains("R0 is not counted by one SSUB 1, R0, R0 or SADD -1, R0, R0"));
}
