// SPDX-License-Identifier: Apache-2.0
// Every lost cycle has a name. Per core, the classes sum to the cycles of the launch; Cluster asserts it after each
// launch.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "isa/program.h"
#include "isa/registers.h"
#include "sim/pointer.h"

namespace mtsim::sim {

enum class CycleClass : std::uint8_t {
  busy,            // packets and idles of microkernels
  call,            // the jump into a microkernel
  dma_issue,       // programming a transfer
  dma_wait,        // waiting for one (its fixed scalar cost included)
  broadcast_step,  // inside dma_broadcast until the rendezvous is over
  barrier,         // inside group_barrier
  launch,          // from the host's launch until the DSP program starts
  scalar_assumed,  // the DSP program's own scalar code
  idle_tail,       // finished, waiting for the other cores
};
inline constexpr int k_cycle_classes = 9;
std::string_view name(CycleClass cycle_class);

using CycleAccount = std::array<std::int64_t, k_cycle_classes>;

/// Bytes moved by the DMA engines, by source and destination memory; a broadcast counts once per path it really takes:
/// its source is read once, every destination is written.
struct PathBytes {
  std::array<std::array<std::int64_t, k_spaces>, k_spaces> read{};     // [from][to] bytes read from the source
  std::array<std::array<std::int64_t, k_spaces>, k_spaces> written{};  // [from][to] bytes written to the destination
};

/// Something suspicious the program did with the DMA that did not stop the run (a reused busy channel, a wait never
/// made).
struct Finding {
  std::string kind;  // stable short name: "channel-reused", "wait-never-made"
  int core = 0;
  std::int64_t cycle = 0;
  std::string message;  // both ends, the buffer, what to do
};

/// How often the cores of a launch called one program; only programs called at least once are listed. A template called
/// with several defines is as many programs of one name.
struct KernelCalls {
  std::string program;  // isa::Program::name
  std::int64_t calls = 0;
  const isa::Program* code = nullptr;  // lives as long as the cluster
};

struct CoreReport {
  CycleAccount cycles{};
  std::int64_t kernel_calls = 0;
  std::int64_t packets = 0;
  std::int64_t instructions = 0;
  std::array<std::int64_t, isa::k_units> units{};
  std::int64_t sm_bytes = 0, am_bytes = 0;  // allocated
  std::int64_t total() const {
    std::int64_t sum = 0;
    for (auto c : cycles) sum += c;
    return sum;
  }
};

}  // namespace mtsim::sim
