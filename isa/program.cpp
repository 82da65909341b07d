// SPDX-License-Identifier: Apache-2.0
#include "isa/program.h"

#include "isa/hash.h"
#include "isa/printer.h"

namespace mtsim::isa {
namespace {

void add_operand_reads(const Operand& operand, std::vector<Register>& out) {
  if (const auto* reg = std::get_if<Register>(&operand)) {
    out.push_back(*reg);
  } else if (const auto* pair = std::get_if<RegisterPair>(&operand)) {
    out.push_back(pair->low);
    out.push_back(pair->high());
  } else if (const auto* memory = std::get_if<MemoryOperand>(&operand)) {
    out.push_back(memory->base);
    if (memory->offset) out.push_back(*memory->offset);
  }
}

}  // namespace

int Packet::cycles() const {
  return is_idle() ? static_cast<int>(std::get<Immediate>(instructions[0].operands[0]).value) : 1;
}

const Instruction* Packet::branch() const {
  for (const Instruction& instruction : instructions) {
    if (instruction.row->id == Mnemonic::SBR) return &instruction;
  }
  return nullptr;
}

int Program::linear_at(int packet) const {
  for (std::size_t i = 0; i < linear.size(); ++i) {
    if (linear[i].first <= packet && packet < linear[i].last) return static_cast<int>(i);
  }
  return -1;
}

int Program::entry(const std::string& label) const {
  if (label.empty()) return 0;
  const auto it = labels.find(label);
  if (it != labels.end()) return it->second;
  std::vector<std::string_view> known;
  std::string list;
  for (const auto& [known_label, unused_packet] : labels) {
    known.push_back(known_label);
    list += (list.empty() ? "" : ", ") + known_label;
  }
  throw IsaError({{.severity = Severity::fatal,
                   .place = {.file = file},
                   .message = "no label '" + label + "' to enter at; labels: " + (list.empty() ? "none" : list) +
                              did_you_mean(label, known),
                   .suggestion = "",
                   .code = "unknown-entry"}});
}

std::uint64_t Program::fingerprint() const {
  Hash hash;
  for (const Packet& packet : packets) {
    hash.add(packet.instructions.size());
    for (const Instruction& instruction : packet.instructions) {
      hash.add(static_cast<std::uint64_t>(instruction.unit));
      hash.add(print(instruction));
      for (const Operand& operand : instruction.operands) {
        if (const auto* target = std::get_if<Target>(&operand)) hash.add(static_cast<std::uint64_t>(target->packet));
      }
    }
  }
  for (const Parameter& parameter : parameters) {
    hash.add(static_cast<std::uint64_t>(parameter.reg.flat()));
    hash.add(static_cast<std::uint64_t>(parameter.kind));
  }
  return hash.value();
}

const MemoryOperand* memory_operand(const Instruction& instruction) {
  for (const Operand& operand : instruction.operands) {
    if (const auto* memory = std::get_if<MemoryOperand>(&operand)) return memory;
  }
  return nullptr;
}

bool has_destination(Format format) { return !is_store(format) && format != Format::B && format != Format::N; }

std::vector<Register> reads(const Instruction& instruction) {
  std::vector<Register> out;
  const std::size_t count = instruction.operands.size() - (has_destination(instruction.row->format) ? 1 : 0);
  for (std::size_t i = 0; i < count; ++i) add_operand_reads(instruction.operands[i], out);
  if (instruction.predicate) out.push_back(instruction.predicate->reg);
  return out;
}

std::vector<Write> writes(const Instruction& instruction, const Pipeline& pipeline) {
  std::vector<Write> out;
  const auto add = [&](Register reg) { out.push_back({reg, pipeline.of(*instruction.row, reg)}); };
  if (has_destination(instruction.row->format) && !instruction.operands.empty()) {
    const Operand& destination = instruction.operands.back();
    if (instruction.row->format == Format::VC) {
      for (int i = 0; i < k_vector_lanes; ++i) add({RegisterFile::SVR, static_cast<std::uint8_t>(i)});
    } else if (const auto* reg = std::get_if<Register>(&destination)) {
      add(*reg);
    } else if (const auto* pair = std::get_if<RegisterPair>(&destination)) {
      add(pair->low);
      add(pair->high());
    }
  }
  for (const Operand& operand : instruction.operands) {
    const auto* memory = std::get_if<MemoryOperand>(&operand);
    if (memory && memory->post_modifies()) out.push_back({memory->base, 1, true});
  }
  return out;
}

}  // namespace mtsim::isa
