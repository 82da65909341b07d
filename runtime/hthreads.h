// SPDX-License-Identifier: Apache-2.0
// The host side of hthreads: a group of DSP threads, one a core, that the host creates, starts and waits for. What one
// launch costs, T_create + T_launch + T_exec of eq. (10), is in its cycles: the machine has one number for the first
// two (cluster.launch_us). N launches cost N times that (eq. 11).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "sim/cluster.h"

namespace mtsim::runtime {

class ThreadGroup {
 public:
  explicit ThreadGroup(sim::Cluster& cluster) : m_cluster(cluster) {}

  /// Creates the group, runs `program` on all cores and waits. A fault of the program is in the result.
  sim::LaunchResult exec(const sim::DspProgram& program);

 private:
  sim::Cluster& m_cluster;
};

/// Programs one behind the other: between them each core frees its memory and all cores meet. `met(i)` is told on each
/// core when it begins, with 0, and when all have met behind the i-th of them.
using ProgramMet = std::function<void(std::size_t programs, const sim::Dsp& dsp)>;
sim::DspProgram unified_kernel(std::vector<sim::DspProgram> programs, ProgramMet met = {});

}  // namespace mtsim::runtime
