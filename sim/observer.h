// SPDX-License-Identifier: Apache-2.0
// Told what happens on a cluster, as it happens: traces and recorders are built on it, the simulator writes nothing
// itself. ClusterOptions::observer takes one; without one a verb costs a comparison more.
//
// Cycles count from the launch. A core's thread runs ahead of the others, so that calls of different cores come in no
// order; those of one core do, and so do those of the transfers.
#pragma once

#include <cstdint>
#include <source_location>
#include <span>

#include "sim/accounting.h"
#include "sim/core/executor.h"
#include "sim/dma_engine.h"
#include "sim/dsp.h"
#include "sim/fabric.h"
#include "sim/memory_model.h"

namespace mtsim::sim {

class Observer {
 public:
  virtual ~Observer() = default;

  struct Verb {
    const char* name = "";
    int core = 0;
    std::int64_t cycle = 0;
    std::source_location from;  // in the DSP program
  };
  struct Issue {
    Verb verb;
    int channel = 0;
    Move move;
    int priority = 0;
    std::uint64_t mask = 0;  // row_syn
  };

  virtual void launch(int cores) { static_cast<void>(cores); }
  virtual void end(std::int64_t cycles) { static_cast<void>(cycles); }
  /// The core spent [from, from + cycles) so; microkernels and calls come as call().
  virtual void spent(int core, CycleClass cycle_class, std::int64_t from, std::int64_t cycles) {
    static_cast<void>(core), static_cast<void>(cycle_class), static_cast<void>(from), static_cast<void>(cycles);
  }
  /// A microkernel: verb.cycle is the call's, the packets begin call_cycles later and take `cycles`.
  virtual void call(const Verb& verb, const Kernel& kernel, std::span<const Argument> arguments,
                    std::int64_t call_cycles, std::int64_t cycles) {
    static_cast<void>(verb), static_cast<void>(kernel), static_cast<void>(arguments);
    static_cast<void>(call_cycles), static_cast<void>(cycles);
  }
  /// A transfer was asked for; a broadcast by each of its cores.
  virtual void issued(const Issue& issue) { static_cast<void>(issue); }
  /// It is complete: its last byte has moved.
  virtual void moved(int core, int channel, std::int64_t cycle) {
    static_cast<void>(core), static_cast<void>(channel), static_cast<void>(cycle);
  }
  /// The program knows by a wait or query that it is.
  virtual void known_complete(const Verb& verb, int channel) { static_cast<void>(verb), static_cast<void>(channel); }
  /// All cores of the launch are at a barrier or broadcast.
  virtual void met(std::int64_t cycle) { static_cast<void>(cycle); }
  /// All transfers of a row_syn group are issued.
  virtual void group_met(std::span<const ChannelRef> members) { static_cast<void>(members); }
  /// From `cycle` on these shares of the memories' ports are in use.
  virtual void rates(std::int64_t cycle, const Fabric::Shares& shares) {
    static_cast<void>(cycle), static_cast<void>(shares);
  }
  /// A transfer's read or write reaches the DDR at `cycle`; of a broadcast there is one.
  virtual void dram_request(std::int64_t cycle, int core, int channel, const MemoryModel::Request& request) {
    static_cast<void>(cycle), static_cast<void>(core), static_cast<void>(channel), static_cast<void>(request);
  }
};

}  // namespace mtsim::sim
