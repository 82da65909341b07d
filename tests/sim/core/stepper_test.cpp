// SPDX-License-Identifier: Apache-2.0
// A run packet by packet ends as the executor's does, and going back undoes it bit for bit.
#include "sim/core/stepper.h"

#include <catch2/catch.hpp>
#include <random>

#include "bench_core.h"
#include "random_program.h"

using namespace mtsim;
using namespace mtsim::sim;
using Catch::Matchers::Contains;

namespace {

constexpr std::size_t k_memory_bytes = 32768;

/// One core's start and its memories.
struct Bench {
  std::vector<std::byte> sm = std::vector<std::byte>(k_memory_bytes), am = std::vector<std::byte>(k_memory_bytes);
  RegisterState registers;

  explicit Bench(unsigned seed = 5) {
    std::mt19937 random(seed);
    for (auto& byte : am) byte = static_cast<std::byte>(random());
    for (auto& byte : sm) byte = static_cast<std::byte>(random());
    registers.r[63] = k_return_address;
    registers.r[1] = 1;
    for (int i = 10; i < 15; ++i) registers.r[i] = 1000 + i;
  }
  Stepper stepper(const isa::Program& program, const Stepper::Options& options = {},
                  const isa::Pipeline& pipeline = {}) {
    return Stepper(program, pipeline, sm, am, registers, options);
  }
  Stepper stepper(const std::string& text, const Stepper::Options& options = {}) {
    return stepper(isa::assemble(text, "test.s"), options);
  }
};

bool same(const RegisterState& a, const RegisterState& b) {
  return a.r == b.r && a.vr == b.vr && a.ar == b.ar && a.orr == b.orr && a.svr == b.svr;
}

void check_same(const RunResult& a, const RunResult& b) {
  CHECK(a.status == b.status);
  CHECK(a.fault.str() == b.fault.str());
  CHECK(a.fault.kind == b.fault.kind);
  CHECK(a.cycles == b.cycles);
  CHECK(a.packets == b.packets);
  CHECK(a.idles == b.idles);
  CHECK(a.instructions == b.instructions);
  CHECK(a.units == b.units);
}

/// All that a step may change.
struct Snapshot {
  explicit Snapshot(const Stepper& s)
      : cycle(s.cycle()),
        packet(s.packet()),
        registers(s.registers()),
        am(s.memory(CoreMemory::am).begin(), s.memory(CoreMemory::am).end()),
        sm(s.memory(CoreMemory::sm).begin(), s.memory(CoreMemory::sm).end()) {
    for (const Stepper::InFlight& f : s.in_flight()) {
      in_flight.push_back(
          {f.reg.flat(), f.lands, f.issued, f.packet, f.instruction, static_cast<std::int64_t>(f.sequence)});
      values.push_back(f.value);
    }
    if (const auto branch = s.pending_branch()) in_flight.push_back({branch->target, branch->at});
  }
  bool operator==(const Snapshot& other) const {
    return cycle == other.cycle && packet == other.packet && same(registers, other.registers) && am == other.am &&
           sm == other.sm && in_flight == other.in_flight && values == other.values;
  }
  std::int64_t cycle;
  int packet;
  RegisterState registers;
  std::vector<std::byte> am, sm;
  std::vector<std::vector<std::int64_t>> in_flight;
  std::vector<VectorRegister> values;
};

/// Runs a program both ways, then back to the start and forward again; true when the executor ended well.
bool agree(const isa::Program& program, std::int64_t undo_steps, std::int64_t max_cycles = 10'000) {
  Bench expected, bench;
  Executor executor(expected.sm, expected.am);
  executor.registers() = expected.registers;
  const RunResult run = executor.run(DecodedProgram(program, {}), {.entry = "", .max_cycles = max_cycles});

  Stepper stepper = bench.stepper(program, {.entry = "", .max_cycles = max_cycles, .undo_steps = undo_steps});
  std::vector<Snapshot> forward;
  while (!stepper.ended()) {
    forward.emplace_back(stepper);
    stepper.step();
  }
  const auto check_end = [&] {
    check_same(stepper.result(), run);
    CHECK(same(stepper.registers(), executor.registers()));
    CHECK((bench.am == expected.am));
    CHECK((bench.sm == expected.sm));
    CHECK(stepper.in_flight().empty());
    CHECK(stepper.cycle() == run.cycles);
  };
  check_end();
  const std::int64_t steps = stepper.steps();
  CHECK(steps == static_cast<std::int64_t>(forward.size()));
  CHECK(stepper.undo_steps() == std::min(steps, undo_steps));
  for (auto expected_state = forward.rbegin(); expected_state != forward.rend(); ++expected_state) {
    REQUIRE(stepper.step_back());
    REQUIRE_FALSE(stepper.ended());
    REQUIRE((Snapshot(stepper) == *expected_state));
  }
  CHECK_FALSE(stepper.step_back());
  for (const Snapshot& expected_state : forward) {
    REQUIRE((Snapshot(stepper) == expected_state));
    stepper.step();
  }
  check_end();
  stepper.go_to(steps / 2);
  if (steps > 0) CHECK((Snapshot(stepper) == forward[static_cast<std::size_t>(steps / 2)]));
  stepper.go_to(INT64_MAX);
  check_end();
  return run.status == RunStatus::done;
}

}  // namespace

TEST_CASE("random programs run packet by packet as the executor runs them, and backwards bit for bit",
          "[core][stepper]") {
  const std::int64_t undo_steps = GENERATE(2048, 5);  // all from the log; most from checkpoints
  int done = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    const std::string text = RandomProgram(seed).text();
    CAPTURE(seed, text, undo_steps);
    done += agree(isa::assemble(text, "random.s"), undo_steps) ? 1 : 0;
  }
  CHECK(done == 60);
}

TEST_CASE("faults and the cycle limit end both ways of running alike", "[core][stepper]") {
  const std::string text = GENERATE(
      as<std::string>{},
      " SLDW *AR8, R1\n VLDW *AR0, VR1\n SMOVI24 4, R2\n SMVAGA.M1 R2, AR8\n SNOP 1\n SLDW *AR8, R1\n" + k_return,
      " SMOVI 0x100000, R1\n SMVAGA.M1 R1, AR0\n SNOP 1\n VSTW VR1, *AR0 | SSTW R1, *AR8++[1]\n" + k_return,
      " SNOP 3\n", " SBR R63\n SBR R63\n SNOP 6\n", " SBR R12\n SNOP 6\n",
      "loop: SBR loop\n VLDW *AR0, VR1\n SNOP 20\n", " SBR end\n SNOP 6\nend:\n",
      "loop: SADD.M1 1, R2, R2 | SBR loop\n SNOP 6\n");
  CAPTURE(text);
  CHECK_FALSE(agree(isa::assemble(text, "fault.s"), 3, 25));
  CHECK_FALSE(agree(isa::assemble(text, "fault.s"), 3, 0));
}

TEST_CASE("an illegal packet faults in both ways of running", "[core][stepper]") {
  isa::Program program = isa::assemble(" SMOVI24 1, R2\n SADD.M1 1, R1, R1\n" + k_return, "illegal.s");
  program.packets[1].instructions.push_back(program.packets[1].instructions[0]);
  CHECK_FALSE(agree(program, 10));
  CHECK_FALSE(agree(isa::Program{}, 10));
}

TEST_CASE("a result is in flight until the cycle whose packet reads it", "[core][stepper]") {
  Bench bench;
  bench.registers.ar[8] = 64;
  bench.registers.r[2] = 1;
  std::uint64_t loaded;
  std::memcpy(&loaded, bench.sm.data() + 64, 8);
  Stepper stepper = bench.stepper(" SLDW *AR8, R2\n SNOP 5\n SSTW R2, *+AR8[1]\n SSTW R2, *+AR8[2]\n" + k_return);

  const Stepper::Change& load = stepper.step();
  REQUIRE(load.issued.size() == 1);
  CHECK(load.issued[0].reg.str() == "R2");
  CHECK(load.issued[0].value.lane[0] == loaded);
  CHECK(load.issued[0].lands == 7);
  CHECK(load.landed.empty());
  REQUIRE(stepper.in_flight().size() == 1);
  CHECK(stepper.registers().r[2] == 1);

  CHECK(stepper.step().cycles == 5);
  CHECK(stepper.cycle() == 6);
  CHECK(stepper.registers().r[2] == 1);

  const Stepper::Change& early = stepper.step();  // the first store
  REQUIRE(early.old_reads.size() == 1);
  CHECK(early.old_reads[0].reg.str() == "R2");
  CHECK(early.old_reads[0].newer.lands == 7);
  CHECK(early.old_reads[0].newer.packet == 0);
  REQUIRE(early.stores.size() == 1);
  CHECK(early.stores[0].space == CoreMemory::sm);
  CHECK(early.stores[0].address == 72);
  CHECK(early.stores[0].bytes[0] == std::byte{1});
  REQUIRE(early.landed.size() == 1);
  CHECK(early.landed[0].old.lane[0] == 1);
  CHECK(stepper.registers().r[2] == loaded);
  CHECK(stepper.in_flight().empty());

  CHECK(stepper.step().old_reads.empty());
}

TEST_CASE("a result whose early writing nobody could see is in flight all the same", "[core][stepper]") {
  Bench bench;
  Stepper stepper = bench.stepper(" VFMULAS32.M1 VR1, VR2, VR3, VR4\n SNOP 5\n VMOV.M1 VR4, VR5\n" + k_return);
  const VectorRegister before = stepper.value({isa::RegisterFile::VR, 4});
  stepper.step();
  CHECK(stepper.value({isa::RegisterFile::VR, 4}) == before);
  REQUIRE(stepper.in_flight().size() == 1);
  CHECK(stepper.in_flight()[0].lands == 6);
}

TEST_CASE("of two results that land in one register together the younger stays, and both are shown",
          "[core][stepper]") {
  Bench bench;
  bench.registers.r[1] = 10;
  bench.registers.r[2] = 0;
  // SMVAGA-free: a load of 7 cycles and, six later, an addition of one.
  Stepper stepper = bench.stepper(" SLDW *AR8, R2\n SNOP 5\n SADD.M1 5, R1, R2\n" + k_return);
  stepper.go_to(3);
  const Stepper::Change* last = stepper.last();
  REQUIRE(last != nullptr);
  REQUIRE(last->landed.size() == 2);
  CHECK(last->landed[0].result.packet == 0);
  CHECK(last->landed[1].result.packet == 2);
  CHECK(last->landed[1].old == last->landed[0].result.value);
  CHECK(stepper.registers().r[2] == 15);
  stepper.step_back();
  CHECK(stepper.registers().r[2] == 0);
  CHECK(stepper.in_flight().size() == 1);
}

TEST_CASE("a taken branch is pending for its delay slots and cuts the SNOP that reaches past them", "[core][stepper]") {
  Bench bench;
  Stepper stepper = bench.stepper(" SBR there\n SADD.M1 1, R1, R1\n SNOP 20\n SNOP 1\nthere:" + k_return);
  REQUIRE(stepper.step().taken);
  REQUIRE(stepper.pending_branch());
  CHECK(stepper.pending_branch()->target == 4);
  CHECK(stepper.pending_branch()->at == 7);
  CHECK_FALSE(stepper.step().jumped);
  const Stepper::Change& cut = stepper.step();
  CHECK(cut.cycles == 5);
  REQUIRE(cut.jumped);
  CHECK(cut.jumped->target == 4);
  CHECK(stepper.packet() == 4);
  CHECK_FALSE(stepper.pending_branch());
}

TEST_CASE("a predicate that does not hold keeps its instruction's sources unread, but is read itself",
          "[core][stepper]") {
  Bench bench;
  bench.registers.r[1] = 0;
  Stepper stepper = bench.stepper(
      " SLDW *AR8, R10 | VSTW VR1, *AR0\n SLDW *AR8, R2\n [R1] SADD.M1 R10, R10, R11\n [!R1] SADD.M1 R10, R11, R11\n "
      "[R2] SADD.M1 1, R12, R12\n" +
      k_return);
  stepper.step();
  stepper.step();
  CHECK(stepper.step().old_reads.empty());
  const auto reads = stepper.step().old_reads;
  REQUIRE(reads.size() == 1);
  CHECK(reads[0].reg.str() == "R10");
  const auto predicate = stepper.step().old_reads;
  REQUIRE(predicate.size() == 1);
  CHECK(predicate[0].reg.str() == "R2");
}

TEST_CASE("a store of lanes apart shows the bytes it wrote and no others", "[core][stepper]") {
  Bench bench;
  bench.registers.vr[2].lane.fill(0x1111111111111111);
  bench.registers.vr[3].lane.fill(0x2222222222222222);
  const std::vector<std::byte> before = bench.am;
  Stepper stepper = bench.stepper(" VSTDW0M16 VR3:VR2, *AR0\n" + k_return);
  std::vector<std::byte> rebuilt = before;
  for (const Stepper::Store& store : stepper.step().stores) {
    CHECK(store.space == CoreMemory::am);
    CHECK(std::equal(store.old.begin(), store.old.end(), before.begin() + static_cast<std::ptrdiff_t>(store.address)));
    std::copy(store.bytes.begin(), store.bytes.end(), rebuilt.begin() + static_cast<std::ptrdiff_t>(store.address));
  }
  CHECK((rebuilt == bench.am));
  CHECK((bench.am != before));
  stepper.step_back();
  CHECK((bench.am == before));
}

TEST_CASE("a packet that faults shows what it did all the same, and can be undone", "[core][stepper]") {
  Bench bench;
  bench.registers.ar[0] = 4;  // not a multiple of 8
  const std::vector<std::byte> sm = bench.sm;
  Stepper stepper = bench.stepper(" VSTW VR1, *AR0 | SSTW R63, *AR8 | SADD.M1 1, R1, R1\n" + k_return);
  const Stepper::Change& fault = stepper.step();
  REQUIRE(stepper.ended());
  CHECK(stepper.result().fault.kind == FaultKind::alignment);
  REQUIRE(fault.stores.size() == 1);
  CHECK(fault.stores[0].space == CoreMemory::sm);
  CHECK(fault.landed.size() == 1);
  CHECK(stepper.registers().r[1] == 2);
  CHECK(stepper.step_back());
  CHECK_FALSE(stepper.ended());
  CHECK((bench.sm == sm));
  CHECK(stepper.registers().r[1] == 1);
}

TEST_CASE("a long run keeps few checkpoints and can go anywhere", "[core][stepper]") {
  const isa::Program program = isa::assemble(
      " SMOVI 3000, R2\n SNOP 1\nloop: SSUB.M1 1, R2, R2\n SADD.M1 R2, R3, R3\n [R2] SBR loop\n SNOP 6\n" + k_return,
      "long.s");
  Bench bench;
  Stepper stepper = bench.stepper(program, {.undo_steps = 50});
  stepper.go_to(INT64_MAX);
  const std::int64_t steps = stepper.steps();
  CHECK(steps > 12'000);
  for (const std::int64_t target : {steps - 10, steps - 4'000, std::int64_t{7}, std::int64_t{9'001}, std::int64_t{0}}) {
    Bench other;
    Stepper straight = other.stepper(program);
    straight.go_to(target);
    stepper.go_to(target);
    CAPTURE(target);
    CHECK((Snapshot(stepper) == Snapshot(straight)));
  }
}

TEST_CASE("the stepper refuses what the executor refuses", "[core][stepper]") {
  Bench bench;
  const isa::Program program =
      isa::assemble(" VFMULAS32.M1 VR1, VR2, VR3, VR4\n SNOP 5\n VMOV.M1 VR4, VR5\n" + k_return, "k.s");
  CHECK_THROWS_AS(bench.stepper(program, {.entry = "none"}), isa::IsaError);
  isa::Pipeline slower;
  slower.override(isa::Mnemonic::VFMULAS32, 9);
  CHECK_THROWS_AS(bench.stepper(program, {}, slower), isa::IsaError);
}
