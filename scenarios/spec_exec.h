// SPDX-License-Identifier: Apache-2.0
// The YAML file of `mtsim exec`: one microkernel, the registers and memory it starts with, and what to keep of its
// result. docs/scenarios.md describes every key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "isa/program.h"
#include "sim/config/machine.h"
#include "sim/core/executor.h"

namespace mtsim::scenarios {

struct ExecSpec {
  struct Image {  // bytes a memory holds at the start; read when they are put there
    sim::CoreMemory space = sim::CoreMemory::sm;
    std::uint64_t address = 0;
    std::int64_t bytes = 0;
    std::string path;  // of raw little-endian bytes; empty: `fill`
    std::byte fill{};
  };
  struct Dump {  // a range of a memory that goes to a file after the run
    sim::CoreMemory space = sim::CoreMemory::sm;
    std::uint64_t address = 0;
    std::int64_t bytes = 0;
    std::string file;    // as written in the spec
    std::string path;    // relative to the working folder
    std::string writer;  // for isa::FileUse: its place in the spec
  };

  std::string path;              // of the spec
  isa::Program program;          // assembled
  std::string entry;             // label; the first packet if empty
  sim::RegisterState registers;  // R63 holds the return address
  std::vector<Image> memory;     // in file order; later ones win where they overlap
  std::vector<Dump> dumps;
  std::int64_t max_cycles = k_default_max_cycles;

  static constexpr std::int64_t k_default_max_cycles = 100'000'000;
};

/// Reads the spec, the files it names, and assembles its program. Throws sim::ConfigError (every mistake,
/// file:line:col) and isa::IsaError for a program that does not assemble.
ExecSpec load_exec_spec(const std::string& path, const sim::MachineConfig& machine);

const char* to_string(sim::CoreMemory space);

}  // namespace mtsim::scenarios
