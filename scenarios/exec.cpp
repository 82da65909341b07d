// SPDX-License-Identifier: Apache-2.0
#include "scenarios/exec.h"

#include <algorithm>
#include <set>
#include <span>

#include "isa/checker.h"
#include "scenarios/files.h"
#include "sim/config/output_file.h"

namespace mtsim::scenarios {

int macs_of(const isa::Row& row) {
  switch (row.id) {
    case isa::Mnemonic::VFMULAD: return isa::k_vector_lanes;
    case isa::Mnemonic::VFMULAS32:
    case isa::Mnemonic::VFMULBS32:
    case isa::Mnemonic::VFMULAHLS:
    case isa::Mnemonic::VFMULAHHS: return 2 * isa::k_vector_lanes;
    case isa::Mnemonic::VFMULAH16:
    case isa::Mnemonic::VFMULBH16: return 4 * isa::k_vector_lanes;
    default: return 0;
  }
}

std::vector<std::string> assumed_instructions(const isa::Program& program) {
  std::set<isa::Mnemonic> found;
  for (const auto& packet : program.packets) {
    for (const auto& instruction : packet.instructions) {
      if (instruction.row->grade == isa::Grade::assumed) found.insert(instruction.row->id);
    }
  }
  std::vector<std::string> names;
  for (isa::Mnemonic id : found) names.emplace_back(isa::row(id).mnemonic);
  return names;
}

CoreBytes initial_memory(const ExecSpec& spec, const sim::MachineConfig& machine) {
  CoreBytes memory{std::vector<std::byte>(static_cast<std::size_t>(machine.core.sm_bytes)),
                   std::vector<std::byte>(static_cast<std::size_t>(machine.core.am_bytes))};
  for (const auto& image : spec.memory) {
    const auto bytes = std::span(memory.of(image.space)).subspan(image.address, static_cast<std::size_t>(image.bytes));
    if (image.path.empty()) {
      std::fill(bytes.begin(), bytes.end(), image.fill);
    } else {
      read_bytes(image.path, bytes);
    }
  }
  return memory;
}

ExecOutcome run_exec(const ExecSpec& spec, const sim::Machine& machine) {
  const sim::MachineConfig& config = machine.config();
  const sim::DecodedProgram decoded(spec.program, config.pipeline);
  CoreBytes memory = initial_memory(spec, config);

  sim::Executor executor(memory.sm, memory.am);
  executor.registers() = spec.registers;
  ExecOutcome outcome;
  sim::RunOptions options;
  options.entry = spec.entry;
  options.max_cycles = spec.max_cycles;
  options.packet_counts = &outcome.packet_counts;
  outcome.result = executor.run(decoded, options);

  for (const auto& dump : spec.dumps) {
    const auto bytes = std::span(memory.of(dump.space)).subspan(dump.address, static_cast<std::size_t>(dump.bytes));
    sim::write_file(dump.path, dump.writer, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  for (std::size_t p = 0; p < spec.program.packets.size(); ++p) {
    for (const auto& instruction : spec.program.packets[p].instructions) {
      outcome.macs += outcome.packet_counts.at(p) * macs_of(*instruction.row);
    }
  }
  outcome.assumed_instructions = assumed_instructions(spec.program);
  outcome.assumed_packet_rules = isa::assumed_shapes(spec.program);
  outcome.check = isa::check(spec.program, config.pipeline, spec.entry);
  return outcome;
}

}  // namespace mtsim::scenarios
