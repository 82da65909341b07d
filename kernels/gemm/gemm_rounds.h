// SPDX-License-Identifier: Apache-2.0
// What the dataflows that work in rounds share (large_m, w_stationary): X2 and W2 in buffers, and Y2 in AM and on its
// way from and to DDR. Private to kernels/gemm.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

#include "kernels/gemm/gemm_program.h"

namespace mtsim::kernels::gemm {

/// A round: the k-steps of one k-block on one Y2 of a core.
struct Round {
  std::int64_t turn = 0;                                    // rounds before it that had Y2 in another buffer
  std::int64_t row = 0, rows = 0, column = 0, columns = 0;  // of Y; no rows: the core has no part in it
  std::int64_t k_block = 0;
  std::int64_t steps = 0;
};

/// One core's part of a GEMM in rounds.
class RoundProgram : protected CoreProgram {
 protected:
  /// `w_rows`: rows of W that a buffer holds. `scratch_unit`: columns to which those of a round come padded in scratch.
  RoundProgram(sim::Dsp& dsp, const GemmPlan& plan, const GemmOperands& operands, const Kernels& kernels,
               const Scratch& scratch, std::int64_t w_rows, std::int64_t scratch_unit, int y_priority);

  struct Transfer {
    int channel = 0;
    bool in_flight = false;
  };
  void wait(Transfer& transfer) {
    if (transfer.in_flight) m_dsp.dma_wait(transfer.channel);
    transfer.in_flight = false;
  }

  bool last_k_block(const Round& round) const { return round.k_block == m_k_blocks - 1; }
  sim::Pointer x_buffer(std::int64_t step) const { return m_x[step % std::ssize(m_x)]; }

  /// Before step `s` of `now`: the tiles of Y2 that the step before moved are there.
  void wait_for_y(const Round& now, std::int64_t s);
  /// Fig. 7: each k-step moves one of `steps` tiles of the next round's Y2 in and of the last round's Y2 out; Fig. 6:
  /// one step moves all of it. What is merged at the end of this round comes in during it, complete before its last
  /// step. What comes in where the last round's Y2 still lies follows a step behind it.
  void move_y(const Round& now, std::int64_t s, const std::optional<Round>& next, const std::optional<Round>& last);
  void move_y_out(const Round& round) { move_rows(tile_of(round, false), 0, round.rows, m_y_out, false); }
  void wait_for_all_y();

  /// X2 and W2 of one step.
  struct Operands {
    sim::Pointer x, w;
    std::int64_t k = 0;
  };
  /// `between` runs before each strip; with `leave` each strip goes to DDR as soon as it is done.
  template <typename Between>
  void multiply(const Round& now, std::int64_t s, const Operands& operands, bool leave, const Between& between) {
    if (now.rows == 0) return;
    const bool fresh = s == 0 && (now.k_block == 0 || !m_transfers.empty());
    const CoreTile tile{operands.x,   operands.w, sums(now),   m_x_pitch,  m_w_pitch,
                        m_sums_pitch, now.rows,   now.columns, operands.k, !fresh};
    std::int64_t first = 0;  // row that is not finished
    for (const CutStrip& strip : strips(tile)) {
      between();
      multiply_strip(tile, strip);
      if (s == now.steps - 1) first = finish_rows(now, tile, first, strip.row + strip.rows, leave);
    }
    m_left = 0;
  }

  const bool m_stays;
  const std::int64_t m_k_blocks;
  const std::int64_t m_x_pitch, m_w_pitch;  // of X2 and W2
  std::vector<sim::Pointer> m_x;            // SM
  std::vector<sim::Pointer> m_w;            // AM

 private:
  /// A round's Y2 in AM as it moves.
  struct Tile {
    sim::Pointer am;
    std::int64_t am_pitch = 0;
    sim::Pointer ddr;
    std::int64_t ddr_pitch = 0;
    std::int64_t bytes = 0;  // of a row
  };
  sim::Pointer sums(const Round& round) const { return m_sums[round.turn % std::ssize(m_sums)]; }
  bool comes_in(const Round& round) const { return round.k_block > 0 && !m_stays; }
  bool goes_out(const Round& round) const { return last_k_block(round) || !m_stays; }
  /// Whether a round ends with FP16 made of its FP32 sums.
  bool ends_narrow(const Round& round) const { return narrows() && (last_k_block(round) || !m_transfers.empty()); }
  NarrowTile narrow_tile(const Round& round) const;
  Tile tile_of(const Round& round, bool in) const;
  void move_rows(const Tile& tile, std::int64_t first, std::int64_t last, Transfer& transfer, bool in);
  bool in_follows_out() const { return m_transfers.empty() ? m_sums.size() == 2 : m_transfers.size() == 1; }
  void complete_y_in(const Round& now);
  /// Rows [first, `end`) of the round's last step are multiplied; returns the first row that cannot be finished yet.
  std::int64_t finish_rows(const Round& now, const CoreTile& tile, std::int64_t first, std::int64_t end, bool leave);

  static constexpr int k_strips = RoundChannels::k_strips;
  const std::int64_t m_sums_pitch, m_y_pitch;  // of Y2: sums, FP16 in tiles of its own
  const std::int64_t m_scratch_unit;
  const int m_y_priority;
  const sim::Pointer m_scratch;           // DDR: FP32 sums between k-blocks
  std::vector<sim::Pointer> m_sums;       // AM
  std::vector<sim::Pointer> m_transfers;  // AM: FP16, if the sums do not move themselves
  Transfer m_y_in{RoundChannels::k_y_in}, m_y_out{RoundChannels::k_y_out};
  std::array<Transfer, k_strips> m_leaving;  // strips of the very last step
  std::size_t m_left = 0;                    // of them, so far
  std::int64_t m_rows_in = 0;                // of the Y2 that comes in, asked for so far
};

}  // namespace mtsim::kernels::gemm
