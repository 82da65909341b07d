// SPDX-License-Identifier: Apache-2.0
#include "bench_cluster.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <span>

#include "reference.h"

namespace mtsim::kernels {

sim::MachineConfig machine(const std::vector<std::string>& sets) { return sim::Machine::load("mt3000", sets).config(); }

sim::Cluster& fresh(const sim::ClusterOptions& options, const sim::MachineConfig& config) {
  ::setenv("MTSIM_MEMO", "off", 0);  // nothing learnt by another process
  static sim::Cluster cluster(machine());
  cluster.reset(config, options);
  return cluster;
}

GemmRun run_gemm(sim::Cluster& cluster, const GemmPlan& plan, const std::vector<float>& x, const std::vector<float>& w,
                 const std::vector<float>& inv_freq) {
  constexpr std::int64_t k_guard = 1024;
  constexpr std::byte k_guard_value{0x5A};
  const auto [m, n, k] = plan.shape;
  const std::int64_t bytes = bytes_of(plan.dtype), y_bytes = m * n * bytes;
  GemmOperands operands{cluster.ddr_malloc(m * k * bytes), cluster.ddr_malloc(k * n * bytes), {}};
  const sim::Pointer guarded = cluster.ddr_malloc(y_bytes + 2 * k_guard);
  operands.y = guarded + k_guard;

  const auto write = [&](sim::Pointer to, const std::vector<float>& values) {
    if (plan.dtype == DType::f32) return cluster.write(to, std::as_bytes(std::span(values)));
    const std::vector<std::uint16_t> bits = bits_f16(values);
    cluster.write(to, std::as_bytes(std::span(bits)));
  };
  std::vector<std::byte> area(static_cast<std::size_t>(y_bytes + 2 * k_guard), k_guard_value);
  write(operands.x, x);
  write(operands.w, plan.weights == GemmWeights::out_in ? transposed(w, n) : w);
  const std::vector<float> frequencies = inv_freq.empty() ? inv_freq : gemm_frequencies(plan, inv_freq);
  operands.frequencies = cluster.ddr_malloc(256 + 4 * static_cast<std::int64_t>(frequencies.size()));
  cluster.write(operands.frequencies, std::as_bytes(std::span(frequencies)));
  cluster.write(guarded, area);
  GemmRun run;
  run.result = cluster.launch(gemm_program(cluster, plan, operands));
  if (cluster.depth() == sim::Depth::timing) return run;

  cluster.read(guarded, area);
  const auto untouched = [&](std::byte b) { return b == k_guard_value; };
  run.guards_intact = std::all_of(area.begin(), area.begin() + k_guard, untouched) &&
                      std::all_of(area.end() - k_guard, area.end(), untouched);
  run.y.resize(static_cast<std::size_t>(m * n));
  if (plan.dtype == DType::f32) {
    cluster.read(operands.y, std::as_writable_bytes(std::span(run.y)));
  } else {
    std::vector<std::uint16_t> bits(run.y.size());
    cluster.read(operands.y, std::as_writable_bytes(std::span(bits)));
    run.y = values_f16(bits);
  }
  return run;
}

}  // namespace mtsim::kernels
