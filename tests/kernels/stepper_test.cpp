// SPDX-License-Identifier: Apache-2.0
// Every shipped microkernel, from each of its labels: packet by packet it does what the executor does.
#include "sim/core/stepper.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "kernels/library.h"

namespace mtsim::kernels {
namespace {

constexpr std::int64_t k_max_cycles = 3'000;

struct Start {
  std::vector<std::byte> sm = std::vector<std::byte>(65536), am = std::vector<std::byte>(786432);
  sim::RegisterState registers;

  explicit Start(const isa::Program& program) {
    std::mt19937 random(11);
    for (auto* memory : {&sm, &am}) {
      for (std::size_t i = 0; i < memory->size(); i += 4) {  // FP32 of moderate size
        const float value = static_cast<float>(static_cast<int>(random() % 4096) - 2048) / 256;
        std::memcpy(memory->data() + i, &value, sizeof value);
      }
    }
    registers.r[63] = sim::k_return_address;
    for (std::size_t i = 0; i < program.parameters.size(); ++i) {
      const isa::Parameter& parameter = program.parameters[i];
      const bool in_am = parameter.kind == isa::ParameterKind::pointer_am;
      registers.set(parameter.reg, isa::is_pointer(parameter.kind) ? i * (in_am ? 0x10000 : 0x1000) : 256);
    }
  }
};

}  // namespace

TEST_CASE("every microkernel, packet by packet: registers, memory, cycles and faults of the executor, and back",
          "[library][stepper]") {
  int done = 0;
  for (const std::string_view name : names()) {
    const isa::Program& kernel = program(name);
    const sim::DecodedProgram decoded(kernel, {});
    std::vector<std::string> entries = {""};
    for (const auto& [label, packet] : kernel.labels) entries.push_back(label);
    for (const std::string& entry : entries) {
      CAPTURE(name, entry);
      const Start start(kernel);
      Start expected = start, stepped = start;
      sim::Executor executor(expected.sm, expected.am);
      executor.registers() = expected.registers;
      const sim::RunResult run = executor.run(decoded, {.entry = entry, .max_cycles = k_max_cycles});
      sim::Stepper stepper(kernel, {}, stepped.sm, stepped.am, stepped.registers,
                           {.entry = entry, .max_cycles = k_max_cycles, .undo_steps = 500});
      const auto check_end = [&] {
        REQUIRE(stepper.ended());
        const sim::RunResult result = stepper.result();
        CHECK(result.status == run.status);
        CHECK(result.fault.str() == run.fault.str());
        CHECK(result.cycles == run.cycles);
        CHECK(result.packets == run.packets);
        CHECK(result.units == run.units);
        CHECK((stepped.sm == expected.sm));
        CHECK((stepped.am == expected.am));
        CHECK(stepper.registers().r == executor.registers().r);
        CHECK((stepper.registers().vr == executor.registers().vr));
        CHECK(stepper.registers().ar == executor.registers().ar);
        CHECK(stepper.registers().orr == executor.registers().orr);
        CHECK(stepper.registers().svr == executor.registers().svr);
      };
      stepper.go_to(INT64_MAX);
      check_end();
      while (stepper.steps() > 0) REQUIRE(stepper.step_back());
      CHECK((stepped.sm == start.sm));
      CHECK((stepped.am == start.am));
      CHECK(stepper.registers().r == start.registers.r);
      CHECK((stepper.registers().vr == start.registers.vr));
      CHECK(stepper.registers().ar == start.registers.ar);
      CHECK(stepper.in_flight().empty());
      stepper.go_to(INT64_MAX);
      check_end();
      done += run.status == sim::RunStatus::done ? 1 : 0;
    }
  }
  CHECK(done > 20);  // the others fault or run long on these arguments
}

}  // namespace mtsim::kernels
