// SPDX-License-Identifier: Apache-2.0
// The buffered DSP programs in which mistakes are seeded: shapes so small that an oracle can look at every pair of
// accesses, and so large that every core goes through all turns of every ring of buffers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernel_contracts.h"
#include "sim/cluster.h"
#include "sim/config/machine.h"

namespace mtsim::kernels {

/// Three cores with small memories, so that small shapes do not fit them; DMA times scaled.
const sim::MachineConfig& mutant_machine(double dma_times = 1);

/// Ready to be launched, with operands in DDR.
struct Prepared {
  sim::DspProgram program;
  sim::Pointer y;
  std::int64_t y_bytes = 0;
};

struct MutantProgram {
  std::string name;
  KernelFacts facts;
  std::function<Prepared(sim::Cluster&)> prepare;
  int core = 1;        // in which mistakes are made: neither the first nor the last, or that with the odd rest
  bool polls = false;  // asks whether transfers are done: how fast the DMA is decides over its course
};
const std::vector<MutantProgram>& mutant_programs();

}  // namespace mtsim::kernels
