// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "kernels/library.h"
#include "kernels/naive/naive.h"
#include "kernels/naive/scalar_memory.h"
#include "kernels/round.h"

namespace mtsim::kernels {
namespace {

constexpr std::int64_t k_tile_rows = 32, k_tile_columns = 64, k_tile_depth = 64;

class NaiveGemm {
 public:
  NaiveGemm(sim::Dsp& dsp, const NaiveGemmPlan& plan, const GemmOperands& operands, const sim::Kernel& gemm,
            const ScalarKernels& kernels)
      : m_dsp(dsp),
        m_plan(plan),
        m_operands(operands),
        m_gemm(gemm),
        m_x(dsp, kernels, plan.dtype, plan.rows, plan.depth),
        m_w(dsp, kernels, plan.dtype, plan.depth, plan.columns),
        m_y(dsp, kernels, plan.dtype, plan.rows, plan.columns) {}

  void run() {
    const auto [m, n, k] = m_plan.shape;
    const std::int64_t across = ceil_div(n, m_plan.columns), blocks = ceil_div(m, m_plan.rows) * across;
    for (std::int64_t block = m_dsp.thread_id(); block < blocks; block += m_dsp.group_size()) {
      m_dsp.loop_iteration();
      const std::int64_t row = block / across * m_plan.rows, column = block % across * m_plan.columns;
      const std::int64_t rows = std::min(m_plan.rows, m - row), columns = std::min(m_plan.columns, n - column);
      m_y.clear(rows);
      for (std::int64_t at = 0; at < k; at += m_plan.depth) {
        m_dsp.loop_iteration();
        const std::int64_t depth = std::min(m_plan.depth, k - at), bytes = bytes_of(m_plan.dtype);
        m_x.load(m_operands.x + (row * k + at) * bytes, rows, depth, k);
        m_w.load(m_operands.w + (at * n + column) * bytes, depth, columns, n);
        m_dsp.call(m_gemm, {m_x.values(), m_w.values(), m_y.values(), rows, columns, depth, m_x.pitch(), m_w.pitch(),
                            m_y.pitch()});
      }
      m_y.store(m_operands.y + (row * n + column) * bytes_of(m_plan.dtype), rows, columns, n);
    }
  }

 private:
  sim::Dsp& m_dsp;
  const NaiveGemmPlan& m_plan;
  const GemmOperands& m_operands;
  const sim::Kernel& m_gemm;
  ScalarTile m_x, m_w, m_y;
};

}  // namespace

NaiveGemmPlan plan_naive_gemm(const GemmShape& shape, DType dtype, const sim::MachineConfig& machine) {
  NaiveGemmPlan plan{.shape = shape, .dtype = dtype};
  plan.rows = std::clamp<std::int64_t>(ceil_div(shape.m, machine.cluster.cores), 1, k_tile_rows);
  plan.columns = std::min(shape.n, k_tile_columns);
  plan.depth = std::min(shape.k, k_tile_depth);
  plan.sm_bytes = ScalarTile::sm_bytes(dtype, plan.rows, plan.depth) +
                  ScalarTile::sm_bytes(dtype, plan.depth, plan.columns) +
                  ScalarTile::sm_bytes(dtype, plan.rows, plan.columns);
  require_sm("gemm, naive", plan.sm_bytes, machine);
  return plan;
}

GemmErrorBound naive_gemm_error_bound(const NaiveGemmPlan& plan) {
  const auto k = static_cast<double>(plan.shape.k);
  const double roundings = k * 0x1p-24;
  const double sums = roundings / (1 - roundings);
  if (plan.dtype == DType::f32) return {.relative = sums, .absolute = 0, .rms = gemm_rms_error(0, k, 0)};
  return {.relative = sums + 0x1p-11 * (1 + sums), .absolute = 0x1p-25, .rms = gemm_rms_error(0, k, 1)};
}

sim::DspProgram naive_gemm(sim::Cluster& cluster, const NaiveGemmPlan& plan, const GemmOperands& operands) {
  const sim::Kernel gemm = cluster.load(program("gemm_naive", cluster.machine().pipeline));
  const ScalarKernels kernels(cluster);
  return [=](sim::Dsp& dsp) { NaiveGemm(dsp, plan, operands, gemm, kernels).run(); };
}

}  // namespace mtsim::kernels
