// SPDX-License-Identifier: Apache-2.0
// What the DSP programs of the GEMM dataflows share; private to kernels/gemm.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/gemm_cut.h"
#include "kernels/round.h"
#include "sim/cluster.h"
#include "sim/dsp.h"

namespace mtsim::kernels::gemm {

using kernels::ceil_div;
using kernels::round_up;

/// What the microkernel of an element type takes. W as [n, k]: a vector holds k, so that k is padded to whole vectors.
struct Format {
  DType dtype;
  std::int64_t bytes;    // of an element
  std::int64_t m1;       // rows of Y1
  std::int64_t n1;       // columns of Y1
  std::int64_t k_unit;   // K1 is a multiple of it
  std::int64_t k_least;  // and at least this

  constexpr std::int64_t padded_k(std::int64_t k) const { return k < k_least ? k_least : round_up(k, k_unit); }
};
inline constexpr std::int64_t k_vector_bytes = 128, k_sm_word_bytes = 8;
inline constexpr std::int64_t k_zero_unit = 512;  // bytes, of zero_am.s
inline constexpr std::int64_t k_zero_rows = 6;    // of zero_sm_column.s
inline constexpr std::int64_t k_dot_scratch_bytes = 5 * 4 * k_vector_bytes;
inline constexpr std::int64_t k_dot_n1 = 32;  // columns of a gemm_dot call
constexpr Format format(DType dtype, GemmWeights weights = GemmWeights::in_out) {
  const std::int64_t bytes = bytes_of(dtype), lanes = k_vector_bytes / bytes;
  if (weights == GemmWeights::out_in) return {dtype, bytes, 1, 2 * k_dot_n1, lanes, lanes};
  return {dtype, bytes, k_gemm_m1, gemm_n1(dtype), gemm_k(dtype).unit, gemm_k(dtype).least};
}

/// What computes M1 x N1 of a plan that has no hand tile.
inline GemmTile main_tile(const GemmPlan& plan) {
  const std::int64_t vector = k_vector_bytes / bytes_of(plan.dtype);
  return {static_cast<int>(plan.tiles.m1), static_cast<int>(plan.tiles.n1 / vector), plan.dtype, true, plan.promotes()};
}

// DMA channels of a core. What the device library gives out (X, W) stays below the first channel of each dataflow's own
// numbering; the machine needs all of them.
inline constexpr int k_first_own_channel = 4;
struct RoundChannels {  // of large_m and w_stationary
  static constexpr int k_y_in = k_first_own_channel, k_y_out = 5, k_first_strip = 6, k_strips = 4;
};
struct LargeMChannels {
  static constexpr int k_first_chunk = 8, k_chunks = 8;  // strips leave when no chunk is in flight any more
  static constexpr int k_needed = k_first_chunk + k_chunks;
};
struct WStationaryChannels {  // strips leave when no X or W is in flight any more
  static constexpr int k_x = 6, k_first_w = 7, k_ws = 8;
  static constexpr int k_needed = k_first_w + k_ws;
};
struct SmallMChannels {
  static constexpr int k_first_w = k_first_own_channel, k_ws = 2, k_first_y = k_first_w + k_ws, k_ys = 8;
  static constexpr int k_needed = k_first_y + k_ys;
};

/// The microcode of one GEMM, decoded for the cluster's machine.
struct Kernels {
  std::shared_ptr<Cutter> cutter;      // shared by the cores; by rows none
  std::shared_ptr<TileKernels> tiles;  // those that the cutter asks for
  sim::Kernel accumulate;              // sums += X1 * W1, M1 x N1
  sim::Kernel write_only;              // sums = X1 * W1
  sim::Kernel narrow;                  // FP16 Y1 = FP32 sums
  sim::Kernel merge;                   // FP16 Y1 = Y1 + FP32 sums
  sim::Kernel zero_x_pad;              // what X2 and W2 hold behind the last k
  sim::Kernel zero_w_pad;
  sim::Kernel zero_am;
  sim::Kernel zero_vectors;  // of AM, where zero_am's unit is too large
  std::optional<RopeTile> rope;
};

/// X2 [rows, k] * W2 [k, columns] (+)= sums [rows, columns], all in this core's SM and AM, buffers padded to whole
/// tiles of M1 x N1: rows to M1, columns to N1, k to padded_k(k). Pitches in bytes. W2 lies as W does.
struct CoreTile {
  sim::Pointer x, w, sums;
  std::int64_t x_pitch = 0, w_pitch = 0, sums_pitch = 0;
  std::int64_t rows = 0, columns = 0, k = 0;
  bool accumulate = false;  // to what the sums hold; by rows always
  sim::Pointer scratch;     // by rows: k_dot_scratch_bytes of AM
};

/// Where the FP16 of a tile of FP32 sums goes: a row of it may lie at the start of the row of sums it comes from.
struct NarrowTile {
  sim::Pointer y;
  std::int64_t y_pitch = 0;
  bool merge = false;  // with the FP16 that is there
};

/// How the heads of a RopeEpilogue lie in Y; none without one. Throws KernelError for columns that are no whole heads.
std::optional<RopeLayout> rope_layout(const GemmPlan& plan);
/// Throws KernelError when the plan's epilogue cannot work on a Y that is cut every `cut` columns. Reserves the AM it
/// needs at least: for a strip of rows.
void check_epilogue(GemmPlan& plan, std::int64_t cut, std::string_view cut_name);
/// Gives it the AM for all rows of a core if that is left in `am` bytes. am_bytes is complete but for the epilogue's.
void place_epilogue(GemmPlan& plan, std::int64_t am);

/// Part of Y in AM, all its products added up, in the type it leaves with.
struct FinishedTile {
  sim::Pointer y;
  std::int64_t pitch = 0;                // bytes
  std::int64_t row = 0, rows = 0;        // behind the first of begin_rows
  std::int64_t column = 0, columns = 0;  // of Y
};

/// One core's part of the epilogue.
class CoreEpilogue {
 public:
  CoreEpilogue(sim::Dsp& dsp, const GemmPlan& plan, const GemmOperands& operands, const std::optional<RopeTile>& rope);

  /// Rows first .. first + count - 1 of Y come next.
  void begin_rows(std::int64_t first, std::int64_t count);
  void finish(const FinishedTile& tile);

 private:
  sim::Dsp& m_dsp;
  const std::optional<RopeTile>& m_rope;
  RopePositions m_positions;
  std::int64_t m_table_rows = 0;
  std::int64_t m_first = 0;             // row of Y that begin_rows began with
  bool m_prepared = false;              // the table holds all rows, else those of one tile at a time
  sim::Pointer m_frequencies, m_table;  // AM
  std::optional<int> m_loading;         // the frequencies
};

/// One core's part of a GEMM: operands, sizes and the steps all dataflows take.
class CoreProgram {
 protected:
  CoreProgram(sim::Dsp& dsp, const GemmPlan& plan, const GemmOperands& operands, const Kernels& kernels)
      : m_dsp(dsp),
        m_shape(plan.shape),
        m_tiles(plan.tiles),
        m_by_rows(plan.weights == GemmWeights::out_in),
        m_format(format(plan.dtype, plan.weights)),
        m_bytes(m_format.bytes),
        m_sum_bytes(bytes_of(plan.sum_type())),
        m_row_unit(m_by_rows ? 1 : plan.row_unit()),
        m_k_call(plan.promotes() ? plan.tiles.k_promote : plan.tiles.k2),
        m_operands(operands),
        m_kernels(kernels),
        m_epilogue(dsp, plan, operands, m_kernels.rope) {
    for (std::int64_t row = 0; m_by_rows && row < m_shape.m; ++row) m_single_rows.push_back({row, 1, {}});
  }

  bool narrows() const { return m_sum_bytes != m_bytes; }

  sim::Pointer x_at(std::int64_t row, std::int64_t k) const { return m_operands.x + (row * m_shape.k + k) * m_bytes; }
  sim::Pointer w_at(std::int64_t k, std::int64_t column) const {
    return m_operands.w + (m_by_rows ? column * m_shape.k + k : k * m_shape.n + column) * m_bytes;
  }
  sim::Pointer y_at(std::int64_t row, std::int64_t column) const {
    return m_operands.y + (row * m_shape.n + column) * m_bytes;
  }
  /// `count` rows of `bytes` in memory whose rows are `pitch` apart.
  static sim::Rows rows_of(std::int64_t count, std::int64_t bytes, std::int64_t pitch) {
    return {count, bytes, pitch - bytes};
  }

  /// Strips of rows, whose columns are multiplied one strip after the other. By rows a row each.
  const std::vector<CutStrip>& strips(const CoreTile& tile) const {
    return m_by_rows ? m_single_rows : m_kernels.cutter->cut(tile.rows, tile.columns).strips;
  }
  /// Rows of FP32 sums that may become FP16 once the strips up to row `end` are multiplied: as many as the microkernel
  /// narrows at a time while there are more.
  std::int64_t rows_to_narrow(const CoreTile& tile, std::int64_t end) const {
    return end == tile.rows ? end : end / m_format.m1 * m_format.m1;
  }

  /// Sets to zero what X2 [rows, k] and W2 hold behind the last k, before their transfers start: the last words with
  /// values are among what is cleared. Both: with zeros on one side only, an inf on the other gives NaN.
  void zero_x_pad(sim::Pointer x, std::int64_t pitch, std::int64_t rows, std::int64_t k);
  void zero_w_pad(sim::Pointer w, std::int64_t pitch, std::int64_t columns, std::int64_t k);

  void multiply_strip(const CoreTile& tile, const CutStrip& strip);
  /// Rows first .. last of the sums as FP16, first a multiple of M1.
  void narrow_rows(const CoreTile& tile, const NarrowTile& narrow, std::int64_t first, std::int64_t last);

  sim::Dsp& m_dsp;
  const GemmShape m_shape;
  const GemmTiles m_tiles;
  const bool m_by_rows;  // W is [n, k]
  const Format m_format;
  const std::int64_t m_bytes;      // of an element of X, W and Y
  const std::int64_t m_sum_bytes;  // of a sum in AM
  const std::int64_t m_row_unit;   // rows of X2 that a microkernel reads come padded to it
  const std::int64_t m_k_call;     // most k of one microkernel call
  const GemmOperands m_operands;
  const Kernels m_kernels;
  CoreEpilogue m_epilogue;
  std::vector<CutStrip> m_single_rows;  // by rows: all of X
};

/// What a plan takes beyond its operands.
struct Scratch {
  sim::Pointer gsm;   // blocks of X (large_m, w_stationary)
  sim::Pointer sums;  // DDR: FP32 sums between k-blocks (likewise, GemmSums::f32), rows padded to N1
};

void run_large_m(sim::Dsp& dsp, const GemmPlan& plan, const GemmOperands& operands, const Kernels& kernels,
                 const Scratch& scratch);
void run_small_m(sim::Dsp& dsp, const GemmPlan& plan, const GemmOperands& operands, const Kernels& kernels);
void run_w_stationary(sim::Dsp& dsp, const GemmPlan& plan, const GemmOperands& operands, const Kernels& kernels,
                      const Scratch& scratch);

/// How w_stationary splits its work.
struct WStationarySplit {
  std::int64_t vectors = 0;        // of columns, in Y
  std::int64_t share = 0;          // columns of one core at most
  std::int64_t column_passes = 0;  // of N2 of them
  std::int64_t k_blocks = 0;       // in one pass
  std::int64_t m_blocks = 0;       // of X in one k-block
  std::int64_t rounds = 0;         // of M2 rows likewise
  std::int64_t gsm_blocks = 0;     // of X that GSM holds
  bool x_stays = false;            // in GSM, from one pass to the next
};
WStationarySplit split_w_stationary(const GemmPlan& plan, const sim::MachineConfig& machine);

/// How small_m splits its work; derived from a plan whose tiles.kg is the columns of X that SM holds at a time.
struct SmallMSplit {
  std::int64_t tiles = 0;          // column tiles of N1 in Y
  std::int64_t block_tiles = 0;    // of one core that fit AM at a time
  std::int64_t column_blocks = 0;  // passes over K for that
  std::int64_t x_blocks = 0;       // of kg columns in one pass
  std::int64_t x_buffers = 0;      // 1 when all of X fits SM, else 2
  std::int64_t x_pitch = 0;        // bytes of a row of X in SM

  std::int64_t first_tile(int core, std::int64_t cores) const { return tiles * core / cores; }
};
SmallMSplit split_small_m(const GemmPlan& plan, const sim::MachineConfig& machine);

}  // namespace mtsim::kernels::gemm
