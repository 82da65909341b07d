// SPDX-License-Identifier: Apache-2.0
// One DSP core of Fig. 2b as SystemC sees it: SM, AM, the DMA engine, the packet executor, and the thread that runs a
// DSP program on them.
//
// The thread runs ahead of SystemC's time: verbs that concern this core alone only add to m_ahead. Before anything
// other cores can see (issue, wait, broadcast, barrier, end) sync() lets the time pass.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <systemc>
#include <vector>

#include "sim/accounting.h"
#include "sim/arena.h"
#include "sim/core/executor.h"
#include "sim/dma_engine.h"
#include "sim/dsp.h"
#include "sim/hazard.h"
#include "sim/memory.h"

namespace mtsim::sim {

struct KernelRecord;
struct Zone;

inline constexpr int k_default_priority = 1;  // of transfers

class Core : public sc_core::sc_module {
 public:
  Memory sm;
  Memory am;
  DmaEngine dma;

  Core(const sc_core::sc_module_name& name, Zone& zone, int index);

  int index() const { return m_index; }
  Zone& zone() { return m_zone; }

  // The launch.
  void start(const DspProgram& program);
  bool running() const { return m_program != nullptr; }
  const CoreReport& report() const { return m_report; }
  std::int64_t end_cycle() const { return m_end; }  // of the launch
  /// Adds the cycles the core idles until the launch ends, as idle_tail.
  void close(std::int64_t launch_cycles);
  /// "core 3 waits in group_barrier 2 since cycle 1234".
  std::string whereabouts() const;

  // The verbs of Dsp.
  /// Where the verb about to be called stands in the DSP program.
  Core& at(const std::source_location& from) {
    m_from = from;
    return *this;
  }
  Pointer allocate(Space space, std::int64_t bytes);
  void free_all();
  int dma_p2p(Move move, bool row_syn, std::uint64_t synmask);
  int raw_dma_p2p(Move move, int priority, int channel);
  int dma_broadcast(Move move, int barrier_id);
  void dma_wait(int channel);
  bool dma_query(int channel);
  void set_priority(int priority);
  void group_barrier(int id);
  void call(const Kernel& kernel, std::span<const Argument> arguments);
  void charge(CycleClass cycle_class, std::int64_t cycles);
  std::int64_t now() const;  // cycles since the launch

  // From the rest of the cluster.
  void channel_done(int channel);
  void release_in(std::int64_t cycles);  // from a barrier or broadcast
  void wake() { m_wake.notify(sc_core::SC_ZERO_TIME); }

  /// Throws SimError: core, cycle, verb, message.
  [[noreturn]] void refuse(const char* verb, const std::string& message) const;

 private:
  enum class Where : std::uint8_t { running, channel, barrier, broadcast };

  void run();
  void run_program();
  void sync();
  void settle();
  template <class Ready>
  void block(Where where, int what, CycleClass cycle_class, Ready ready);
  void wait_for_channel(int channel);
  void retire(int channel);
  /// The verb being called, for the hazard monitor.
  VerbCall verb(const char* name) const { return {name, m_from, m_index, now(), 0}; }
  void account(CycleClass cycle_class, std::int64_t cycles);
  void tell_issued(const char* name, int channel, const Move& move, int priority, std::uint64_t mask) const;
  /// All of an issue but the transfer itself, which may start when it returns.
  void begin_issue(const char* name, int channel, const Move& move, int priority, std::uint64_t mask);
  std::uint64_t outstanding() const;  // a bit a channel
  void check_priority(const char* verb, int priority) const;

  void check_arguments(const isa::Program& program, std::span<const Argument> arguments);     // fills m_counts
  void watch(KernelRecord& record, std::span<const Argument> arguments, std::int64_t cycle);  // by the hazard monitor
  RunResult execute(const KernelRecord& record, std::span<const Argument> arguments);
  /// False when some access of the profiled call lies outside this core's memories or is misaligned; `fault` says
  /// which.
  bool footprint_legal(const isa::Program& program, std::span<const Argument> arguments, const KernelProfile& profile,
                       Fault& fault) const;

  Zone& m_zone;
  int m_index;
  Arena m_sm_arena, m_am_arena;
  Executor m_executor;
  sc_core::sc_event m_wake;  // the only event the thread waits for

  const DspProgram* m_program = nullptr;
  CoreReport m_report;
  std::int64_t m_ahead = 0;  // cycles this core is ahead of SystemC's time
  std::int64_t m_end = 0;
  int m_priority = k_default_priority;
  std::int64_t m_release_at = 0;
  Where m_where = Where::running;
  int m_what = 0;            // the barrier id or channel
  std::int64_t m_since = 0;  // launch cycle
  std::source_location m_from;
  std::vector<Argument> m_intercepted;
  std::vector<std::uint64_t> m_counts;  // call arguments, 0 but for counts
};

}  // namespace mtsim::sim
