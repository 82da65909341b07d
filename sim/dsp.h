// SPDX-License-Identifier: Apache-2.0
// What a DSP program is written against: the verbs of the hthreads device library plus `call`. One Dsp per core and
// launch.
//
//   cluster.launch([&](sim::Dsp& dsp) {
//     auto buffer = dsp.vector_malloc(4096);
//     int channel = dsp.dma_p2p(x, {1, 4096, 0}, buffer, {1, 4096, 0});
//     dsp.dma_wait(channel);
//     dsp.call(kernel, {buffer, 1024});
//   });
//
// Verbs know the line they are called from (`from`), for the findings: leave the argument out.
// Every verb costs simulated time (machine file, section core). DSP programs never branch on simulated memory.
// Call no verb from a destructor: it would run, and could throw, while an aborted launch unwinds the program.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <source_location>
#include <span>
#include <string>
#include <string_view>

#include "sim/accounting.h"
#include "sim/config/machine.h"
#include "sim/core/executor.h"
#include "sim/error.h"
#include "sim/pointer.h"

namespace mtsim::sim {

/// An argument of a microkernel: a pointer into this core's SM or AM, or a plain 64-bit value.
struct Argument {
  Argument(Pointer p) : pointer(p), is_pointer(true) {}
  Argument(std::int64_t v) : value(static_cast<std::uint64_t>(v)) {}
  Argument(int v) : Argument(static_cast<std::int64_t>(v)) {}
  Argument(std::uint64_t v) : value(v) {}
  Pointer pointer;
  std::uint64_t value = 0;
  bool is_pointer = false;
};

/// A microkernel ready to be called: a decoded program and one of its entries.
struct Kernel {
  const DecodedProgram* program = nullptr;
  std::string entry;  // label; the first packet if empty
};

class Core;

class Dsp {
 public:
  using Source = std::source_location;
  explicit Dsp(Core& core) : m_core(core) {}

  // Identity.
  int thread_id() const;   // 0 .. group_size()-1
  int group_size() const;  // cores of this launch
  const MachineConfig& machine() const;

  // On-chip memory of this core, freed when the launch ends or by free_all; 256-byte aligned.
  // Throws SimError when it does not fit: asked, free, size.
  Pointer vector_malloc(std::int64_t bytes, Source from = Source::current());  // AM
  Pointer scalar_malloc(std::int64_t bytes, Source from = Source::current());  // SM
  /// vector_free and scalar_free of all this core has, and transfers have the default priority again: one operator of a
  /// launch is done, the next begins. SimError when a transfer was not waited for.
  void free_all(Source from = Source::current());

  /// 2-D copy between any two memories except AM<->SM of one core. Totals of both sides agree. Returns the logical
  /// channel, to be waited for. `row_syn`: the cores of `synmask` wait for each other and row i of all costs one row
  /// cost; without it `synmask` is 0.
  int dma_p2p(Pointer source, Rows source_rows, Pointer destination, Rows destination_rows, bool row_syn = false,
              std::uint64_t synmask = 0, Source from = Source::current());
  /// As dma_p2p on a channel and with a priority of the caller's choice (0 = highest; default 1). A channel whose
  /// transfer was not waited for is a finding, "channel-reused"; while it still moves this blocks.
  int raw_dma_p2p(Pointer source, Rows source_rows, Pointer destination, Rows destination_rows, int priority,
                  int channel, Source from = Source::current());
  /// Every core of the launch calls it with the same source and barrier id and its own destination. The source is read
  /// once. Blocks until rendezvous_us after the last core called it; then the bytes move until dma_wait. (With
  /// dma.broadcast_exposed it blocks until they are there; a program that is right waits all the same.)
  int dma_broadcast(Pointer source, Rows source_rows, Pointer destination, Rows destination_rows, int barrier_id,
                    Source from = Source::current());
  /// Blocks until the transfer of `channel` is done. Waiting for an idle channel returns at once.
  void dma_wait(int channel, Source from = Source::current());
  /// True when no transfer is in flight on `channel`. A true answer frees the channel as a wait does: who polls needs
  /// no dma_wait.
  bool dma_query(int channel, Source from = Source::current());
  void set_priority(int priority);  // of later dma_p2p and dma_broadcast calls

  /// Blocks until every core of the launch is at the barrier `id`.
  void group_barrier(int id, Source from = Source::current());

  /// Runs a microkernel: call_cycles for the jump, then its packets. One argument per .param.
  void call(const Kernel& kernel, std::initializer_list<Argument> arguments, Source from = Source::current());
  void call(const Kernel& kernel, std::span<const Argument> arguments, Source from = Source::current());

  /// Charges the DSP program's own scalar work (loop control, address arithmetic) as scalar_assumed.
  void scalar_work(std::int64_t cycles);
  /// One iteration of a loop of the DSP program (machine: core.loop_cycles).
  void loop_iteration() { scalar_work(machine().core.loop_cycles); }

  /// Cycles since the launch as this core sees them.
  std::int64_t now() const;
  // What this core, and what all cores have moved, so far in this launch. Reading them takes no time.
  const CoreReport& counters() const;
  const PathBytes& moved() const;

 private:
  Core& m_core;
};

using DspProgram = std::function<void(Dsp&)>;

}  // namespace mtsim::sim
