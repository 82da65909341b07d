// SPDX-License-Identifier: Apache-2.0
#include "kernels/naive/scalar_memory.h"

#include <fmt/format.h>

#include "kernels/library.h"
#include "kernels/round.h"
#include "sim/arena.h"

namespace mtsim::kernels {
namespace {

constexpr std::int64_t k_word_elements = 4;  // widened and narrowed at a time

constexpr std::int64_t padded(std::int64_t columns) {
  return (columns + k_word_elements - 1) / k_word_elements * k_word_elements;
}
/// What scalar_malloc takes for it.
constexpr std::int64_t allocated(std::int64_t bytes) { return round_up(bytes, sim::Arena::k_alignment); }

}  // namespace

ScalarKernels::ScalarKernels(sim::Cluster& cluster) {
  const isa::Program& rows = program("rows_naive", cluster.machine().pipeline);
  fill = cluster.load(rows, "fill");
  widen = cluster.load(rows, "widen_f16");
  narrow = cluster.load(rows, "narrow_f16");
}

void require_sm(std::string_view op, std::int64_t bytes, const sim::MachineConfig& machine) {
  if (bytes <= machine.core.sm_bytes) return;
  throw KernelError(
      fmt::format("{} needs {} bytes of SM, {} available (core.sm_bytes)", op, bytes, machine.core.sm_bytes));
}

ScalarTile::ScalarTile(sim::Dsp& dsp, const ScalarKernels& kernels, DType dtype, std::int64_t rows,
                       std::int64_t columns)
    : m_dsp(dsp), m_kernels(kernels), m_dtype(dtype), m_columns(padded(columns)) {
  m_values = dsp.scalar_malloc(4 * rows * m_columns);
  m_halves = m_values + 2 * rows * m_columns;
  if (dtype == DType::f32) return;
  // Pads are widened with what lies before them.
  dsp.call(kernels.fill, {m_halves, m_halves, m_halves, rows, m_columns / k_word_elements, 0, 0, 0, 0});
}

std::int64_t ScalarTile::sm_bytes(std::int64_t rows, std::int64_t columns) {
  return allocated(4 * rows * padded(columns));
}

sim::Rows ScalarTile::rows_of(std::int64_t rows, std::int64_t columns, std::int64_t stride) const {
  return {rows, columns * bytes_of(m_dtype), (stride - columns) * bytes_of(m_dtype)};
}

void ScalarTile::load(sim::Pointer ddr, std::int64_t rows, std::int64_t columns, std::int64_t stride) {
  const bool wide = m_dtype == DType::f32;
  m_dsp.dma_wait(m_dsp.dma_p2p(ddr, rows_of(rows, columns, stride), wide ? m_values : m_halves,
                               rows_of(rows, columns, m_columns)));
  if (!wide) m_dsp.call(m_kernels.widen, {m_halves, m_halves, m_values, rows, m_columns / k_word_elements, 0, 0, 0, 0});
}

void ScalarTile::store(sim::Pointer ddr, std::int64_t rows, std::int64_t columns, std::int64_t stride) {
  const bool wide = m_dtype == DType::f32;
  if (!wide)
    m_dsp.call(m_kernels.narrow, {m_values, m_values, m_values, rows, m_columns / k_word_elements, 0, 0, 0, 0});
  m_dsp.dma_wait(m_dsp.dma_p2p(m_values, rows_of(rows, columns, m_columns), ddr, rows_of(rows, columns, stride)));
}

void ScalarTile::clear(std::int64_t rows) {
  m_dsp.call(m_kernels.fill, {m_values, m_values, m_values, rows, m_columns / 2, 0, 0, 0, 0});
}

}  // namespace mtsim::kernels
