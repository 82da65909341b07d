// SPDX-License-Identifier: Apache-2.0
// What the blocks of one cluster share: the wired machine, its costs in cycles, and the state of the launch in
// progress.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "sim/accounting.h"
#include "sim/cluster.h"
#include "sim/config/machine.h"
#include "sim/core/executor.h"
#include "sim/fabric.h"
#include "sim/hazard.h"
#include "sim/memo.h"
#include "sim/memory.h"
#include "sim/memory_model.h"
#include "sim/rendezvous.h"

namespace mtsim::sim {

class Core;

/// The machine's costs in whole cycles.
struct Costs {
  explicit Costs(const MachineConfig& machine);
  std::int64_t launch, barrier, rendezvous, dma_start;  // from microseconds
  std::int64_t call, dma_issue, dma_wait, verb;
  bool broadcast_exposed;
};

/// Starts fresh with each launch.
struct LaunchState {
  int group_size = 0;
  std::int64_t start = 0;  // cycle of the process's time
  bool aborted = false;    // a core failed or all are stuck: every verb unwinds its program
  std::optional<Fault> fault;
  std::exception_ptr error;
  PathBytes bytes;
  std::int64_t dma_transfers = 0;
};

struct Zone {
  explicit Zone(const MachineConfig& machine_config, const ClusterOptions& cluster_options);
  ~Zone();

  MachineConfig machine;
  ClusterOptions options;
  Costs costs;
  std::unique_ptr<MemoryModel> memory_model;
  KernelMemo memo;

  Fabric fabric;
  Memory gsm;
  Memory ddr;
  std::vector<std::unique_ptr<Core>> cores;

  Barrier barrier;
  BroadcastMeeting broadcast;
  RowSync row_sync;
  LaunchState launch;
  std::unique_ptr<HazardMonitor> hazards;  // absent when switched off

  bool functional() const { return options.depth == Depth::functional; }
  /// The memory a pointer points into; throws SimError for a core the cluster does not have.
  Memory& memory(Pointer pointer);
  /// Cycles since the launch.
  std::int64_t launch_cycle() const;

  /// Another machine of the same shape.
  void configure(const MachineConfig& machine_config, const ClusterOptions& cluster_options);
  void observe_fabric();
  void clear_memories();
  /// Stops all cores: their verbs unwind. The first failure of a launch is the one reported.
  void abort();
};

}  // namespace mtsim::sim
