// SPDX-License-Identifier: Apache-2.0
#include "sim/core.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "sim/interceptor.h"
#include "sim/observer.h"
#include "sim/time.h"
#include "sim/zone.h"

namespace mtsim::sim {
namespace {

constexpr std::int64_t k_never = std::numeric_limits<std::int64_t>::max();

/// Unwinds a DSP program because another core failed or all are stuck. No std::exception: programs may catch those.
struct LaunchAborted {};

struct ProgramFault {
  Fault fault;
};

}  // namespace

Core::Core(const sc_core::sc_module_name& name, Zone& zone, int index)
    : sc_module(name),
      sm("sm", Space::sm, index, zone.machine.core.sm_bytes),
      am("am", Space::am, index, zone.machine.core.am_bytes),
      dma(*this, zone),
      m_zone(zone),
      m_index(index),
      m_sm_arena(sm.size()),
      m_am_arena(am.size()),
      m_executor(sm.bytes(), am.bytes()) {
  SC_HAS_PROCESS(Core);
  SC_THREAD(run);
  sensitive << m_wake;
}

// --- the launch

void Core::start(const DspProgram& program) {
  m_program = &program;
  m_report = {};
  m_ahead = 0;
  m_end = 0;
  m_sm_arena.clear();
  m_am_arena.clear();
  m_priority = k_default_priority;
  m_where = Where::running;
  dma.reset();
  wake();
}

void Core::run() {
  for (;;) {
    while (m_program == nullptr) wait();
    run_program();
    m_program = nullptr;
  }
}

/// Nothing may leave an SC_THREAD, and no wait may happen inside a handler: coroutines share one stack of caught
/// exceptions.
void Core::run_program() {
  std::optional<Fault> fault;
  std::exception_ptr error;
  try {
    charge(CycleClass::launch, m_zone.costs.launch);
    Dsp dsp(*this);
    (*m_program)(dsp);
    sync();
  } catch (const sc_core::sc_unwind_exception&) {
    throw;
  } catch (const LaunchAborted&) {
  } catch (const ProgramFault& program_fault) {
    fault = program_fault.fault;
  } catch (...) {
    error = std::current_exception();
  }
  settle();
  m_end = now();
  if (m_zone.launch.aborted) return;
  if (fault || error) {
    m_zone.launch.fault = fault;
    m_zone.launch.error = error;
    m_zone.abort();
  } else if (HazardMonitor* hazards = m_zone.hazards.get()) {
    hazards->ended(verb("end of the program"));
  }
}

void Core::close(std::int64_t launch_cycles) {
  m_report.cycles[static_cast<std::size_t>(CycleClass::idle_tail)] += launch_cycles - m_end;
}

std::string Core::whereabouts() const {
  switch (m_where) {
    case Where::channel:
      return fmt::format("core {} waits for channel {} since cycle {}: {}", m_index, m_what, m_since,
                         dma.describe(m_what));
    case Where::barrier:
      return fmt::format("core {} waits in group_barrier {} since cycle {}", m_index, m_what, m_since);
    case Where::broadcast:
      return fmt::format("core {} waits in dma_broadcast with barrier id {} since cycle {}", m_index, m_what, m_since);
    case Where::running: break;
  }
  return fmt::format("core {} runs", m_index);
}

void Core::refuse(const char* verb, const std::string& message) const {
  throw SimError(fmt::format("core {}, cycle {}: {}: {}", m_index, now(), verb, message));
}

// --- time

std::int64_t Core::now() const { return m_zone.launch_cycle() + m_ahead; }

void Core::charge(CycleClass cycle_class, std::int64_t cycles) {
  if (Observer* observer = m_zone.options.observer) observer->spent(m_index, cycle_class, now(), cycles);
  account(cycle_class, cycles);
}

void Core::account(CycleClass cycle_class, std::int64_t cycles) {
  m_report.cycles[static_cast<std::size_t>(cycle_class)] += cycles;
  m_ahead += cycles;
}

void Core::sync() {
  settle();
  if (m_zone.launch.aborted) throw LaunchAborted{};
}

void Core::settle() {
  const std::int64_t target = now_cycles() + m_ahead;
  while (m_ahead > 0 && !m_zone.launch.aborted) {
    m_wake.notify(cycles_to_sc(m_ahead));
    wait();
    m_ahead = target - now_cycles();
  }
}

template <class Ready>
void Core::block(Where where, int what, CycleClass cycle_class, Ready ready) {
  m_where = where;
  m_what = what;
  m_since = now();
  while (!ready() && !m_zone.launch.aborted) wait();
  m_where = Where::running;
  m_report.cycles[static_cast<std::size_t>(cycle_class)] += now() - m_since;
  if (Observer* observer = m_zone.options.observer) observer->spent(m_index, cycle_class, m_since, now() - m_since);
  if (m_zone.launch.aborted) throw LaunchAborted{};
}

void Core::release_in(std::int64_t cycles) {
  m_release_at = now_cycles() + cycles;
  m_wake.notify(cycles_to_sc(cycles));
}

void Core::channel_done(int channel) {
  if (m_where == Where::channel && m_what == channel) wake();
}

// --- memory

Pointer Core::allocate(Space space, std::int64_t bytes) {
  const char* verb = space == Space::am ? "vector_malloc" : "scalar_malloc";
  Arena& arena = space == Space::am ? m_am_arena : m_sm_arena;
  const auto offset = arena.allocate(bytes);
  if (!offset) refuse(verb, arena.complaint(bytes) + "; make the tiles smaller");
  std::int64_t& most = space == Space::am ? m_report.am_bytes : m_report.sm_bytes;
  most = std::max(most, arena.used());
  const Pointer pointer = (space == Space::am ? am : sm).base() + *offset;
  if (m_zone.hazards) m_zone.hazards->allocated(this->verb(verb), pointer, bytes);
  if (Interceptor* interceptor = m_zone.options.interceptor) interceptor->allocated({m_index, m_from}, pointer, bytes);
  charge(CycleClass::scalar_assumed, m_zone.costs.verb);
  return pointer;
}

void Core::free_all() {
  if (const int channel = std::countr_zero(outstanding()); channel < dma.channels())
    refuse("free_all", fmt::format("wait for all transfers first; channel {}: {}", channel, dma.describe(channel)));
  m_am_arena.clear();
  m_sm_arena.clear();
  m_priority = k_default_priority;
  if (m_zone.hazards) m_zone.hazards->freed(m_index);
  charge(CycleClass::scalar_assumed, m_zone.costs.verb);
}

// --- DMA

void Core::tell_issued(const char* name, int channel, const Move& move, int priority, std::uint64_t mask) const {
  if (Observer* observer = m_zone.options.observer) {
    observer->issued({{name, m_index, now(), m_from}, channel, move, priority, mask});
  }
}

void Core::begin_issue(const char* name, int channel, const Move& move, int priority, std::uint64_t mask) {
  if (HazardMonitor* hazards = m_zone.hazards.get()) {
    const VerbCall call = verb(name);
    if (!dma.idle(channel)) hazards->reused(call, channel, move);
    hazards->issued(call, channel, move, mask);
  }
  tell_issued(name, channel, move, priority, mask);
  if (dma.busy(channel)) {
    sync();
    if (dma.busy(channel)) wait_for_channel(channel);
  }
  charge(CycleClass::dma_issue, m_zone.costs.dma_issue);
  sync();
}

std::uint64_t Core::outstanding() const {
  std::uint64_t channels = 0;
  for (int channel = 0; channel < dma.channels(); ++channel) {
    if (!dma.idle(channel)) channels |= std::uint64_t{1} << channel;
  }
  return channels;
}

void Core::check_priority(const char* verb, int priority) const {
  if (priority < 0) refuse(verb, fmt::format("priority {} is negative; 0 is the highest", priority));
}

int Core::dma_p2p(Move move, bool row_syn, std::uint64_t synmask) {
  if (Interceptor* interceptor = m_zone.options.interceptor) interceptor->transfer({m_index, m_from}, move);
  dma.check("dma_p2p", move);
  const int group_size = m_zone.launch.group_size;
  if (!row_syn && synmask != 0) {
    refuse("dma_p2p", fmt::format("mask {:#x} without row_syn; set row_syn or leave the mask 0", synmask));
  }
  if (row_syn && ((synmask >> m_index & 1) == 0 || (group_size < k_max_cores && synmask >> group_size != 0))) {
    refuse("dma_p2p", fmt::format("row_syn mask {:#x} must hold this core and only cores of the launch (0 to {})",
                                  synmask, group_size - 1));
  }
  int channel = dma.free_channel("dma_p2p");
  if (Interceptor* interceptor = m_zone.options.interceptor; interceptor != nullptr && !row_syn) {
    interceptor->channel({m_index, m_from}, channel, outstanding());
  }
  begin_issue("dma_p2p", channel, move, m_priority, synmask);
  if (row_syn) {
    dma.issue_synchronised(channel, move, m_priority, synmask);
  } else {
    dma.issue(channel, move, m_priority);
  }
  return channel;
}

int Core::raw_dma_p2p(Move move, int priority, int channel) {
  if (Interceptor* interceptor = m_zone.options.interceptor) {
    interceptor->transfer({m_index, m_from}, move);
    interceptor->channel({m_index, m_from}, channel, outstanding());
  }
  dma.check("raw_dma_p2p", move);
  dma.check_channel("raw_dma_p2p", channel);
  check_priority("raw_dma_p2p", priority);
  begin_issue("raw_dma_p2p", channel, move, priority, 0);
  dma.issue(channel, move, priority);
  return channel;
}

int Core::dma_broadcast(Move move, int barrier_id) {
  if (Interceptor* interceptor = m_zone.options.interceptor) interceptor->transfer({m_index, m_from}, move);
  dma.check("dma_broadcast", move);
  const bool on_chip = move.destination.space == Space::sm || move.destination.space == Space::am;
  if (!on_chip || move.destination.core != m_index) {
    refuse("dma_broadcast", fmt::format("the destination {} is not in this core's SM or AM", move.destination.str()));
  }
  if (barrier_id < 0 || barrier_id >= k_barrier_ids) {
    refuse("dma_broadcast",
           fmt::format("barrier id {} does not exist; there are 0 to {}", barrier_id, k_barrier_ids - 1));
  }
  const int channel = dma.free_channel("dma_broadcast");
  if (m_zone.hazards) m_zone.hazards->broadcast_joined(verb("dma_broadcast"));
  tell_issued("dma_broadcast", channel, move, m_priority, 0);
  charge(CycleClass::dma_issue, m_zone.costs.dma_issue);
  sync();
  const BroadcastMeeting::Arrival arrival = {{m_index, channel}, barrier_id, m_priority, move.source, move.source_rows};
  if (const std::string complaint = m_zone.broadcast.disagreement(arrival); !complaint.empty()) {
    refuse("dma_broadcast", complaint);
  }
  dma.join_broadcast(channel, move);
  m_release_at = k_never;
  if (m_zone.broadcast.arrive(arrival, m_zone.launch.group_size)) {
    const auto arrivals = m_zone.broadcast.take();
    if (HazardMonitor* hazards = m_zone.hazards.get()) {
      std::vector<Move> moves;
      for (const auto& participant : arrivals) {
        moves.push_back(m_zone.cores[participant.ref.core]->dma.move(participant.ref.channel));
      }
      hazards->broadcast_starts(arrivals, moves);
    }
    if (Observer* observer = m_zone.options.observer) observer->met(m_zone.launch_cycle());
    DmaEngine::start_broadcast(m_zone, arrivals, m_zone.costs.rendezvous);
    for (const auto& participant : arrivals) m_zone.cores[participant.ref.core]->release_in(m_zone.costs.rendezvous);
  }
  block(Where::broadcast, barrier_id, CycleClass::broadcast_step, [&] { return now_cycles() >= m_release_at; });
  if (m_zone.costs.broadcast_exposed && dma.busy(channel)) {
    block(Where::channel, channel, CycleClass::broadcast_step, [&] { return !dma.busy(channel); });
  }
  return channel;
}

void Core::dma_wait(int channel) {
  dma.check_channel("dma_wait", channel);
  if (Interceptor* interceptor = m_zone.options.interceptor) {
    if (!interceptor->wait({m_index, m_from}, channel, outstanding())) return;
  }
  if (dma.busy(channel)) {
    sync();
    wait_for_channel(channel);
  }
  retire(channel);
  charge(CycleClass::dma_wait, m_zone.costs.dma_wait);
}

/// The program knows that the channel's transfer is complete.
void Core::retire(int channel) {
  if (Observer* observer = m_zone.options.observer; observer != nullptr && !dma.idle(channel)) {
    observer->known_complete({"", m_index, now(), m_from}, channel);
  }
  dma.retire(channel);
  if (m_zone.hazards) m_zone.hazards->completed(m_index, channel);
}

void Core::wait_for_channel(int channel) {
  block(Where::channel, channel, CycleClass::dma_wait, [&] { return !dma.busy(channel); });
}

bool Core::dma_query(int channel) {
  dma.check_channel("dma_query", channel);
  charge(CycleClass::scalar_assumed, m_zone.costs.verb);
  sync();
  if (dma.busy(channel)) return false;
  retire(channel);
  return true;
}

void Core::set_priority(int priority) {
  check_priority("set_priority", priority);
  charge(CycleClass::scalar_assumed, m_zone.costs.verb);
  m_priority = priority;
}

void Core::group_barrier(int id) {
  if (id < 0 || id >= k_barrier_ids) {
    refuse("group_barrier", fmt::format("barrier id {} does not exist; there are 0 to {}", id, k_barrier_ids - 1));
  }
  sync();
  m_release_at = k_never;
  const int group_size = m_zone.launch.group_size;
  if (m_zone.barrier.arrive(id, group_size)) {
    if (m_zone.hazards) m_zone.hazards->barrier();
    if (Observer* observer = m_zone.options.observer) observer->met(m_zone.launch_cycle());
    for (int core = 0; core < group_size; ++core) m_zone.cores[core]->release_in(m_zone.costs.barrier);
  }
  block(Where::barrier, id, CycleClass::barrier, [&] { return now_cycles() >= m_release_at; });
}

// --- microkernels

void Core::call(const Kernel& kernel, std::span<const Argument> arguments) {
  if (Interceptor* interceptor = m_zone.options.interceptor) {
    m_intercepted.assign(arguments.begin(), arguments.end());
    interceptor->call({m_index, m_from}, m_intercepted);
    arguments = m_intercepted;
  }
  KernelRecord& record = m_zone.memo.record(kernel);
  const isa::Program& program = record.program->program();
  check_arguments(program, arguments);
  ++m_report.kernel_calls;
  ++record.calls;
  const std::int64_t called = now();
  account(CycleClass::call, m_zone.costs.call);

  RunResult replayed;  // only when the memo's result has to be changed
  const RunResult* result = nullptr;
  if (m_zone.functional()) {
    replayed = execute(record, arguments);
    result = &replayed;
  } else {
    const KernelProfile& profile =
        m_zone.memo.profile(record, m_counts, m_zone.options.max_call_cycles, m_zone.options.memo);
    result = &profile.result;
    if (result->status == RunStatus::done && !footprint_legal(program, arguments, profile, replayed.fault)) {
      replayed.status = RunStatus::fault;
      result = &replayed;
    }
  }
  if (result->status == RunStatus::done && m_zone.hazards) watch(record, arguments, called);
  if (Observer* observer = m_zone.options.observer) {
    observer->call({"call", m_index, called, m_from}, kernel, arguments, m_zone.costs.call, result->cycles);
  }
  account(CycleClass::busy, result->cycles);
  m_report.packets += result->packets;
  m_report.instructions += result->instructions;
  for (int unit = 0; unit < isa::k_units; ++unit) m_report.units[unit] += result->units[unit];
  if (result->status == RunStatus::done) return;

  Fault fault = result->fault;
  fault.core = m_index;
  fault.message += fmt::format(" (call of '{}' at cycle {} of the launch)", program.name, called);
  throw ProgramFault{std::move(fault)};
}

void Core::watch(KernelRecord& record, std::span<const Argument> arguments, std::int64_t cycle) {
  const VerbCall call{"call", m_from, m_index, cycle, m_report.kernel_calls};
  if (!m_zone.functional() && record.present != nullptr && record.present->footprint != nullptr) {
    m_zone.hazards->called(call, *record.present->footprint, arguments);
    return;
  }
  std::string why;
  if (const CallFootprint* footprint = m_zone.memo.footprint(record, m_counts, why)) {
    m_zone.hazards->called(call, *footprint, arguments);
  } else {
    m_zone.hazards->not_covered(call, record.program->program(), why);
  }
}

void Core::check_arguments(const isa::Program& program, std::span<const Argument> arguments) {
  const auto& parameters = program.parameters;
  if (arguments.size() != parameters.size()) {
    std::string names;
    for (const isa::Parameter& parameter : parameters) names += (names.empty() ? "" : ", ") + parameter.name;
    refuse("call", fmt::format("'{}' takes {} arguments ({}), {} given", program.name, parameters.size(), names,
                               arguments.size()));
  }
  m_counts.assign(arguments.size(), 0);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Argument& argument = arguments[i];
    if (!isa::is_pointer(parameters[i].kind)) {
      if (argument.is_pointer) {
        refuse("call", fmt::format("'{}': parameter {} is a value, {} given", program.name, parameters[i].name,
                                   argument.pointer.str()));
      }
      if (parameters[i].kind == isa::ParameterKind::count) m_counts[i] = argument.value;
      continue;
    }
    const Space space = parameters[i].kind == isa::ParameterKind::pointer_sm ? Space::sm : Space::am;
    if (!argument.is_pointer || argument.pointer.space != space || argument.pointer.core != m_index) {
      refuse("call",
             fmt::format("'{}': parameter {} is a pointer into {}[{}], {} given", program.name, parameters[i].name,
                         to_string(space), m_index,
                         argument.is_pointer ? argument.pointer.str() : fmt::format("the value {}", argument.value)));
    }
  }
}

RunResult Core::execute(const KernelRecord& record, std::span<const Argument> arguments) {
  RegisterState& registers = m_executor.registers();
  registers = RegisterState{};
  registers.r[isa::k_return_register.index] = k_return_address;
  const auto& parameters = record.program->program().parameters;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Argument& argument = arguments[i];
    registers.set(parameters[i].reg, argument.is_pointer ? argument.pointer.offset : argument.value);
  }
  RunOptions options;
  options.entry = record.entry;
  options.max_cycles = m_zone.options.max_call_cycles;
  options.core = m_index;
  return m_executor.run(*record.program, options);
}

bool Core::footprint_legal(const isa::Program& program, std::span<const Argument> arguments,
                           const KernelProfile& profile, Fault& fault) const {
  const auto complain = [&](std::size_t parameter, FaultKind kind, const std::string& message) {
    fault.kind = kind;
    fault.place = {program.file, 0, 0};
    fault.message = fmt::format("{} = {} {}; functional depth shows the packet", program.parameters[parameter].name,
                                arguments[parameter].pointer.str(), message);
    return false;
  };
  for (std::size_t i = 0; i < profile.pointers.size(); ++i) {
    const KernelProfile::PointerExtent& footprint = profile.pointers[i];
    for (const Extent* extent : {&footprint.read, &footprint.write}) {
      if (extent->empty()) continue;
      const Pointer& pointer = arguments[i].pointer;
      const std::int64_t size = (pointer.space == Space::sm ? sm : am).size();
      const auto offset = static_cast<std::int64_t>(pointer.offset);
      if (offset + extent->lo < 0 || offset + extent->hi > size) {
        return complain(i, FaultKind::address,
                        fmt::format("is {} from {} to {}, outside the {} bytes of this memory",
                                    extent == &footprint.read ? "read" : "written", offset + extent->lo,
                                    offset + extent->hi - 1, size));
      }
      if (offset % footprint.alignment != 0) {
        return complain(i, FaultKind::alignment, fmt::format("must be a multiple of {} bytes", footprint.alignment));
      }
    }
  }
  return true;
}

}  // namespace mtsim::sim
