// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "scenarios/exec.h"
#include "scenarios/schedule_page/page.h"
#include "sim/core/stepper.h"

namespace mtsim::scenarios {

namespace {

/// Bytes of each memory at the start of the run that go into the page.
constexpr std::size_t k_most_memory_bytes = 256UL * 1024;

std::string hex_of(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += "0123456789abcdef"[static_cast<unsigned>(byte) >> 4];
    text += "0123456789abcdef"[static_cast<unsigned>(byte) & 15];
  }
  return text;
}

/// "3f" of a scalar; "=3f" of a vector with it in every lane, else 16 digits a lane.
std::string value_text(isa::Register reg, const sim::VectorRegister& value) {
  if (reg.file != isa::RegisterFile::VR) return fmt::format("{:x}", value.lane[0]);
  if (std::all_of(value.lane.begin(), value.lane.end(), [&](std::uint64_t lane) { return lane == value.lane[0]; })) {
    return fmt::format("={:x}", value.lane[0]);
  }
  std::string text;
  for (const std::uint64_t lane : value.lane) text += fmt::format("{:016x}", lane);
  return text;
}

Json registers_json(const sim::Stepper& stepper) {
  Json json = Json::object();
  for (int file = 0; file < isa::k_register_files; ++file) {
    for (int i = 0; i < isa::k_registers_in_file[static_cast<std::size_t>(file)]; ++i) {
      const isa::Register reg{static_cast<isa::RegisterFile>(file), static_cast<std::uint16_t>(i)};
      const sim::VectorRegister value = stepper.value(reg);
      if (value != sim::VectorRegister{}) json[reg.str()] = value_text(reg, value);
    }
  }
  return json;
}

struct Images {
  Json json = Json::array();
  std::size_t left_out = 0;  // bytes
};

/// What the page gets of the memories at the start: the first bytes of each image.
Images images_of(const ExecSpec& spec, CoreBytes& memory) {
  Images images;
  std::size_t left = k_most_memory_bytes;
  for (const ExecSpec::Image& image : spec.memory) {
    const auto bytes = std::span(memory.of(image.space)).subspan(image.address, static_cast<std::size_t>(image.bytes));
    const std::size_t shown = std::min(left, bytes.size());
    left -= shown;
    images.left_out += bytes.size() - shown;
    if (shown == 0) continue;
    images.json.push_back(
        {{"space", to_string(image.space)}, {"address", image.address}, {"data", hex_of(bytes.first(shown))}});
  }
  return images;
}

/// How the run ends, without looking at each step.
sim::RunResult whole_run(const ExecSpec& spec, const sim::MachineConfig& machine) {
  CoreBytes memory = initial_memory(spec, machine);
  sim::Executor executor(memory.sm, memory.am);
  executor.registers() = spec.registers;
  sim::RunOptions options;
  options.entry = spec.entry;
  options.max_cycles = spec.max_cycles;
  return executor.run(sim::DecodedProgram(spec.program, machine.pipeline), options);
}

// Short keys: p packet, c cycle, i issued [register, lands, value, cell, number], s stored [space, address, bytes],
// l numbers of what landed, o reads of old values [register, number of the newer]. What is empty is left out.
Json step_json(const sim::Stepper::Change& change, const std::vector<int>& first_cell) {
  Json json = {{"p", change.packet}, {"c", change.cycle}};
  for (const auto& result : change.issued) {
    json["i"].push_back({result.reg.str(), result.lands, value_text(result.reg, result.value),
                         first_cell[static_cast<std::size_t>(result.packet)] + result.instruction, result.sequence});
  }
  for (const auto& store : change.stores) {
    json["s"].push_back({to_string(store.space), store.address, hex_of(store.bytes)});
  }
  for (const auto& landing : change.landed) json["l"].push_back(landing.result.sequence);
  for (const auto& old : change.old_reads) json["o"].push_back({old.reg.str(), old.newer.sequence});
  return json;
}

}  // namespace

Json run_json(const ExecSpec& spec, const sim::Machine& machine, std::int64_t most_cycles) {
  std::vector<int> first_cell;
  int cells = 0;
  for (const isa::Packet& packet : spec.program.packets) {
    first_cell.push_back(cells);
    cells += static_cast<int>(packet.instructions.size());
  }
  CoreBytes memory = initial_memory(spec, machine.config());
  Images images = images_of(spec, memory);
  sim::Stepper::Options options;
  options.entry = spec.entry;
  options.max_cycles = spec.max_cycles;
  options.undo_steps = 0;
  sim::Stepper stepper(spec.program, machine.config().pipeline, memory.sm, memory.am, spec.registers, options);
  Json json = {{"spec", spec.path},
               {"entry", spec.entry},
               {"registers", registers_json(stepper)},
               {"memory", std::move(images.json)},
               {"memory_left_out", images.left_out}};
  Json steps = Json::array();
  while (!stepper.ended() && stepper.cycle() < most_cycles) steps.push_back(step_json(stepper.step(), first_cell));
  json["steps"] = std::move(steps);
  const sim::RunResult result = stepper.ended() ? stepper.result() : whole_run(spec, machine.config());
  json["recorded"] = stepper.cycle();
  json["cut"] = !stepper.ended();
  json["cycles"] = result.cycles;
  json["status"] = to_string(result.status);
  json["fault"] = nullptr;
  if (result.fault.kind != sim::FaultKind::none) {
    json["fault"] = fault_json(result.fault);
    json["fault"]["text"] = result.fault.str();
  }
  return json;
}

}  // namespace mtsim::scenarios
