// SPDX-License-Identifier: Apache-2.0
// One core's memories and an executor, without a cluster around them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/library.h"
#include "sim/core/executor.h"

namespace mtsim::kernels {

/// Memories filled with a pattern no result has.
struct BareCore {
  static constexpr std::int64_t k_sm = 65536, k_am = 786432;
  std::vector<std::byte> sm = std::vector<std::byte>(k_sm, std::byte{0xEE});
  std::vector<std::byte> am = std::vector<std::byte>(k_am, std::byte{0xEE});

  sim::RunResult run(const char* name, const std::string& entry, const std::vector<std::uint64_t>& arguments,
                     const Defines& defines = {}) {
    const isa::Program& kernel = program(name, {}, defines);
    const sim::DecodedProgram decoded(kernel, {});
    sim::Executor executor(sm, am);
    for (std::size_t i = 0; i < arguments.size(); ++i)
      executor.registers().r[kernel.parameters[i].reg.index] = arguments[i];
    executor.registers().r[63] = sim::k_return_address;
    return executor.run(decoded, {.entry = entry});
  }
};

template <class Value>
std::vector<Value> get(const std::vector<std::byte>& memory, std::int64_t at, std::size_t count) {
  std::vector<Value> values(count);
  std::memcpy(values.data(), memory.data() + at, count * sizeof(Value));
  return values;
}

template <class Value>
void put(std::vector<std::byte>& memory, std::int64_t at, const std::vector<Value>& values) {
  std::memcpy(memory.data() + at, values.data(), values.size() * sizeof(Value));
}

}  // namespace mtsim::kernels
