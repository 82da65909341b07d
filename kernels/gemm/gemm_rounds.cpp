// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/gemm_rounds.h"

#include <algorithm>

namespace mtsim::kernels::gemm {

RoundProgram::RoundProgram(sim::Dsp& dsp, const GemmPlan& plan, const GemmOperands& operands, const Kernels& kernels,
                           const Scratch& scratch, std::int64_t w_rows, std::int64_t scratch_unit, int y_priority)
    : CoreProgram(dsp, plan, operands, kernels),
      m_stays(plan.y_stays),
      m_k_blocks(ceil_div(m_shape.k, m_tiles.kg)),
      m_x_pitch(m_tiles.k2 * m_bytes),
      m_w_pitch(m_tiles.n2 * m_bytes),
      m_x(m_tiles.x_buffers),
      m_w(m_tiles.w_buffers),
      m_sums_pitch(plan.sum_columns * m_sum_bytes),
      m_y_pitch(plan.sum_columns * m_bytes),
      m_scratch_unit(scratch_unit),
      m_y_priority(y_priority),
      m_scratch(scratch.sums),
      m_sums(plan.y_buffers),
      m_transfers(plan.y_transfers) {
  for (auto& x : m_x) x = dsp.scalar_malloc(plan.x_rows * m_x_pitch);
  for (auto& w : m_w) w = dsp.vector_malloc(w_rows * m_w_pitch);
  for (auto& sums : m_sums) sums = dsp.vector_malloc(plan.sum_rows * m_sums_pitch);
  for (auto& y : m_transfers) y = dsp.vector_malloc(plan.sum_rows * m_y_pitch);
  for (int i = 0; i < k_strips; ++i) m_leaving[i].channel = RoundChannels::k_first_strip + i;
}

/// FP16: in a tile of its own, or at the start of each row of the sums.
NarrowTile RoundProgram::narrow_tile(const Round& round) const {
  if (m_transfers.empty()) return {sums(round), m_sums_pitch, false};
  return {m_transfers[round.turn % std::ssize(m_transfers)], m_y_pitch, round.k_block > 0};
}

RoundProgram::Tile RoundProgram::tile_of(const Round& round, bool in) const {
  const bool sums_move = narrows() && m_transfers.empty() && (in || !last_k_block(round));
  if (sums_move) {  // FP32 in the order of the microkernel, pads included
    const std::int64_t pitch = round_up(m_shape.n, m_scratch_unit) * m_sum_bytes;
    return {sums(round), m_sums_pitch, m_scratch + round.row * pitch + round.column * m_sum_bytes, pitch,
            round_up(round.columns, m_scratch_unit) * m_sum_bytes};
  }
  const NarrowTile y = narrows() ? narrow_tile(round) : NarrowTile{sums(round), m_sums_pitch};
  return {y.y, y.y_pitch, y_at(round.row, round.column), m_shape.n * m_bytes, round.columns * m_bytes};
}

/// Moves rows [first, last) of a round's Y2.
void RoundProgram::move_rows(const Tile& tile, std::int64_t first, std::int64_t last, Transfer& transfer, bool in) {
  if (first >= last) return;
  wait(transfer);
  const sim::Pointer am = tile.am + first * tile.am_pitch, ddr = tile.ddr + first * tile.ddr_pitch;
  const sim::Rows am_rows = rows_of(last - first, tile.bytes, tile.am_pitch),
                  ddr_rows = rows_of(last - first, tile.bytes, tile.ddr_pitch);
  if (in)
    m_dsp.raw_dma_p2p(ddr, ddr_rows, am, am_rows, m_y_priority, transfer.channel);
  else
    m_dsp.raw_dma_p2p(am, am_rows, ddr, ddr_rows, m_y_priority, transfer.channel);
  transfer.in_flight = true;
}

void RoundProgram::wait_for_y(const Round& now, std::int64_t s) {
  wait(m_y_in);
  wait(m_y_out);
  if (s == 0 && m_transfers.empty()) complete_y_in(now);
}

void RoundProgram::move_y(const Round& now, std::int64_t s, const std::optional<Round>& next,
                          const std::optional<Round>& last) {
  const bool merges = !m_transfers.empty(), follows = in_follows_out();
  const auto parts_in = [&](std::int64_t most) { return m_tiles.y_tiles > 0 ? std::min(m_tiles.y_tiles, most) : most; };
  const std::int64_t in_parts = parts_in(merges ? std::max<std::int64_t>(1, now.steps - 1) : now.steps);
  const std::int64_t out_parts = follows ? in_parts : parts_in(now.steps);
  const auto row = [](std::int64_t all, std::int64_t parts, std::int64_t count) {
    return all * std::clamp<std::int64_t>(count, 0, parts) / parts;
  };
  const std::optional<Round> in = merges ? std::optional(now) : next;
  // Where one follows the other both go by the same rows, whatever each has.
  const std::int64_t both = in && last ? std::max(in->rows, last->rows) : 0;
  const auto rows_until = [&](const Round& round, std::int64_t parts, std::int64_t count) {
    return std::min(round.rows, row(follows && both > 0 ? both : round.rows, parts, count));
  };
  if (in && comes_in(*in)) {
    const std::int64_t step = s - (follows ? 1 : 0);
    m_rows_in = rows_until(*in, in_parts, step + 1);
    move_rows(tile_of(*in, true), rows_until(*in, in_parts, step), m_rows_in, m_y_in, true);
  }
  if (last && goes_out(*last)) {
    move_rows(tile_of(*last, false), rows_until(*last, out_parts, s), rows_until(*last, out_parts, s + 1), m_y_out,
              false);
  }
}

/// All of what came in for this round, before it is used.
void RoundProgram::complete_y_in(const Round& now) {
  if (comes_in(now) && m_rows_in < now.rows) {
    wait(m_y_out);
    move_rows(tile_of(now, true), m_rows_in, now.rows, m_y_in, true);
    m_rows_in = now.rows;
  }
  wait(m_y_in);
}

void RoundProgram::wait_for_all_y() {
  wait(m_y_out);
  for (Transfer& strip : m_leaving) wait(strip);
}

std::int64_t RoundProgram::finish_rows(const Round& now, const CoreTile& tile, std::int64_t first, std::int64_t end,
                                       bool leave) {
  const std::int64_t last = rows_to_narrow(tile, end);
  if (ends_narrow(now)) {
    if (m_transfers.empty())
      wait(m_y_in);  // of the next round
    else
      complete_y_in(now);  // in flight only if the round has a single step, or too few buffers
    narrow_rows(tile, narrow_tile(now), first, last);
  }
  if (last_k_block(now)) {
    const Tile y = tile_of(now, false);
    m_epilogue.finish({y.am + first * y.am_pitch, y.am_pitch, first, last - first, now.column, tile.columns});
  }
  if (leave) move_rows(tile_of(now, false), first, last, m_leaving[m_left++ % m_leaving.size()], false);
  return last;
}

}  // namespace mtsim::kernels::gemm
