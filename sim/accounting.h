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
  broadcast_step,  // inside dma_broadcast: until the rendezvous is over, and its bytes are there on a machine that
                   // waits
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

/// One side of a finding: who touched which bytes.
struct FindingEnd {
  std::string what;            // "dma_p2p", "dma_broadcast", "call of gemm_f32_6x128", "vector_malloc", "ddr_malloc"
  int core = -1;               // -1: the host
  int channel = -1;            // of a transfer
  std::int64_t iteration = 0;  // from 1: the core's n-th kernel call; of other verbs its n-th from this source line
  std::int64_t cycle = 0;      // of the launch, as the core saw it
  std::string buffer;          // the bytes, and in which allocation they lie
  std::string file;            // of the DSP program; "" when unknown
  int line = 0;
  std::string function;
  /// "dma_p2p #3 at gemm.cpp:120 (core 0, channel 1): writes am[0]+0x8000, ..."
  std::string str() const;
};

/// note: nothing wrong came of it (a dead over-read), or something could not be looked at.
enum class Severity : std::uint8_t { finding, note };
std::string_view name(Severity severity);

/// Something the program did with the DMA that is wrong by the order it asked for, whether or not it went well in this
/// run. Kinds: "read-before-complete", "overwrite-in-use", "unordered-writes", "never-written", "wait-never-made",
/// "channel-reused"; of notes "dead-over-read", "not-covered".
struct Finding {
  std::string kind;
  int core = 0;
  std::int64_t cycle = 0;
  std::string message;  // both ends, the buffer, the missing edge, what to do
  Severity severity = Severity::finding;
  std::vector<FindingEnd> ends;  // earlier first, where there is an order; the first occurrence in core and iteration
  std::string missing_edge;      // what would have ordered them
  std::string reason;            // why it was suppressed
  std::int64_t count = 1;        // occurrences with the same source lines, on all cores
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
