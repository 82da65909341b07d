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

/// One side of W in tiles, of which none crosses from part to part.
class Cut {
 public:
  Cut(std::int64_t whole, std::int64_t part, std::int64_t tile)
      : m_whole(whole), m_part(part), m_tile(tile), m_tiles(ceil_div(part, tile)) {}

  std::int64_t count() const { return whole_parts() * m_tiles + ceil_div(m_whole - whole_parts() * m_part, m_tile); }
  std::int64_t part(std::int64_t i) const { return i / m_tiles; }
  std::int64_t in_part(std::int64_t i) const { return i % m_tiles * m_tile; }  // where tile i begins in it
  std::int64_t start(std::int64_t i) const { return part(i) * m_part + in_part(i); }
  std::int64_t size(std::int64_t i) const { return std::min({m_tile, m_part - in_part(i), m_whole - start(i)}); }

 private:
  std::int64_t whole_parts() const { return m_whole / m_part; }
  std::int64_t m_whole, m_part, m_tile, m_tiles;
};

class NaiveGemm {
 public:
  NaiveGemm(sim::Dsp& dsp, const NaiveGemmPlan& plan, const NaiveGemmOperands& operands, const sim::Kernel& gemm,
            const ScalarKernels& kernels)
      : m_dsp(dsp),
        m_plan(plan),
        m_layout(plan.layout),
        m_operands(operands),
        m_gemm(gemm),
        m_x(dsp, kernels, m_layout.x, plan.rows, plan.depth),
        m_w(dsp, kernels, m_layout.w, plan.depth, plan.columns),
        m_y(dsp, kernels, m_layout.y, plan.rows, plan.columns) {}

  void run() {
    const auto [m, n, k] = m_plan.shape;
    const Cut across(n, m_layout.part_columns, m_plan.columns), along(k, m_layout.part_rows, m_plan.depth);
    const std::int64_t blocks = ceil_div(m, m_plan.rows) * across.count();
    for (std::int64_t block = m_dsp.thread_id(); block < blocks; block += m_dsp.group_size()) {
      m_dsp.loop_iteration();
      const std::int64_t row = block / across.count() * m_plan.rows, column = block % across.count();
      const std::int64_t rows = std::min(m_plan.rows, m - row), columns = across.size(column);
      m_y.clear(rows);
      for (std::int64_t i = 0; i < along.count(); ++i) {
        m_dsp.loop_iteration();
        const std::int64_t depth = along.size(i);
        m_x.load(m_operands.x + (row * m_layout.x_pitch + along.start(i)) * bytes_of(m_layout.x), rows, depth,
                 m_layout.x_pitch);
        const sim::Pointer part = m_operands.w[static_cast<std::size_t>(across.part(column) + along.part(i))];
        m_w.load(part + (along.in_part(i) * m_layout.w_pitch + across.in_part(column)) * bytes_of(m_layout.w), depth,
                 columns, m_layout.w_pitch);
        m_dsp.call(m_gemm, {m_x.values(), m_w.values(), m_y.values(), rows, columns, depth, m_x.pitch(), m_w.pitch(),
                            m_y.pitch()});
      }
      m_y.store(m_operands.y + (row * m_layout.y_pitch + across.start(column)) * bytes_of(m_layout.y), rows, columns,
                m_layout.y_pitch);
    }
  }

 private:
  sim::Dsp& m_dsp;
  const NaiveGemmPlan& m_plan;
  const NaiveGemmLayout& m_layout;
  const NaiveGemmOperands& m_operands;
  const sim::Kernel& m_gemm;
  ScalarTile m_x, m_w, m_y;
};

std::int64_t resolved_pitch(const char* matrix, std::int64_t pitch, std::int64_t columns) {
  if (pitch == 0) return columns;
  if (pitch < columns) {
    throw KernelError(fmt::format("gemm, naive: {} has a pitch of {} elements and rows of {}; rows must not overlap",
                                  matrix, pitch, columns));
  }
  return pitch;
}

}  // namespace

std::int64_t NaiveGemmPlan::parts() const {
  return ceil_div(shape.n, layout.part_columns) * ceil_div(shape.k, layout.part_rows);
}

NaiveGemmPlan plan_naive_gemm(const GemmShape& shape, const NaiveGemmLayout& layout,
                              const sim::MachineConfig& machine) {
  const auto [m, n, k] = shape;
  if (layout.part_columns > 0 && layout.part_rows > 0)
    throw KernelError("gemm, naive: W is in parts of columns or of rows, not of both");
  NaiveGemmPlan plan{.shape = shape, .layout = layout};
  NaiveGemmLayout& its = plan.layout;
  its.part_columns = layout.part_columns == 0 ? n : layout.part_columns;
  its.part_rows = layout.part_rows == 0 ? k : layout.part_rows;
  its.x_pitch = resolved_pitch("X", layout.x_pitch, k);
  its.w_pitch = resolved_pitch("W", layout.w_pitch, its.part_columns);
  its.y_pitch = resolved_pitch("Y", layout.y_pitch, n);
  plan.rows = std::clamp<std::int64_t>(ceil_div(m, machine.cluster.cores), 1, k_tile_rows);
  plan.columns = std::min({n, its.part_columns, k_tile_columns});
  plan.depth = std::min({k, its.part_rows, k_tile_depth});
  plan.sm_bytes = ScalarTile::sm_bytes(plan.rows, plan.depth) + ScalarTile::sm_bytes(plan.depth, plan.columns) +
                  ScalarTile::sm_bytes(plan.rows, plan.columns);
  require_sm("gemm, naive", plan.sm_bytes, machine);
  return plan;
}

NaiveGemmPlan plan_naive_gemm(const GemmShape& shape, DType dtype, const sim::MachineConfig& machine) {
  return plan_naive_gemm(shape, NaiveGemmLayout{.x = dtype, .w = dtype, .y = dtype}, machine);
}

GemmErrorBound naive_gemm_error_bound(const NaiveGemmPlan& plan) {
  const auto k = static_cast<double>(plan.shape.k);
  const double roundings = k * 0x1p-24;
  const double sums = roundings / (1 - roundings);
  if (plan.layout.y == DType::f32) return {.relative = sums, .absolute = 0, .rms = gemm_rms_error(0, k, 0)};
  return {.relative = sums + 0x1p-11 * (1 + sums), .absolute = 0x1p-25, .rms = gemm_rms_error(0, k, 1)};
}

sim::DspProgram naive_gemm(sim::Cluster& cluster, const NaiveGemmPlan& plan, const NaiveGemmOperands& operands) {
  if (std::ssize(operands.w) != plan.parts()) {
    throw KernelError(fmt::format("gemm, naive: W has {} parts, the plan {}", std::ssize(operands.w), plan.parts()));
  }
  const sim::Kernel gemm = cluster.load(program("gemm_naive", cluster.machine().pipeline));
  const ScalarKernels kernels(cluster);
  return [=](sim::Dsp& dsp) { NaiveGemm(dsp, plan, operands, gemm, kernels).run(); };
}

}  // namespace mtsim::kernels
