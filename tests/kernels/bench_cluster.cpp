// SPDX-License-Identifier: Apache-2.0
#include "bench_cluster.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <span>

namespace mtsim::kernels {

sim::MachineConfig machine(const std::vector<std::string>& sets) { return sim::Machine::load("mt3000", sets).config(); }

sim::Cluster& fresh(const sim::ClusterOptions& options, const sim::MachineConfig& config) {
  ::setenv("MTSIM_MEMO", "off", 0);  // nothing learnt by another process
  static sim::Cluster cluster(machine());
  cluster.reset(config, options);
  return cluster;
}

GemmRun run_gemm(sim::Cluster& cluster, const GemmPlan& plan, const std::vector<float>& x,
                 const std::vector<float>& w) {
  constexpr std::int64_t k_guard = 1024;
  constexpr std::byte k_guard_value{0x5A};
  const auto [m, n, k] = plan.shape;
  const std::int64_t y_bytes = m * n * 4;
  GemmOperands operands{cluster.ddr_malloc(m * k * 4), cluster.ddr_malloc(k * n * 4), {}};
  const sim::Pointer guarded = cluster.ddr_malloc(y_bytes + 2 * k_guard);
  operands.y = guarded + k_guard;

  std::vector<std::byte> area(static_cast<std::size_t>(y_bytes + 2 * k_guard), k_guard_value);
  cluster.write(operands.x, std::as_bytes(std::span(x)));
  cluster.write(operands.w, std::as_bytes(std::span(w)));
  cluster.write(guarded, area);
  GemmRun run;
  run.result = cluster.launch(gemm_f32(cluster, plan, operands));
  if (cluster.depth() == sim::Depth::timing) return run;

  cluster.read(guarded, area);
  const auto untouched = [&](std::byte b) { return b == k_guard_value; };
  run.guards_intact = std::all_of(area.begin(), area.begin() + k_guard, untouched) &&
                      std::all_of(area.end() - k_guard, area.end(), untouched);
  run.y.resize(static_cast<std::size_t>(m * n));
  cluster.read(operands.y, std::as_writable_bytes(std::span(run.y)));
  return run;
}

}  // namespace mtsim::kernels
