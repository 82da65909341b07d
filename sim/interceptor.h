// SPDX-License-Identifier: Apache-2.0
// Changes what a DSP program asks for, verb by verb, without a change to the program: a test seeds mistakes with it and
// looks whether they are found. ClusterOptions::interceptor takes one.
#pragma once

#include <span>

#include "sim/dma_engine.h"
#include "sim/dsp.h"

namespace mtsim::sim {

class Interceptor {
 public:
  virtual ~Interceptor() = default;
  /// Before a dma_wait; false: the wait is not made. `idle`: nothing is outstanding on the channel.
  virtual bool wait(int core, int channel, bool idle) = 0;
  /// Before a transfer of any verb is checked and issued.
  virtual void transfer(int core, Move& move) = 0;
  /// Before raw_dma_p2p takes its channel.
  virtual void channel(int core, int& channel) = 0;
  /// Before a microkernel is called.
  virtual void call(int core, std::span<Argument> arguments) = 0;
};

}  // namespace mtsim::sim
