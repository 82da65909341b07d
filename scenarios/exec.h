// SPDX-License-Identifier: Apache-2.0
// Runs an exec spec: one microkernel on one core, without SystemC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "isa/diagnostic.h"
#include "scenarios/spec_exec.h"
#include "sim/config/machine.h"
#include "sim/core/executor.h"

namespace mtsim::scenarios {

struct ExecOutcome {
  sim::RunResult result;
  std::vector<std::int64_t> packet_counts;  // issues of each packet
  std::int64_t macs = 0;                    // multiply-accumulates of the vector FMA instructions issued, lanes counted
  std::vector<std::string> assumed_instructions;
  std::vector<std::string> assumed_packet_rules;
  std::vector<isa::Diagnostic> check;  // what `mtsim check` says about the program on this machine
};

/// Both memories of one core.
struct CoreBytes {
  std::vector<std::byte> sm, am;
  std::vector<std::byte>& of(sim::CoreMemory space) { return space == sim::CoreMemory::sm ? sm : am; }
};
/// As the spec fills them, zero elsewhere.
CoreBytes initial_memory(const ExecSpec& spec, const sim::MachineConfig& machine);

/// Runs `spec` and writes its dumps, also those of a run that ended with a fault or at max_cycles. Throws isa::IsaError
/// when the machine's latencies make the program's schedule wrong.
ExecOutcome run_exec(const ExecSpec& spec, const sim::Machine& machine);

/// Multiply-accumulates of one issue: 32 for VFMULAS32, 0 for what is no vector FMA.
int macs_of(const isa::Row& row);

/// Mnemonics of the program whose row is graded assumed, each once, in table order.
std::vector<std::string> assumed_instructions(const isa::Program& program);

}  // namespace mtsim::scenarios
