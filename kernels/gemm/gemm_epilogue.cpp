// SPDX-License-Identifier: Apache-2.0
// RoPE: the table of a block's rows is made once, before its first products, while the core would wait for operands;
// the paper's Algorithm 1 computes sine and cosine anew for every tile. Rotation works on Y in its type, in place, so
// that the result has the bits of a GEMM with rope() behind it.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/gemm/gemm_program.h"
#include "sim/arena.h"

namespace mtsim::kernels::gemm {
namespace {

[[noreturn]] void refuse(const GemmPlan& plan, const RopeEpilogue& rope, const std::string& what) {
  throw KernelError(fmt::format("gemm m={} n={} k={} with RoPE of heads of {}: {}, or run rope behind the gemm",
                                plan.shape.m, plan.shape.n, plan.shape.k, rope.head_dim, what));
}

std::int64_t rope_bytes(const RopeLayout& layout, std::int64_t rows) {
  return round_up(layout.angles * 4, sim::Arena::k_alignment) +
         round_up(rows * layout.table_pitch(), sim::Arena::k_alignment);
}

}  // namespace

std::optional<RopeLayout> rope_layout(const GemmPlan& plan) {
  const auto* rope = std::get_if<RopeEpilogue>(&plan.epilogue);
  if (rope == nullptr) return std::nullopt;
  const std::int64_t columns = rope->columns == 0 ? plan.shape.n : rope->columns;
  if (rope->head_dim < 1 || columns % rope->head_dim != 0 || columns > plan.shape.n || columns < 0)
    refuse(plan, *rope,
           fmt::format("{} columns to rotate are no whole heads of Y; use a multiple of {} up to {}", columns,
                       rope->head_dim, plan.shape.n));
  return RopeLayout::of(columns / rope->head_dim, rope->head_dim, rope->pairs, plan.dtype);
}

void check_epilogue(GemmPlan& plan, std::int64_t cut, std::string_view cut_name) {
  const std::optional<RopeLayout> layout = rope_layout(plan);
  if (!layout) return;
  const auto& rope = std::get<RopeEpilogue>(plan.epilogue);
  rope.positions.check(plan.shape.m);
  if (!layout->dense)
    refuse(plan, rope,
           fmt::format("a vector of {} would hold parts of two heads or halves; use whole vectors",
                       to_string(plan.dtype)));
  if (cut % layout->head_dim != 0)
    refuse(plan, rope, fmt::format("{}={} cuts a head; use a multiple of {}", cut_name, cut, layout->head_dim));
  plan.epilogue_rows = k_gemm_m1;
  plan.epilogue_bytes = rope_bytes(*layout, plan.epilogue_rows);
}

void place_epilogue(GemmPlan& plan, std::int64_t am) {
  if (const auto layout = rope_layout(plan)) {
    const std::int64_t whole = rope_bytes(*layout, plan.m2);
    if (plan.m2 > plan.epilogue_rows && plan.am_bytes + whole <= am) {
      plan.epilogue_rows = plan.m2;
      plan.epilogue_bytes = whole;
    }
  }
  plan.am_bytes += plan.epilogue_bytes;
}

CoreEpilogue::CoreEpilogue(sim::Dsp& dsp, const GemmPlan& plan, const GemmOperands& operands,
                           const std::optional<RopeTile>& rope)
    : m_dsp(dsp), m_rope(rope), m_table_rows(plan.epilogue_rows) {
  if (!m_rope) return;
  m_positions = std::get<RopeEpilogue>(plan.epilogue).positions;
  const RopeLayout& layout = m_rope->layout();
  m_frequencies = dsp.vector_malloc(layout.angles * 4);
  m_table = dsp.vector_malloc(m_table_rows * layout.table_pitch());
  const sim::Rows row{1, layout.angles * 4, 0};
  m_loading = dsp.dma_p2p(operands.frequencies, row, m_frequencies, row);
}

void CoreEpilogue::begin_rows(std::int64_t first, std::int64_t count) {
  if (!m_rope) return;
  if (m_loading) m_dsp.dma_wait(*m_loading);
  m_loading.reset();
  m_first = first;
  m_prepared = count <= m_table_rows;
  if (m_prepared) m_rope->tabulate(m_dsp, m_positions, first, count, m_frequencies, m_table);
}

void CoreEpilogue::finish(const FinishedTile& tile) {
  if (!m_rope) return;
  const RopeLayout& layout = m_rope->layout();
  const std::int64_t end = std::min(tile.column + tile.columns, layout.heads * layout.head_dim);
  if (end <= tile.column) return;
  const std::int64_t heads = (end - tile.column) / layout.head_dim;
  if (m_prepared) {
    if (tile.rows > 0)
      m_rope->rotate(m_dsp, tile.y, tile.pitch, tile.rows, heads, m_table + tile.row * layout.table_pitch());
    return;
  }
  for (std::int64_t row = 0; row < tile.rows; row += m_table_rows) {
    const std::int64_t rows = std::min(m_table_rows, tile.rows - row);
    m_rope->tabulate(m_dsp, m_positions, m_first + tile.row + row, rows, m_frequencies, m_table);
    m_rope->rotate(m_dsp, tile.y + row * tile.pitch, tile.pitch, rows, heads, m_table);
  }
}

}  // namespace mtsim::kernels::gemm
