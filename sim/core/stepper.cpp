// SPDX-License-Identifier: Apache-2.0
#include "sim/core/stepper.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <tuple>

#include "sim/core/dataflow.h"
#include "sim/core/decode.h"
#include "sim/core/schedule_check.h"

namespace mtsim::sim {
namespace {

constexpr std::size_t k_checkpoints = 16;  // at most; each holds both memories

VectorRegister read(const RegisterState& state, isa::Register reg) {
  VectorRegister value;
  switch (reg.file) {
    case isa::RegisterFile::R: value.lane[0] = state.r[reg.index]; break;
    case isa::RegisterFile::VR: return state.vr[reg.index];
    case isa::RegisterFile::AR: value.lane[0] = state.ar[reg.index]; break;
    case isa::RegisterFile::OR: value.lane[0] = state.orr[reg.index]; break;
    case isa::RegisterFile::SVR: value.lane[0] = state.svr[reg.index]; break;
  }
  return value;
}

void write(RegisterState& state, isa::Register reg, const VectorRegister& value) {
  if (reg.file == isa::RegisterFile::VR) {
    state.vr[reg.index] = value;
  } else {
    state.set(reg, value.lane[0]);
  }
}

struct Reach {
  std::int64_t first = 0, last = 0;  // from the address of the access
};

// What a load or store touches, neighbouring pieces joined.
std::vector<Reach> ranges_of(const isa::Row& row) {
  std::vector<Reach> ranges;
  for (const Piece& piece : pieces(row)) ranges.push_back({piece.at, piece.at + piece.bytes});
  std::sort(ranges.begin(), ranges.end(), [](const Reach& a, const Reach& b) { return a.first < b.first; });
  std::vector<Reach> joined;
  for (const Reach& range : ranges) {
    if (!joined.empty() && joined.back().last == range.first) {
      joined.back().last = range.last;
    } else {
      joined.push_back(range);
    }
  }
  return joined;
}

struct Reads {
  std::vector<isa::Register> registers;
  std::optional<isa::Predicate> predicate;
};

}  // namespace

struct Stepper::Impl {
  // Where the run stands, but for registers, memories and results in flight.
  struct Position {
    std::int64_t steps = 0, cycle = 0;
    std::int64_t branch_at = INT64_MAX, branch_target = 0, next_event = INT64_MAX;
    int packet = 0;
    int issued = 0;  // the packet before
    std::uint64_t sequence = 0;
  };
  struct Entry {  // of the log: a step's change, and where it started
    Position before;
    Change change;
  };
  struct Checkpoint {
    Position position;
    RegisterState registers;
    std::vector<InFlight> in_flight;
    std::vector<std::int64_t> counts;
    std::vector<std::byte> memory[2];
  };

  std::unique_ptr<DecodedProgram::Impl> program;
  Options options;
  Context context;
  RingStorage ring;
  std::vector<std::vector<Reads>> reads;  // per packet and instruction
  std::vector<std::int64_t> counts;
  Position position;  // cycle and branch live in the context and are kept here between steps
  std::vector<InFlight> in_flight;
  std::deque<Entry> log;
  std::vector<Checkpoint> checkpoints;  // by steps; the first is the start
  std::int64_t spacing = 0;
  std::optional<RunStatus> ended;
  RunResult result;

  const MicroOp& first_operation(int packet) const {
    return program->operations[program->first[static_cast<std::size_t>(packet)]];
  }
  int packet_count() const { return static_cast<int>(program->program.packets.size()); }

  bool holds(const isa::Predicate& predicate) const {
    return (context.registers.r[predicate.reg.index] != 0) != predicate.negated;
  }

  void note_old_reads(Change& change) const {
    if (in_flight.empty()) return;
    const auto& instructions = reads[static_cast<std::size_t>(change.packet)];
    const auto note = [&](int instruction, isa::Register reg) {
      const InFlight* newer = nullptr;
      for (const InFlight& flying : in_flight) {
        if (flying.reg == reg && (newer == nullptr || flying.lands < newer->lands)) newer = &flying;
      }
      if (newer != nullptr) change.old_reads.push_back({instruction, reg, *newer});
    };
    for (int i = 0; i < static_cast<int>(instructions.size()); ++i) {
      const Reads& read = instructions[static_cast<std::size_t>(i)];
      if (read.predicate) note(i, read.predicate->reg);
      if (read.predicate && !holds(*read.predicate)) continue;
      for (const isa::Register reg : read.registers) note(i, reg);
    }
  }

  // What a store is about to overwrite; where it leaves the memory it faults and overwrites nothing.
  std::vector<Store> about_to_store(const MicroOp& op, const isa::Instruction& instruction) {
    std::vector<Store> stores;
    const std::uint64_t address = accessed_address(context, op);
    const CoreMemorySpan& memory = context.memory[op.memory];
    for (const Reach& range : ranges_of(*instruction.row)) {
      const std::uint64_t at = address + static_cast<std::uint64_t>(range.first);
      const auto bytes = static_cast<std::uint64_t>(range.last - range.first);
      if (bytes > memory.bytes || at > memory.bytes - bytes) return {};
      Store& store = stores.emplace_back();
      store.space = static_cast<CoreMemory>(op.memory);
      store.address = at;
      store.old.assign(memory.data + at, memory.data + at + bytes);
      store.instruction = op.instruction;
    }
    return stores;
  }

  void run(const MicroOp& op, Change& change) {
    const auto& instructions = program->program.packets[static_cast<std::size_t>(change.packet)].instructions;
    std::uint16_t code = op.code;
    if (code == k_predicated) {
      if (!holds(*instructions[op.instruction].predicate)) return;
      code = op.inner;
    }
    std::vector<Store> stores;
    if (code < k_post_modify && isa::is_store(instructions[op.instruction].row->format)) {
      stores = about_to_store(op, instructions[op.instruction]);
    }
    // An earlier fault of the packet hides this one's: look at it alone.
    const auto earlier = std::tuple(context.fault, context.fault_value, context.fault_instruction);
    context.fault = FaultKind::none;
    const LandingSlot& slot = context.ring[(context.cycle + op.latency) & (k_ring_slots - 1)];
    const std::uint32_t vectors = slot.vectors, scalars = slot.scalars;
    run_operation(context, op, code);
    const bool faulted = context.fault != FaultKind::none;
    if (std::get<0>(earlier) != FaultKind::none) {
      std::tie(context.fault, context.fault_value, context.fault_instruction) = earlier;
    }
    if (faulted) return;

    for (Store& store : stores) {
      const std::byte* at = context.memory[op.memory].data + store.address;
      store.bytes.assign(at, at + store.old.size());
      change.stores.push_back(std::move(store));
    }
    const auto launch = [&](std::uint16_t destination, const VectorRegister& value) {
      InFlight flying;
      flying.reg = register_at(destination);
      flying.value = value;
      flying.issued = context.cycle;
      flying.lands = context.cycle + op.latency;
      flying.packet = change.packet;
      flying.instruction = op.instruction;
      flying.post_modify = code == k_post_modify;
      flying.sequence = position.sequence++;
      in_flight.push_back(flying);
      change.issued.push_back(flying);
    };
    for (std::uint32_t i = vectors; i < slot.vectors; ++i) launch(slot.vector[i].destination, slot.vector[i].value);
    for (std::uint32_t i = scalars; i < slot.scalars; ++i) {
      VectorRegister value;
      value.lane[0] = slot.scalar[i].value;
      launch(slot.scalar[i].destination, value);
    }
  }

  void land(Change* change) {
    if ((context.landings >> (context.cycle & (k_ring_slots - 1)) & 1) == 0) return;
    const std::size_t first = change->landed.size();
    std::erase_if(in_flight, [&](const InFlight& flying) {
      if (flying.lands != context.cycle) return false;
      // Of two results to one register the second finds the first.
      VectorRegister old = read(context.registers, flying.reg);
      for (std::size_t i = first; i < change->landed.size(); ++i) {
        if (change->landed[i].result.reg == flying.reg) old = change->landed[i].result.value;
      }
      change->landed.push_back({flying, old});
      return true;
    });
    land_results(context);
  }

  void end(RunStatus status, int packet, Change* change) {
    ended = status;
    result = {};
    result.status = status;
    if (status != RunStatus::done) {
      result.fault = make_fault(context, program->program, packet, options.core);
      const bool issued = status == RunStatus::fault && context.fault != FaultKind::end_of_program;
      if (issued) ++context.cycle;
    }
    result.cycles = context.cycle;
    summarise(*program, counts, result);
    position.packet = packet;
    for (; context.landings != 0; ++context.cycle) land(change);
    context.cycle = result.cycles;
  }

  // In front of the next packet: what loop.inc does at `issue`.
  void arrive(Change* change) {
    land(change);
    if (context.cycle >= context.next_event) {
      if (context.cycle >= context.branch_at) {
        const Branch branch{static_cast<int>(context.branch_target), context.branch_at};
        context.branch_at = INT64_MAX;
        context.next_event = context.cycle_limit;
        if (change != nullptr) change->jumped = branch;
        if (branch.target == Branch::k_return) return end(RunStatus::done, position.issued, change);
        position.packet = branch.target;
      }
      if (context.cycle >= context.cycle_limit) {
        context.fault = FaultKind::runaway;
        return end(RunStatus::max_cycles, context.cycle == 0 ? position.packet : position.issued, change);
      }
    }
    if (position.packet == packet_count()) {
      context.fault = FaultKind::end_of_program;
      end(RunStatus::fault, position.packet, change);
    }
  }

  void issue(Change& change) {
    const std::int64_t branch_before = context.branch_at;
    change.packet = position.packet;
    change.cycle = context.cycle;
    note_old_reads(change);
    const MicroOp* op = &first_operation(position.packet);
    for (; op->code != k_end_of_packet; ++op) run(*op, change);
    if (context.branch_at != branch_before) {
      change.taken = Branch{static_cast<int>(context.branch_target), context.branch_at};
    }
    ++counts[static_cast<std::size_t>(position.packet)];
    position.issued = position.packet;
    if (context.fault != FaultKind::none) {
      end(RunStatus::fault, position.packet, &change);
    } else {
      ++context.cycle;
      for (int left = op->scale; left > 1 && context.cycle < context.next_event; --left) {
        land(&change);
        ++context.cycle;
      }
      ++position.packet;
      arrive(&change);
    }
    change.cycles = context.cycle - change.cycle;
  }

  void save_position() {
    position.cycle = context.cycle;
    position.branch_at = context.branch_at;
    position.branch_target = context.branch_target;
    position.next_event = context.next_event;
  }
  void restore(const Position& to) {
    position = to;
    context.cycle = to.cycle;
    context.branch_at = to.branch_at;
    context.branch_target = to.branch_target;
    context.next_event = to.next_event;
    context.fault = FaultKind::none;
    context.fault_value = 0;
    context.fault_instruction = 0;
    ended.reset();
  }

  // The ring again from the results in flight.
  void refill_ring() {
    for (LandingSlot& slot : context.ring) slot.vectors = slot.scalars = 0;
    context.landings = 0;
    for (const InFlight& flying : in_flight) {
      const auto index = static_cast<std::size_t>(flying.lands) & (k_ring_slots - 1);
      LandingSlot& slot = context.ring[index];
      const std::uint16_t destination = register_offset(flying.reg);
      if (flying.reg.file == isa::RegisterFile::VR) {
        slot.vector[slot.vectors++] = {flying.value, destination};
      } else {
        slot.scalar[slot.scalars++] = {flying.value.lane[0], destination};
      }
      context.landings |= std::uint64_t{1} << index;
    }
  }

  void keep_checkpoint() {
    if (!checkpoints.empty() && position.steps < checkpoints.back().position.steps + spacing) return;
    if (checkpoints.size() == k_checkpoints) {
      for (std::size_t i = 1; 2 * i < checkpoints.size(); ++i) checkpoints[i] = std::move(checkpoints[2 * i]);
      checkpoints.resize(k_checkpoints / 2);
      spacing *= 2;
      if (position.steps < checkpoints.back().position.steps + spacing) return;
    }
    Checkpoint& kept = checkpoints.emplace_back();
    kept.position = position;
    kept.registers = context.registers;
    kept.in_flight = in_flight;
    kept.counts = counts;
    for (int i = 0; i < 2; ++i)
      kept.memory[i].assign(context.memory[i].data, context.memory[i].data + context.memory[i].bytes);
  }

  void step() {
    if (options.undo_steps > 0 && static_cast<std::int64_t>(log.size()) == options.undo_steps) log.pop_front();
    Entry& entry = log.emplace_back();
    entry.before = position;
    issue(entry.change);
    ++position.steps;
    save_position();
    if (!ended) keep_checkpoint();
  }

  void undo() {
    const Entry entry = std::move(log.back());
    log.pop_back();
    const Change& change = entry.change;
    for (auto landing = change.landed.rbegin(); landing != change.landed.rend(); ++landing) {
      write(context.registers, landing->result.reg, landing->old);
    }
    for (auto store = change.stores.rbegin(); store != change.stores.rend(); ++store) {
      std::copy(store->old.begin(), store->old.end(),
                context.memory[static_cast<int>(store->space)].data + store->address);
    }
    std::erase_if(in_flight, [&](const InFlight& flying) { return flying.sequence >= entry.before.sequence; });
    for (const Landing& landing : change.landed) {
      if (landing.result.sequence < entry.before.sequence) in_flight.push_back(landing.result);
    }
    std::sort(in_flight.begin(), in_flight.end(),
              [](const InFlight& a, const InFlight& b) { return a.sequence < b.sequence; });
    refill_ring();
    --counts[static_cast<std::size_t>(change.packet)];
    restore(entry.before);
  }

  // To the last checkpoint that lies not behind `steps`.
  void rewind(std::int64_t steps) {
    const auto behind = std::find_if(checkpoints.begin(), checkpoints.end(),
                                     [&](const Checkpoint& c) { return c.position.steps > steps; });
    const Checkpoint& kept = *std::prev(behind);
    context.registers = kept.registers;
    in_flight = kept.in_flight;
    refill_ring();
    counts = kept.counts;
    for (int i = 0; i < 2; ++i) std::copy(kept.memory[i].begin(), kept.memory[i].end(), context.memory[i].data);
    log.clear();
    restore(kept.position);
  }

  void go_to(std::int64_t steps) {
    if (steps < position.steps && position.steps - steps > static_cast<std::int64_t>(log.size())) rewind(steps);
    while (position.steps > steps) undo();
    while (position.steps < steps && !ended) step();
  }
};

Stepper::Stepper(const isa::Program& program, const isa::Pipeline& pipeline, std::span<std::byte> sm,
                 std::span<std::byte> am, const RegisterState& registers, const Options& options)
    : m_impl(std::make_unique<Impl>()) {
  require_same_meaning(program, pipeline);
  Impl& impl = *m_impl;
  impl.program = decode(program, pipeline, {.early_writes = false});
  impl.options = options;
  impl.options.undo_steps = std::max<std::int64_t>(options.undo_steps, 1);
  impl.spacing = impl.options.undo_steps;
  for (const isa::Packet& packet : program.packets) {
    std::vector<Reads>& reads = impl.reads.emplace_back();
    for (const isa::Instruction& instruction : packet.instructions) {
      reads.push_back({isa::reads(instruction), instruction.predicate});
      if (instruction.predicate) reads.back().registers.pop_back();  // isa::reads has it last
    }
  }
  impl.counts.assign(program.packets.size(), 0);
  impl.context.registers = registers;
  impl.context.memory[static_cast<int>(CoreMemory::sm)] = {sm.data(), sm.size()};
  impl.context.memory[static_cast<int>(CoreMemory::am)] = {am.data(), am.size()};
  impl.context.cycle_limit = impl.context.next_event = options.max_cycles;
  impl.ring.fit(impl.context, *impl.program);
  impl.position.packet = impl.position.issued = program.entry(options.entry);
  impl.arrive(nullptr);
  impl.save_position();
  impl.keep_checkpoint();
}

Stepper::~Stepper() = default;
Stepper::Stepper(Stepper&&) noexcept = default;

const isa::Program& Stepper::program() const { return m_impl->program->program; }
const RegisterState& Stepper::registers() const { return m_impl->context.registers; }
VectorRegister Stepper::value(isa::Register reg) const { return read(m_impl->context.registers, reg); }
std::span<const std::byte> Stepper::memory(CoreMemory space) const {
  const CoreMemorySpan& memory = m_impl->context.memory[static_cast<int>(space)];
  return {memory.data, memory.bytes};
}
std::int64_t Stepper::cycle() const { return m_impl->context.cycle; }
int Stepper::packet() const { return m_impl->position.packet; }
std::int64_t Stepper::steps() const { return m_impl->position.steps; }
const std::vector<Stepper::InFlight>& Stepper::in_flight() const { return m_impl->in_flight; }
std::optional<Stepper::Branch> Stepper::pending_branch() const {
  if (ended() || m_impl->context.branch_at == INT64_MAX) return std::nullopt;
  return Branch{static_cast<int>(m_impl->context.branch_target), m_impl->context.branch_at};
}
bool Stepper::ended() const { return m_impl->ended.has_value(); }
RunResult Stepper::result() const { return m_impl->result; }

const Stepper::Change& Stepper::step() {
  m_impl->step();
  return m_impl->log.back().change;
}
bool Stepper::step_back() {
  if (steps() == 0) return false;
  m_impl->go_to(steps() - 1);
  return true;
}
void Stepper::go_to(std::int64_t steps) { m_impl->go_to(std::max<std::int64_t>(steps, 0)); }

const Stepper::Change* Stepper::last() const { return m_impl->log.empty() ? nullptr : &m_impl->log.back().change; }
std::int64_t Stepper::undo_steps() const { return static_cast<std::int64_t>(m_impl->log.size()); }

}  // namespace mtsim::sim
