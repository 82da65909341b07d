// SPDX-License-Identifier: Apache-2.0
// One core on a bench: assembles a program, sets registers and memory, runs it.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "isa/assembler.h"
#include "sim/core/decode.h"
#include "sim/core/executor.h"

namespace mtsim::sim {

// The six delay slots of a return are the programs' own business; most tests just append this.
inline const std::string k_return = "\n SBR R63\n SNOP 6\n";

class BenchCore {
 public:
  explicit BenchCore(HostLevel level = best_host_level()) : sm(65536), am(786432), m_executor(sm, am, level) {}

  RunResult run(const std::string& text, RunOptions options = {}, const isa::Pipeline& pipeline = {}) {
    return run(isa::assemble(text, "test.s"), options, pipeline);
  }

  RunResult run(const isa::Program& program, RunOptions options = {}, const isa::Pipeline& pipeline = {}) {
    if (options.max_cycles > 100'000) options.max_cycles = 100'000;
    return m_executor.run(DecodedProgram(program, pipeline), options);
  }

  RunResult run(const DecodedProgram& program) { return m_executor.run(program, {.max_cycles = 100'000}); }

  RegisterState& registers() { return m_executor.registers(); }
  std::uint64_t& r(int i) { return registers().r[i]; }
  std::uint64_t& ar(int i) { return registers().ar[i]; }
  std::uint64_t& orr(int i) { return registers().orr[i]; }
  VectorRegister& vr(int i) { return registers().vr[i]; }
  void fill(int i, std::uint64_t value) { vr(i).lane.fill(value); }
  void fill_f32(int i, float low, float high) { fill(i, pair_of(low, high)); }
  float f32(int i, int lane) {  // 0..31
    float value;
    std::memcpy(&value, reinterpret_cast<const char*>(vr(i).lane.data()) + 4 * lane, 4);
    return value;
  }

  template <class T>
  void poke(std::vector<std::byte>& memory, std::size_t address, T value) {
    std::memcpy(memory.data() + address, &value, sizeof value);
  }
  template <class T>
  T peek(const std::vector<std::byte>& memory, std::size_t address) const {
    T value;
    std::memcpy(&value, memory.data() + address, sizeof value);
    return value;
  }

  static std::uint32_t bits(float x) {
    std::uint32_t b;
    std::memcpy(&b, &x, 4);
    return b;
  }
  static std::uint64_t pair_of(float low, float high) {
    return bits(low) | (static_cast<std::uint64_t>(bits(high)) << 32);
  }

  std::vector<std::byte> sm, am;

 private:
  Executor m_executor;
};

}  // namespace mtsim::sim
