// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string>

#include "kernels/library.h"
#include "kernels/naive/naive.h"
#include "kernels/naive/scalar_memory.h"
#include "kernels/round.h"

namespace mtsim::kernels {
namespace {

constexpr std::int64_t k_tile_elements = 2048;

std::string entry_of(NaiveOp op) {
  constexpr std::array k_entries = {"add", "silu_mul", "softmax", "rmsnorm", "rope_interleaved", "rope_half", "add"};
  return k_entries[static_cast<std::size_t>(op)];
}

/// The columns of the one row of a; 0 where there is none.
std::int64_t constant_columns(const NaiveRowsShape& shape) {
  if (shape.op == NaiveOp::rmsnorm || shape.op == NaiveOp::bias) return shape.columns;
  return shape.is_rope() ? shape.columns / shape.heads / 2 : 0;
}

/// What passes through SM tile by tile: rows, or single elements where rows do not matter.
struct Items {
  std::int64_t count, elements;
  explicit Items(const NaiveRowsShape& shape)
      : count(shape.is_elementwise() ? shape.rows * shape.columns : shape.rows),
        elements(shape.is_elementwise() ? 1 : shape.columns) {}
};

std::int64_t sm_bytes(const NaiveRowsShape& shape, std::int64_t tile) {
  if (shape.is_elementwise()) return 2 * ScalarTile::sm_bytes(1, tile);
  const std::int64_t constant = constant_columns(shape);
  return ScalarTile::sm_bytes(tile, shape.columns) + (constant == 0 ? 0 : ScalarTile::sm_bytes(1, constant));
}

class NaiveRows {
 public:
  NaiveRows(sim::Dsp& dsp, const NaiveRowsPlan& plan, const NaiveRowsOperands& operands, const sim::Kernel& kernel,
            const ScalarKernels& kernels)
      : m_dsp(dsp), m_shape(plan.shape), m_tile(plan.tile), m_operands(operands), m_kernel(kernel) {
    const Items items(m_shape);
    const std::int64_t core = dsp.thread_id(), cores = dsp.group_size();
    m_first = items.count * core / cores;
    m_end = items.count * (core + 1) / cores;
    if (m_first == m_end) return;
    const std::int64_t rows = m_shape.is_elementwise() ? 1 : m_tile;
    const std::int64_t columns = m_shape.is_elementwise() ? m_tile : m_shape.columns;
    m_x.emplace(dsp, kernels, m_shape.dtype, rows, columns);
    if (m_shape.is_elementwise()) m_a.emplace(dsp, kernels, m_shape.dtype, rows, columns);
    if (const std::int64_t constant = constant_columns(m_shape); constant > 0) {
      m_a.emplace(dsp, kernels, m_shape.a_dtype, 1, constant);
      m_a->load(operands.a, 1, constant, constant);
    }
  }

  void run() {
    for (std::int64_t at = m_first; at < m_end; at += m_tile) {
      m_dsp.loop_iteration();
      const std::int64_t items = std::min(m_tile, m_end - at);
      if (m_shape.is_elementwise())
        elements(at * bytes_of(m_shape.dtype), items);
      else
        rows(at, items);
    }
  }

 private:
  void elements(std::int64_t offset, std::int64_t count) {
    m_x->load(m_operands.x + offset, 1, count, count);
    m_a->load(m_operands.a + offset, 1, count, count);
    call(m_x->values(), 1, count, 0);
    m_x->store(m_operands.y + offset, 1, count, count);
  }

  void rows(std::int64_t first, std::int64_t count) {
    const std::int64_t columns = m_shape.columns, offset = first * columns * bytes_of(m_shape.dtype);
    m_x->load(m_operands.x + offset, count, columns, columns);
    const bool listed = !m_shape.positions.empty();
    if (!listed && m_shape.op != NaiveOp::bias) {  // microcode that takes rows and their one row of a
      call(m_x->values(), count, columns, m_shape.position + first);
    } else {
      for (std::int64_t row = 0; row < count; ++row) {
        m_dsp.loop_iteration();
        call(m_x->values() + row * m_x->pitch(), 1, columns,
             listed ? m_shape.positions[static_cast<std::size_t>(first + row)] : 0);
      }
    }
    m_x->store(m_operands.y + offset, count, columns, columns);
  }

  void call(sim::Pointer x, std::int64_t rows, std::int64_t columns, std::int64_t position) {
    const auto bits = [](float value) { return std::uint64_t{std::bit_cast<std::uint32_t>(value)}; };
    const float value = m_shape.is_rope() ? static_cast<float>(position) : m_shape.value;
    m_dsp.call(m_kernel,
               {x, m_a ? m_a->values() : x, x, rows, m_shape.is_rope() ? columns / m_shape.heads / 2 : columns,
                m_shape.heads, bits(value), bits(1.0F / static_cast<float>(columns)), m_x->pitch()});
  }

  sim::Dsp& m_dsp;
  const NaiveRowsShape& m_shape;
  const std::int64_t m_tile;
  const NaiveRowsOperands& m_operands;
  const sim::Kernel& m_kernel;
  std::int64_t m_first = 0, m_end = 0;
  std::optional<ScalarTile> m_x, m_a;
};

}  // namespace

NaiveRowsPlan plan_naive_rows(const NaiveRowsShape& shape, const sim::MachineConfig& machine) {
  NaiveRowsPlan plan{.shape = shape};
  const Items items(shape);
  require_sm((shape.op == NaiveOp::bias ? "bias" : entry_of(shape.op)) + ", naive", sm_bytes(shape, 1), machine);
  const std::int64_t share = ceil_div(items.count, machine.cluster.cores);
  plan.tile = std::clamp<std::int64_t>(k_tile_elements / items.elements, 1, share);
  while (plan.tile > 1 && sm_bytes(shape, plan.tile) > machine.core.sm_bytes) plan.tile /= 2;
  plan.sm_bytes = sm_bytes(shape, plan.tile);
  return plan;
}

sim::DspProgram naive_rows(sim::Cluster& cluster, const NaiveRowsPlan& plan, const NaiveRowsOperands& operands) {
  const isa::Program& rows = program("rows_naive", cluster.machine().pipeline);
  const sim::Kernel kernel = cluster.load(rows, entry_of(plan.shape.op));
  const ScalarKernels kernels(cluster);
  return [=](sim::Dsp& dsp) { NaiveRows(dsp, plan, operands, kernel, kernels).run(); };
}

}  // namespace mtsim::kernels
