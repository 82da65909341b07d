// SPDX-License-Identifier: Apache-2.0
// Changes what a DSP program asks for, verb by verb, without a change to the program: a test seeds mistakes with it and
// looks whether they are found. ClusterOptions::interceptor takes one.
#pragma once

#include <cstdint>
#include <source_location>
#include <span>

#include "sim/dma_engine.h"
#include "sim/dsp.h"

namespace mtsim::sim {

class Interceptor {
 public:
  virtual ~Interceptor() = default;

  struct Caller {
    int core = 0;
    std::source_location from;  // in the DSP program
  };
  /// A set bit: the transfer of that channel is not known to be complete.
  using Outstanding = std::uint64_t;

  /// A core has allocated part of its SM or AM.
  virtual void allocated(const Caller& caller, Pointer pointer, std::int64_t bytes) = 0;
  /// Before a dma_wait; false: the wait is not made.
  virtual bool wait(const Caller& caller, int& channel, Outstanding outstanding) = 0;
  /// Before a transfer of any verb is checked and issued.
  virtual void transfer(const Caller& caller, Move& move) = 0;
  /// Before a transfer takes its channel: that of raw_dma_p2p, or the one the library would give a dma_p2p without
  /// row_syn. One that is outstanding is taken as raw_dma_p2p takes it.
  virtual void channel(const Caller& caller, int& channel, Outstanding outstanding) = 0;
  /// Before a microkernel is called.
  virtual void call(const Caller& caller, std::span<Argument> arguments) = 0;
};

}  // namespace mtsim::sim
