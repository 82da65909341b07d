// SPDX-License-Identifier: Apache-2.0
// The test program's one cluster and what tests do with it.
#pragma once

#include <string>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "sim/cluster.h"
#include "sim/config/machine.h"

namespace mtsim::kernels {

/// The shipped machine with numbers changed: {"ddr.bandwidth_gb_s=3.2"}.
sim::MachineConfig machine(const std::vector<std::string>& sets = {});

/// The process's cluster, reset.
sim::Cluster& fresh(const sim::ClusterOptions& options = {}, const sim::MachineConfig& config = machine());

struct GemmRun {
  sim::LaunchResult result;
  std::vector<float> y;       // [m, n]; empty in timing depth
  bool guards_intact = true;  // DDR around Y is as it was
};
/// Y = X * W on the fresh cluster, W [k, n] laid out as the plan has it, operands rounded to the plan's type; without
/// them only their sizes matter (timing depth). `inv_freq` is that of the heads of a RopeEpilogue.
GemmRun run_gemm(sim::Cluster& cluster, const GemmPlan& plan, const std::vector<float>& x = {},
                 const std::vector<float>& w = {}, const std::vector<float>& inv_freq = {});

}  // namespace mtsim::kernels
