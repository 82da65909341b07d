// SPDX-License-Identifier: Apache-2.0
// Program to micro-operations. The one clever step: a result may be written at issue, without waiting in the landing
// ring, when no instruction that can issue before it lands reads or writes its register. In a well-packed loop that is
// nearly every result.
#include "sim/core/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "isa/control_flow.h"
#include "sim/core/schedule_check.h"

namespace mtsim::sim {

std::uint16_t register_offset(isa::Register reg) {
  std::size_t base = 0;
  std::size_t width = 8;
  switch (reg.file) {
    case isa::RegisterFile::R: base = offsetof(RegisterState, r); break;
    case isa::RegisterFile::VR:
      base = offsetof(RegisterState, vr);
      width = isa::k_vector_bytes;
      break;
    case isa::RegisterFile::AR: base = offsetof(RegisterState, ar); break;
    case isa::RegisterFile::OR: base = offsetof(RegisterState, orr); break;
    case isa::RegisterFile::SVR: base = offsetof(RegisterState, svr); break;
  }
  return static_cast<std::uint16_t>(base + width * reg.index);
}

namespace {

using isa::Format;
using isa::Instruction;
using isa::Register;
using isa::RegisterFile;

static_assert(sizeof(RegisterState) + 8 < 65536, "register offsets fit 16 bits");

// A write of one register by one instruction; the second of a pair is a write of its own.
struct WriteSite {
  int packet;
  int instruction;
  isa::Write write;
};

// Which writes must wait in the ring. Conservative: predicates are taken as possibly true, every label as a possible
// entry.
class EarlyWrites {
 public:
  EarlyWrites(const isa::Program& program, const isa::Pipeline& pipeline) : m_program(program), m_pipeline(pipeline) {
    std::set<int> entries = {0};
    for (const auto& [label, packet] : program.labels) entries.insert(packet);
    const isa::ControlFlow flow(program, pipeline, {entries.begin(), entries.end()});
    for (int p = 0; p < static_cast<int>(program.packets.size()); ++p) {
      const auto& instructions = program.packets[p].instructions;
      for (int i = 0; i < static_cast<int>(instructions.size()); ++i) {
        for (const isa::Write& write : isa::writes(instructions[i], pipeline)) inspect(flow, {p, i, write});
      }
    }
  }

  bool may_write_early(int packet, int instruction, bool post_modify) const {
    return !m_deferred.contains({packet, instruction, post_modify});
  }

 private:
  void defer(int packet, int instruction, bool post_modify) { m_deferred.insert({packet, instruction, post_modify}); }

  void inspect(const isa::ControlFlow& flow, const WriteSite& site) {
    meet(site, site.packet, true);
    flow.walk(site.packet, site.write.cycles, [&](int packet, int) {
      meet(site, packet, false);
      return true;
    });
  }

  // `packet` issues before site's write lands.
  void meet(const WriteSite& site, int packet, bool same_packet) {
    const auto& instructions = m_program.packets[packet].instructions;
    for (int i = 0; i < static_cast<int>(instructions.size()); ++i) {
      const bool itself = same_packet && i == site.instruction;
      // An instruction has read its own sources, but for the predicate that its post-modify tests again.
      if (itself && !site.write.post_modify && instructions[i].predicate &&
          instructions[i].predicate->reg == site.write.reg) {
        defer(site.packet, site.instruction, false);
      }
      // In its own packet a post-modify comes last, after every read.
      if (!itself && !(same_packet && site.write.post_modify)) {
        for (const Register reg : isa::reads(instructions[i])) {
          if (reg == site.write.reg) defer(site.packet, site.instruction, site.write.post_modify);
        }
      }
      for (const isa::Write& other : isa::writes(instructions[i], m_pipeline)) {
        if (other.reg != site.write.reg || (itself && other.post_modify == site.write.post_modify)) continue;
        defer(site.packet, site.instruction, site.write.post_modify);
        defer(packet, i, other.post_modify);
      }
    }
  }

  const isa::Program& m_program;
  const isa::Pipeline& m_pipeline;
  std::set<std::tuple<int, int, bool>> m_deferred;
};

bool is_legal(const isa::Packet& packet) {
  std::uint32_t used = 0;
  for (const Instruction& instruction : packet.instructions) {
    if (instruction.row->units == isa::units::NONE) return packet.instructions.size() == 1;
    const std::uint32_t unit = isa::mask(instruction.unit);
    if ((used & unit) != 0 || (instruction.row->units & unit) == 0) return false;
    used |= unit;
  }
  return !packet.instructions.empty();
}

// Fills the address part of a load, store or post-modify.
void decode_address(const isa::MemoryOperand& memory, const isa::Row& row, bool with_index, MicroOp& op) {
  const std::int64_t sign =
      memory.mode == isa::AddressMode::minus || memory.mode == isa::AddressMode::post_decrement ? -1 : 1;
  const std::int64_t unit = isa::index_unit(row);
  op.a = register_offset(memory.base);
  op.b = static_cast<std::uint16_t>(sizeof(RegisterState));  // Context::zero
  if (!with_index) return;
  if (memory.offset) {
    op.b = register_offset(*memory.offset);
    op.scale = static_cast<std::int32_t>(sign * unit);
  } else {
    op.immediate = sign * unit * memory.index;
  }
}

std::uint16_t operand_offset(const isa::Operand& operand) {
  if (const auto* pair = std::get_if<isa::RegisterPair>(&operand)) return register_offset(pair->low);
  return register_offset(std::get<Register>(operand));
}

MicroOp decode_instruction(const Instruction& instruction, int index, bool early, const isa::Pipeline& pipeline) {
  MicroOp op;
  op.instruction = static_cast<std::uint16_t>(index);
  const isa::Row& row = *instruction.row;
  const auto written = isa::writes(instruction, pipeline);
  op.latency = static_cast<std::uint8_t>(written.empty() ? pipeline.of(row) : written.front().cycles);
  bool immediate = false;

  if (isa::is_memory(row.format)) {
    const bool load = isa::is_load(row.format);
    const auto& memory = std::get<isa::MemoryOperand>(instruction.operands[load ? 0 : 1]);
    decode_address(memory, row, !memory.post_modifies() && memory.mode != isa::AddressMode::plain, op);
    op.d = operand_offset(instruction.operands[load ? 1 : 0]);
    op.alignment = static_cast<std::uint8_t>(isa::index_unit(row));
    op.memory = static_cast<std::uint8_t>(row.units == isa::units::VLDST ? CoreMemory::am : CoreMemory::sm);
  } else if (row.format == Format::B) {
    if (const auto* target = std::get_if<isa::Target>(&instruction.operands[0])) {
      immediate = true;
      op.immediate = target->packet;
    } else {
      op.a = operand_offset(instruction.operands[0]);
    }
  } else if (row.format != Format::N) {
    const std::size_t sources = instruction.operands.size() - 1;
    op.d = operand_offset(instruction.operands.back());
    std::uint16_t* const slots[] = {&op.a, &op.b, &op.c};
    for (std::size_t i = 0; i < sources; ++i) {
      if (const auto* value = std::get_if<isa::Immediate>(&instruction.operands[i])) {
        op.immediate = value->value;
        immediate = true;
      } else {
        *slots[i] = operand_offset(instruction.operands[i]);
      }
    }
  }
  op.code = code_of(row.id, early, immediate);
  return op;
}

void guard(MicroOp& op, const std::optional<isa::Predicate>& predicate) {
  if (!predicate) return;
  op.inner = op.code;
  op.code = k_predicated;
  op.predicate = register_offset(predicate->reg);
  op.negated = predicate->negated;
}

// Loads sample memory before stores of their packet commit; post-modified address registers change last.
int execution_order(const Instruction& instruction) {
  return isa::is_load(instruction.row->format) ? 0 : isa::is_store(instruction.row->format) ? 1 : 2;
}

MicroOp closing(SpecialCode code, int packet, int cycles) {
  MicroOp op;
  op.code = code;
  op.immediate = packet;
  op.scale = cycles;
  return op;
}

// Counts the results that wait, per latency, to bound what can land in one cycle.
struct LandingBound {
  std::map<int, int> most;  // latency -> most results of one packet
  void add(const std::map<int, int>& packet) {
    for (const auto& [latency, count] : packet) most[latency] = std::max(most[latency], count);
  }
  int total() const {
    int sum = 0;
    for (const auto& [latency, count] : most) sum += count;
    return sum;
  }
};

}  // namespace

std::unique_ptr<DecodedProgram::Impl> decode(const isa::Program& program, const isa::Pipeline& pipeline,
                                             const DecodeOptions& options) {
  auto decoded = std::make_unique<DecodedProgram::Impl>();
  decoded->program = program;
  decoded->pipeline = pipeline;
  const EarlyWrites early_writes(program, pipeline);
  LandingBound vectors, scalars;

  for (int p = 0; p < static_cast<int>(program.packets.size()); ++p) {
    const isa::Packet& packet = program.packets[p];
    decoded->first.push_back(static_cast<std::uint32_t>(decoded->operations.size()));
    auto& issues = decoded->issues.emplace_back();
    issues.fill(0);
    if (!is_legal(packet)) {
      MicroOp illegal;
      illegal.code = k_illegal;
      decoded->operations.push_back(illegal);
      decoded->operations.push_back(closing(k_end_of_packet, p, 1));
      continue;
    }
    std::vector<MicroOp> post_modifies;
    std::map<int, int> packet_vectors, packet_scalars;
    std::vector<int> order(packet.instructions.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return execution_order(packet.instructions[a]) < execution_order(packet.instructions[b]);
    });

    for (const int i : order) {
      const Instruction& instruction = packet.instructions[i];
      if (instruction.row->units != isa::units::NONE) ++issues[static_cast<int>(instruction.unit)];
      if (instruction.row->id == isa::Mnemonic::SNOP) continue;
      const auto is_early = [&](bool post_modify) {
        return options.early_writes && early_writes.may_write_early(p, i, post_modify);
      };
      MicroOp op = decode_instruction(instruction, i, is_early(false), pipeline);
      guard(op, instruction.predicate);
      decoded->operations.push_back(op);
      for (const isa::Write& write : isa::writes(instruction, pipeline)) {
        if (is_early(write.post_modify)) continue;
        ++(write.reg.file == RegisterFile::VR ? packet_vectors : packet_scalars)[write.cycles];
      }
      for (const isa::Operand& operand : instruction.operands) {
        const auto* memory = std::get_if<isa::MemoryOperand>(&operand);
        if (memory == nullptr || !memory->post_modifies()) continue;
        MicroOp modify;
        modify.instruction = static_cast<std::uint16_t>(i);
        decode_address(*memory, *instruction.row, true, modify);
        modify.d = modify.a;
        modify.code = static_cast<std::uint16_t>(k_post_modify + (is_early(true) ? 1 : 0));
        guard(modify, instruction.predicate);
        post_modifies.push_back(modify);
      }
    }
    decoded->operations.insert(decoded->operations.end(), post_modifies.begin(), post_modifies.end());
    decoded->operations.push_back(closing(k_end_of_packet, p, packet.cycles()));
    vectors.add(packet_vectors);
    scalars.add(packet_scalars);
  }
  decoded->first.push_back(static_cast<std::uint32_t>(decoded->operations.size()));
  decoded->operations.push_back(closing(k_end_of_program, 0, 0));
  decoded->max_vector_landings = vectors.total();
  decoded->max_scalar_landings = scalars.total();
  return decoded;
}

isa::Register register_at(std::uint16_t offset) {
  const std::size_t at = offset;
  const auto index = [&](std::size_t base, std::size_t width) {
    return static_cast<std::uint16_t>((at - base) / width);
  };
  // The files in the order of RegisterState.
  if (at < offsetof(RegisterState, vr)) return {isa::RegisterFile::R, index(offsetof(RegisterState, r), 8)};
  if (at < offsetof(RegisterState, ar)) {
    return {isa::RegisterFile::VR, index(offsetof(RegisterState, vr), isa::k_vector_bytes)};
  }
  if (at < offsetof(RegisterState, orr)) return {isa::RegisterFile::AR, index(offsetof(RegisterState, ar), 8)};
  if (at < offsetof(RegisterState, svr)) return {isa::RegisterFile::OR, index(offsetof(RegisterState, orr), 8)};
  return {isa::RegisterFile::SVR, index(offsetof(RegisterState, svr), 8)};
}

DecodedProgram::DecodedProgram(const isa::Program& program, const isa::Pipeline& pipeline) {
  require_same_meaning(program, pipeline);
  m_impl = decode(program, pipeline);
}

DecodedProgram::~DecodedProgram() = default;

const isa::Program& DecodedProgram::program() const { return m_impl->program; }
const isa::Pipeline& DecodedProgram::pipeline() const { return m_impl->pipeline; }

}  // namespace mtsim::sim
