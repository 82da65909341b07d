// SPDX-License-Identifier: Apache-2.0
#include "sim/core/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "isa/printer.h"
#include "sim/core/decode.h"

namespace mtsim::sim {
namespace {

std::string describe_access(const Context& context, const isa::Instruction& instruction) {
  const bool vector_side = instruction.row->units == isa::units::VLDST;
  const auto& memory = context.memory[static_cast<int>(vector_side ? CoreMemory::am : CoreMemory::sm)];
  return fmt::format("{} at address 0x{:x} ({}, {} bytes)", instruction.row->mnemonic, context.fault_value,
                     vector_side ? "AM" : "SM", memory.bytes);
}

std::string fault_message(const Context& context, const isa::Packet& packet) {
  const isa::Instruction& instruction = packet.instructions[context.fault_instruction];
  switch (context.fault) {
    case FaultKind::address:
      return describe_access(context, instruction) +
             " reaches outside the memory; check the base address, the index unit and over-reads of the last iteration";
    case FaultKind::alignment:
      return fmt::format("{} is not aligned to its access unit of {} bytes; use a narrower access or align the buffer",
                         describe_access(context, instruction), isa::index_unit(*instruction.row));
    case FaultKind::two_taken_branches:
      return "a branch is taken in the delay slots of another taken branch; give the two complementary predicates or "
             "move one at least seven cycles away";
    case FaultKind::illegal_packet:
      return "two instructions share a unit, an instruction is on a unit it cannot use, or SNOP is not alone";
    case FaultKind::branch_target:
      return fmt::format(
          "branch to register value 0x{:x}, which is not the return address 0x{:x} a kernel starts with in R63; branch "
          "to "
          "a label instead",
          context.fault_value, k_return_address);
    case FaultKind::end_of_program:
      return "execution ran past the last packet; end the kernel with SBR R63 and its six delay slots";
    case FaultKind::runaway:
      return fmt::format(
          "still running after {} cycles; raise the limit or look for a loop whose condition never turns false",
          context.cycle);
    case FaultKind::none: break;
  }
  return "";
}

// A pipelined loop without code for fewer iterations than .trip promises: the packets of its kernel and what they
// count.
struct PromisedKernel {
  int first = 0, last = 0;  // packets [first, last)
  isa::Register counter;
};

std::optional<PromisedKernel> promised_kernel(const isa::Program& program, const isa::LoopReport& report) {
  if (!report.pipelined || report.guarded || report.trip_place.line == 0) return std::nullopt;
  auto label = program.labels.find(report.label + ".kernel");
  if (label == program.labels.end()) label = program.labels.find(report.label);
  if (label == program.labels.end()) return std::nullopt;
  PromisedKernel kernel{label->second, label->second, {}};
  bool counts = false;
  for (int cycles = 0; cycles < report.interval; ++kernel.last) {
    const isa::Packet& packet = program.packets.at(static_cast<std::size_t>(kernel.last));
    cycles += packet.cycles();
    if (packet.branch() == nullptr || !packet.branch()->predicate) continue;
    kernel.counter = packet.branch()->predicate->reg;
    counts = true;
  }
  return counts ? std::optional(kernel) : std::nullopt;
}

// The kernel of a loop counts down to nothing: a counter below what it has at the end was so from the start, and the
// loop will not end. Costs a run nothing, since it is asked behind a fault only.
std::string broken_promise(const Context& context, const isa::Program& program, int pc) {
  for (const isa::LoopReport& report : program.linear_loops) {
    const auto kernel = promised_kernel(program, report);
    if (!kernel || pc < kernel->first || pc >= kernel->last) continue;
    const auto left = static_cast<std::int64_t>(context.registers.r[kernel->counter.index]);
    if (left >= report.counter_end) continue;
    return fmt::format(
        "; the loop at '{}' is promised to run at least {} time{} (.trip at {}) and was entered for fewer: its "
        "counter has passed zero and never stops it; pass a larger count or lower the promise",
        report.label, report.trip_minimum, report.trip_minimum == 1 ? "" : "s", report.trip_place.str());
  }
  return "";
}

}  // namespace

Fault make_fault(const Context& context, const isa::Program& program, int pc, int core) {
  Fault fault;
  fault.kind = context.fault;
  fault.core = core;
  fault.cycle = context.cycle;
  fault.pc = pc;
  if (program.packets.empty()) {
    fault.place = {.file = program.file};
    fault.message = "the program has no packets; write at least SBR R63 and six delay slots";
    return fault;
  }
  const isa::Packet& packet = program.packets[std::min<std::size_t>(pc, program.packets.size() - 1)];
  fault.packet = isa::print(packet);
  if (!packet.instructions.empty()) {
    fault.place =
        packet.instructions[std::min<std::size_t>(context.fault_instruction, packet.instructions.size() - 1)].place;
  }
  fault.message = packet.instructions.empty() ? "an empty packet" : fault_message(context, packet);
  fault.message += broken_promise(context, program, pc);
  return fault;
}

void summarise(const DecodedProgram::Impl& program, const std::vector<std::int64_t>& counts, RunResult& result) {
  for (std::size_t p = 0; p < counts.size(); ++p) {
    result.packets += counts[p];
    for (int unit = 0; unit < isa::k_units; ++unit) {
      const std::int64_t issued = counts[p] * program.issues[p][unit];
      result.units[unit] += issued;
      result.instructions += issued;
    }
  }
  result.idles = result.cycles - result.packets;
}

const char* to_string(RunStatus status) {
  switch (status) {
    case RunStatus::done: return "done";
    case RunStatus::fault: return "fault";
    case RunStatus::max_cycles: return "max_cycles";
  }
  return "?";
}

const char* to_string(FaultKind kind) {
  switch (kind) {
    case FaultKind::none: return "none";
    case FaultKind::address: return "address";
    case FaultKind::alignment: return "alignment";
    case FaultKind::two_taken_branches: return "two_taken_branches";
    case FaultKind::illegal_packet: return "illegal_packet";
    case FaultKind::branch_target: return "branch_target";
    case FaultKind::end_of_program: return "end_of_program";
    case FaultKind::runaway: return "runaway";
  }
  return "?";
}

std::string Fault::str() const {
  return fmt::format("{}: core {}, cycle {}, pc {}: {} fault: {}\n  packet: {}", place.str(), core, cycle, pc,
                     to_string(kind), message, packet);
}

void RegisterState::set(isa::Register reg, std::uint64_t value) {
  switch (reg.file) {
    case isa::RegisterFile::R: r[reg.index] = value; break;
    case isa::RegisterFile::VR: vr[reg.index].lane.fill(value); break;
    case isa::RegisterFile::AR: ar[reg.index] = value; break;
    case isa::RegisterFile::OR: orr[reg.index] = value; break;
    case isa::RegisterFile::SVR: svr[reg.index] = value; break;
  }
}

void RingStorage::fit(Context& context, const DecodedProgram::Impl& program) {
  // Every run leaves the ring empty, so that only a program with more results in flight needs another one.
  if (program.max_vector_landings <= m_vectors_per_slot && program.max_scalar_landings <= m_scalars_per_slot) return;
  m_vectors_per_slot = std::max(m_vectors_per_slot, program.max_vector_landings);
  m_scalars_per_slot = std::max(m_scalars_per_slot, program.max_scalar_landings);
  m_vectors.resize(static_cast<std::size_t>(k_ring_slots) * m_vectors_per_slot);
  m_scalars.resize(static_cast<std::size_t>(k_ring_slots) * m_scalars_per_slot);
  for (int i = 0; i < k_ring_slots; ++i) {
    context.ring[i] = {0, 0, m_vectors.data() + static_cast<std::size_t>(i) * m_vectors_per_slot,
                       m_scalars.data() + static_cast<std::size_t>(i) * m_scalars_per_slot};
  }
}

RunResult interpret(Context& context, Loop loop, const DecodedProgram::Impl& program, const RunOptions& options) {
  RunResult result;
  std::vector<std::int64_t> counts(program.program.packets.size(), 0);
  const std::uint32_t* first = program.first.data();
  const PacketStream stream{program.operations.data(), first};
  context.cycle = 0;
  context.cycle_limit = options.max_cycles;
  context.branch_at = INT64_MAX;
  context.next_event = options.max_cycles;
  context.fault = FaultKind::none;
  context.fault_instruction = 0;

  const LoopResult run = loop(context, stream, counts.data(), program.program.entry(options.entry));
  if (run.end != LoopEnd::returned) {
    result.status = run.end == LoopEnd::fault ? RunStatus::fault : RunStatus::max_cycles;
    if (run.end == LoopEnd::limit) context.fault = FaultKind::runaway;
    const auto after = std::upper_bound(first, first + program.first.size(), static_cast<std::uint32_t>(run.operation));
    result.fault = make_fault(context, program.program, static_cast<int>(after - first) - 1, options.core);
    const bool issued = run.end == LoopEnd::fault && context.fault != FaultKind::end_of_program;
    if (issued) ++context.cycle;
  }
  result.cycles = context.cycle;
  summarise(program, counts, result);
  if (options.packet_counts != nullptr) *options.packet_counts = std::move(counts);
  return result;
}

struct Executor::Impl {
  Context context;
  RingStorage ring;
  Loop loop = nullptr;
};

Executor::Executor(std::span<std::byte> sm, std::span<std::byte> am, HostLevel level)
    : m_impl(std::make_unique<Impl>()) {
  m_impl->context.memory[static_cast<int>(CoreMemory::sm)] = {sm.data(), sm.size()};
  m_impl->context.memory[static_cast<int>(CoreMemory::am)] = {am.data(), am.size()};
  m_impl->loop = loop_of(level);
  m_impl->context.registers.r[isa::k_return_register.index] = k_return_address;
}

Executor::~Executor() = default;
Executor::Executor(Executor&&) noexcept = default;

RegisterState& Executor::registers() { return m_impl->context.registers; }
const RegisterState& Executor::registers() const { return m_impl->context.registers; }

RunResult Executor::run(const DecodedProgram& program, const RunOptions& options) {
  m_impl->ring.fit(m_impl->context, program.impl());
  return interpret(m_impl->context, m_impl->loop, program.impl(), options);
}

}  // namespace mtsim::sim
