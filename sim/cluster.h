// SPDX-License-Identifier: Apache-2.0
// One acceleration zone of Fig. 2a: 24 DSP cores, GSM, DDR and the fabric between them, on SystemC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "isa/program.h"
#include "sim/accounting.h"
#include "sim/config/machine.h"
#include "sim/dsp.h"
#include "sim/error.h"

namespace mtsim::sim {

class Interceptor;
class Observer;

/// functional: every byte moves, every packet executes. timing: no data; microkernels are profiled. Same cycles for
/// launches that do not fault.
enum class Depth : std::uint8_t { functional, timing };

struct ClusterOptions {
  Depth depth = Depth::functional;
  bool memo = true;    // timing: profiles are kept, on disk too (memo_file.h); false: anew in each call
  bool poison = true;  // DMA destinations hold NaN patterns from issue to completion (functional)
  std::int64_t max_call_cycles = 1'000'000'000;  // a microkernel that runs longer is a runaway: a fault
  std::int64_t max_launch_cycles = 0;            // a launch that takes longer is given up: LaunchCut; 0: no limit
  bool hazards = true;                           // DMA races are looked for (hazard.h); costs host time only
  Observer* observer = nullptr;                  // told what happens (observer.h); outlives the launches
  Interceptor* interceptor = nullptr;  // changes what is asked for (interceptor.h), for tests; outlives the launches
};

/// A launch was given up at ClusterOptions::max_launch_cycles.
class LaunchCut : public SimError {
 public:
  using SimError::SimError;
};

struct LaunchResult {
  std::int64_t cycles = 0;        // launch cost included
  std::vector<CoreReport> cores;  // each sums to `cycles`
  PathBytes bytes;
  std::vector<KernelCalls> kernels;  // by name
  std::vector<Finding> findings;     // of the hazard monitor; empty when it is off
  std::vector<Finding> notes;        // likewise; they fail nothing
  std::vector<Finding> suppressed;   // findings that a reviewed file explains away (suppression.h)
  std::optional<Fault> fault;        // the program faulted; the other cores were stopped
  std::int64_t dma_transfers = 0;
  std::int64_t gsm_bytes = 0;  // allocated
};

/// All of a process are made before the first of them runs (SystemC elaborates once). Cases run one after another, with
/// reset() between them; launches of two clusters do not overlap in the process, whatever they do in the machine.
class Cluster {
 public:
  explicit Cluster(const MachineConfig& machine, const ClusterOptions& options = {});
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  const MachineConfig& machine() const;
  Depth depth() const;

  /// Forgets memory contents and allocations. A new machine may differ in every number but cores and memory sizes
  /// (SimError otherwise: use another process).
  void reset(const MachineConfig& machine, const ClusterOptions& options);
  void reset();

  /// Cluster DDR and GSM for the host; 256-byte aligned. SimError when full: asked, free.
  Pointer ddr_malloc(std::int64_t bytes);
  Pointer gsm_malloc(std::int64_t bytes);

  /// What the host has allocated so far; release() frees what it allocates later.
  struct Allocations {
    std::int64_t ddr = 0, gsm = 0;  // bytes
  };
  Allocations allocations() const;
  void release(const Allocations& kept);

  /// As ddr_malloc and write of `bytes` bytes of the open file `descriptor` from `offset` on, but its pages are
  /// borrowed: the host reads them when they are touched and may drop them again. What the program writes there stays
  /// its own. The pointer is as aligned as `offset`. SimError when the host cannot map them.
  Pointer ddr_map(int descriptor, std::int64_t offset, std::int64_t bytes);

  /// Functional access through the TLM-2.0 targets; takes no simulated time. No-ops in timing depth. To the hazard
  /// monitor allocated memory holds nothing until it is written; DDR in timing depth counts as written.
  void write(Pointer destination, std::span<const std::byte> data);
  void read(Pointer source, std::span<std::byte> data) const;

  /// Decodes a program for this machine, once per program and latencies.
  Kernel load(const isa::Program& program, const std::string& entry = "");

  /// Starts `program` on `cores` cores (all if 0), runs the simulation until all are done.
  /// Throws SimError for impossible requests and deadlocks (who waits where), LaunchCut.
  LaunchResult launch(const DspProgram& program, int cores = 0);

 private:
  struct Impl;
  std::unique_ptr<Impl> m_impl;
};

}  // namespace mtsim::sim
