// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster.h"

#include <fmt/format.h>
#include <tlm_utils/multi_passthrough_initiator_socket.h>

#include <algorithm>
#include <utility>

#include "sim/arena.h"
#include "sim/core.h"
#include "sim/observer.h"
#include "sim/time.h"
#include "sim/zone.h"

/// libsystemc's own main refers to it; programs here have their own main. Weak, so that a program may bring one.
__attribute__((weak)) int sc_main(int, char**) { return 1; }

namespace mtsim::sim {
namespace {

constexpr std::size_t k_largest_payload = std::size_t{1} << 30;  // a TLM payload's length has 32 bits

int g_clusters = 0;         // ever made in this process
bool g_elaborated = false;  // SystemC elaborates once

void check_machine(const MachineConfig& machine) {
  if (g_elaborated) {
    throw SimError(
        "a process makes its clusters before the first of them runs, because SystemC elaborates once; use reset() or "
        "another process");
  }
  if (machine.cluster.cores < 1 || machine.cluster.cores > k_max_cores) {
    throw SimError(fmt::format("cluster.cores is {}; core masks hold 1 to {}", machine.cluster.cores, k_max_cores));
  }
  if (sc_core::sc_get_time_resolution() != sc_core::sc_time(1, sc_core::SC_PS)) {
    throw SimError("SystemC's time resolution was changed; leave it at 1 ps, which stands for one core cycle");
  }
  make_memory_model(machine);  // throws for an unknown name before anything is elaborated
  ++g_clusters;
}

/// The host's way into the memories.
class Host : public sc_core::sc_module {
 public:
  tlm_utils::multi_passthrough_initiator_socket<Host> memories;

  explicit Host(const sc_core::sc_module_name& name) : sc_module(name), memories("memories") {}

  void connect(Memory& memory) {
    memories.bind(memory.socket);
    m_order.push_back(&memory);
  }

  void access(Memory& memory, std::uint64_t offset, std::byte* data, std::size_t bytes, tlm::tlm_command command) {
    const auto index = std::find(m_order.begin(), m_order.end(), &memory) - m_order.begin();
    while (bytes > 0) {
      const auto length = static_cast<unsigned>(std::min(bytes, k_largest_payload));
      tlm::tlm_generic_payload payload;
      payload.set_command(command);
      payload.set_address(offset);
      payload.set_data_ptr(reinterpret_cast<unsigned char*>(data));
      payload.set_data_length(length);
      payload.set_streaming_width(length);
      if (memories[static_cast<unsigned>(index)]->transport_dbg(payload) != length) {
        throw std::logic_error(fmt::format("{} refused {} bytes at {:#x}", memory.name(), length, offset));
      }
      offset += length;
      data += length;
      bytes -= length;
    }
  }

 private:
  std::vector<Memory*> m_order;
};

struct Top : public sc_core::sc_module {
  Zone zone;
  Host host;

  Top(const sc_core::sc_module_name& name, const MachineConfig& machine, const ClusterOptions& options)
      : sc_module(name), zone(machine, options), host("host") {
    host.connect(zone.ddr);
    host.connect(zone.gsm);
    for (auto& core : zone.cores) {
      host.connect(core->sm);
      host.connect(core->am);
    }
  }
};

}  // namespace

struct Cluster::Impl {
  Impl(const MachineConfig& machine, const ClusterOptions& options)
      : checked((check_machine(machine), true)),
        top(fmt::format("cluster{}", g_clusters - 1).c_str(), machine, options),
        zone(top.zone),
        ddr_arena(zone.ddr.size()),
        gsm_arena(zone.gsm.size()) {}

  bool checked;
  Top top;
  Zone& zone;
  Arena ddr_arena, gsm_arena;
  bool running = false;

  Pointer allocate(const char* verb, Memory& memory, Arena& arena, std::int64_t bytes) {
    const auto offset = arena.allocate(bytes);
    if (!offset) throw SimError(fmt::format("{}: {}", verb, arena.complaint(bytes)));
    const Pointer pointer = memory.base() + *offset;
    // In timing depth the host has no data to write: its DDR counts as written.
    const bool is_filled = pointer.space == Space::ddr && !zone.functional();
    if (zone.hazards && !is_filled) zone.hazards->host_allocated(verb, pointer, bytes);
    return pointer;
  }

  Memory& checked_range(const char* verb, Pointer pointer, std::size_t bytes) {
    Memory& memory = zone.memory(pointer);
    if (!memory.holds(pointer.offset, bytes)) {
      throw SimError(fmt::format("{}: {} bytes at {} do not fit in the {} bytes of this memory", verb, bytes,
                                 pointer.str(), memory.size()));
    }
    return memory;
  }

  /// Sockets of all clusters are connected and every thread has reached its wait for a launch.
  void elaborate() {
    if (std::exchange(g_elaborated, true)) return;
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
  }

  /// Runs until nothing moves any more, or what comes next lies behind the limit; true in the second case.
  bool run_until_idle() {
    elaborate();
    const std::int64_t limit = zone.options.max_launch_cycles;
    if (limit == 0) {
      sc_core::sc_start();
      return false;
    }
    sc_core::sc_start(cycles_to_sc(limit + 1), sc_core::SC_EXIT_ON_STARVATION);  // what ends at the limit is in time
    return sc_core::sc_pending_activity();
  }

  void give_up(std::exception_ptr error) {
    zone.launch.error = std::move(error);
    zone.abort();
    sc_core::sc_start();
  }

  /// Unwinds the stuck cores; what they were waiting for is the message.
  void break_deadlock() {
    std::string stuck;
    for (const auto& core : zone.cores) {
      if (core->running()) stuck += "\n  " + core->whereabouts();
    }
    give_up(
        std::make_exception_ptr(SimError("deadlock: nothing moves any more; every core of the launch must make the "
                                         "same collective calls in the same order:" +
                                         stuck)));
  }

  LaunchResult collect() {
    LaunchState& launch = zone.launch;
    LaunchResult result;
    for (int core = 0; core < launch.group_size; ++core) {
      result.cycles = std::max(result.cycles, zone.cores[core]->end_cycle());
    }
    for (int core = 0; core < launch.group_size; ++core) {
      zone.cores[core]->close(result.cycles);
      const CoreReport& report = zone.cores[core]->report();
      if (report.total() != result.cycles) {
        std::string classes;
        for (int c = 0; c < k_cycle_classes; ++c) {
          classes += fmt::format(" {} {}", name(static_cast<CycleClass>(c)), report.cycles[c]);
        }
        throw std::logic_error(
            fmt::format("core {}: classes sum to {} of {} cycles:{}", core, report.total(), result.cycles, classes));
      }
      result.cores.push_back(report);
    }
    result.bytes = launch.bytes;
    result.kernels = zone.memo.calls();
    if (zone.hazards) {
      auto verdict = zone.hazards->finish();
      result.findings = std::move(verdict.findings);
      result.notes = std::move(verdict.notes);
    }
    result.fault = std::move(launch.fault);
    result.dma_transfers = launch.dma_transfers;
    result.gsm_bytes = gsm_arena.used();
    if (Observer* observer = zone.options.observer) observer->end(result.cycles);
    return result;
  }
};

Cluster::Cluster(const MachineConfig& machine, const ClusterOptions& options)
    : m_impl(std::make_unique<Impl>(machine, options)) {}

Cluster::~Cluster() = default;

const MachineConfig& Cluster::machine() const { return m_impl->zone.machine; }
Depth Cluster::depth() const { return m_impl->zone.options.depth; }

void Cluster::reset(const MachineConfig& machine, const ClusterOptions& options) {
  if (m_impl->running) throw SimError("reset: a launch is running");
  const MachineConfig& now = m_impl->zone.machine;
  const auto same = [](const char* key, std::int64_t has, std::int64_t asked) {
    if (has != asked) {
      throw SimError(fmt::format("reset: {} is {} in this process, {} asked; use another process", key, has, asked));
    }
  };
  same("cluster.cores", now.cluster.cores, machine.cluster.cores);
  same("core.sm_bytes", now.core.sm_bytes, machine.core.sm_bytes);
  same("core.am_bytes", now.core.am_bytes, machine.core.am_bytes);
  same("cluster.gsm_bytes", now.cluster.gsm_bytes, machine.cluster.gsm_bytes);
  same("ddr.bytes", now.ddr.bytes, machine.ddr.bytes);
  m_impl->zone.configure(machine, options);
  reset();
}

void Cluster::reset() {
  if (m_impl->running) throw SimError("reset: a launch is running");
  m_impl->zone.clear_memories();
  m_impl->ddr_arena.clear();
  m_impl->gsm_arena.clear();
}

Pointer Cluster::ddr_malloc(std::int64_t bytes) {
  return m_impl->allocate("ddr_malloc", m_impl->zone.ddr, m_impl->ddr_arena, bytes);
}

Pointer Cluster::gsm_malloc(std::int64_t bytes) {
  return m_impl->allocate("gsm_malloc", m_impl->zone.gsm, m_impl->gsm_arena, bytes);
}

Cluster::Allocations Cluster::allocations() const { return {m_impl->ddr_arena.used(), m_impl->gsm_arena.used()}; }

void Cluster::release(const Allocations& kept) {
  if (m_impl->running) throw SimError("release: a launch is running");
  m_impl->ddr_arena.release(kept.ddr);
  m_impl->gsm_arena.release(kept.gsm);
  if (HazardMonitor* hazards = m_impl->zone.hazards.get()) {
    hazards->host_freed(m_impl->zone.ddr.base() + kept.ddr);
    hazards->host_freed(m_impl->zone.gsm.base() + kept.gsm);
  }
}

Pointer Cluster::ddr_map(int descriptor, std::int64_t offset, std::int64_t bytes) {
  const std::int64_t page = Memory::page_bytes(), before = offset % page;  // of the first page, not asked for
  const std::int64_t mapped = (before + bytes + page - 1) / page * page;
  const Pointer area = ddr_malloc(mapped + page - Arena::k_alignment);
  const std::int64_t start = (static_cast<std::int64_t>(area.offset) + page - 1) / page * page;
  if (m_impl->zone.functional()) m_impl->zone.ddr.borrow(start, descriptor, offset - before, mapped);
  const Pointer pointer = m_impl->zone.ddr.base() + (start + before);
  if (m_impl->zone.hazards) m_impl->zone.hazards->host_wrote(pointer, bytes);
  return pointer;
}

void Cluster::write(Pointer destination, std::span<const std::byte> data) {
  Memory& memory = m_impl->checked_range("write", destination, data.size());
  if (m_impl->zone.hazards) m_impl->zone.hazards->host_wrote(destination, static_cast<std::int64_t>(data.size()));
  if (depth() == Depth::timing) return;
  m_impl->elaborate();
  // A TLM write payload only reads through its data pointer, which is not const by type.
  m_impl->top.host.access(memory, destination.offset, const_cast<std::byte*>(data.data()), data.size(),
                          tlm::TLM_WRITE_COMMAND);
}

void Cluster::read(Pointer source, std::span<std::byte> data) const {
  Memory& memory = m_impl->checked_range("read", source, data.size());
  if (depth() == Depth::timing) return;
  m_impl->elaborate();
  m_impl->top.host.access(memory, source.offset, data.data(), data.size(), tlm::TLM_READ_COMMAND);
}

Kernel Cluster::load(const isa::Program& program, const std::string& entry) {
  return m_impl->zone.memo.load(program, entry);
}

LaunchResult Cluster::launch(const DspProgram& program, int cores) {
  Zone& zone = m_impl->zone;
  if (m_impl->running) throw SimError("launch: a launch is running; a DSP program cannot start another");
  const int available = static_cast<int>(zone.cores.size());
  if (cores < 0 || cores > available) {
    throw SimError(fmt::format("launch: {} cores asked, the cluster has {}; 0 means all", cores, available));
  }
  struct Running {
    bool& flag;
    explicit Running(bool& f) : flag(f) { flag = true; }
    ~Running() { flag = false; }
  } running(m_impl->running);

  zone.launch = {};
  zone.memo.forget_calls();
  zone.launch.group_size = cores == 0 ? available : cores;
  zone.launch.start = now_cycles();
  if (zone.hazards) zone.hazards->start(zone.launch.group_size);
  if (Observer* observer = zone.options.observer) observer->launch(zone.launch.group_size);
  for (int core = 0; core < zone.launch.group_size; ++core) zone.cores[core]->start(program);
  const bool more = m_impl->run_until_idle();
  const bool unfinished =
      std::any_of(zone.cores.begin(), zone.cores.end(), [](const auto& core) { return core->running(); });
  if (unfinished && more) {
    m_impl->give_up(std::make_exception_ptr(
        LaunchCut(fmt::format("launch: given up after {} cycles", zone.options.max_launch_cycles))));
  } else if (unfinished) {
    m_impl->break_deadlock();
  }
  if (zone.launch.error) std::rethrow_exception(std::exchange(zone.launch.error, nullptr));
  return m_impl->collect();
}

}  // namespace mtsim::sim
