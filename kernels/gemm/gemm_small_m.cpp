// SPDX-License-Identifier: Apache-2.0
// Small M (paper III-B2): X is broadcast to the SM of all cores, the columns of Y are split over them. Loops: column
// block (what fits AM; one, unless N is very large) > x-block (columns of X that SM holds) > k-step (K2) > n-round
// (N2).
//
// Each core streams its own columns of W through two AM buffers, one step ahead, and keeps its Y2 in AM over all of K:
// W is read once and Y written once. All of X stays in SM if it fits; else two buffers alternate, one x-block ahead.
//
// W as [n, k] (GemmWeights::out_in): a vector of W holds 32 or 64 k of one column of Y, X lies in AM beside it, and the
// microkernel multiplies the two and adds up the lanes (gemm_dot_*.s). The loops are the same.
#include <algorithm>
#include <array>
#include <vector>

#include "kernels/gemm/gemm_program.h"

namespace mtsim::kernels::gemm {
namespace {

// X first: all cores wait for it. Y last: nobody waits for it before the column block ends.
enum Priority : int { k_x = 0, k_w = 1, k_y = 2 };

using Channels = SmallMChannels;

/// A place in the loops, outermost first.
struct Step {
  std::int64_t block = 0, x = 0, s = 0, n = 0;
};

class SmallM : CoreProgram {
 public:
  SmallM(sim::Dsp& dsp, const GemmPlan& plan, const GemmOperands& operands, const Kernels& kernels)
      : CoreProgram(dsp, plan, operands, kernels), m_split(split_small_m(plan, dsp.machine())) {
    m_first_tile = m_split.first_tile(dsp.thread_id(), dsp.group_size());
    m_end_tile = m_split.first_tile(dsp.thread_id() + 1, dsp.group_size());
    m_w_pitch = (m_by_rows ? m_tiles.k2 : m_tiles.n2) * m_bytes;
    m_sums_pitch = m_split.block_tiles * m_format.n1 * m_sum_bytes;
    const std::int64_t rows = round_up(m_shape.m, m_format.m1);
    for (std::int64_t i = 0; i < m_split.x_buffers; ++i) {
      m_x[i] = m_by_rows ? dsp.vector_malloc(rows * m_split.x_pitch) : dsp.scalar_malloc(rows * m_split.x_pitch);
    }
    for (auto& w : m_w) w = dsp.vector_malloc(m_tiles.k2 * m_tiles.n2 * m_bytes);
    m_sums_bytes = round_up(rows * m_sums_pitch, k_zero_unit);
    m_sums = dsp.vector_malloc(m_sums_bytes);
    if (m_by_rows) m_scratch = dsp.vector_malloc(k_dot_scratch_bytes);
  }

  void run() {
    m_dsp.set_priority(k_x);
    load_w({}, 0);
    m_epilogue.begin_rows(0, m_shape.m);
    std::int64_t i = 0;  // steps so far: W buffers alternate
    for (std::int64_t block = 0; block < m_split.column_blocks; ++block) {
      wait_for_y();
      if (m_by_rows) m_dsp.call(m_kernels.zero_am, {m_sums, m_sums_bytes});
      for (std::int64_t x = 0; x < m_split.x_blocks; ++x) {
        m_dsp.loop_iteration();
        next_x(block, x);
        for (std::int64_t s = 0; s < steps(x); ++s) {
          for (std::int64_t n = 0; n < rounds(block); ++n, ++i) {
            m_dsp.loop_iteration();
            const Step now{block, x, s, n};
            load_w(after(now), (i + 1) % 2);
            m_dsp.dma_wait(Channels::k_first_w + static_cast<int>(i % 2));
            multiply(now, i % 2);
            if (last_step(now)) store_y(now);
          }
        }
      }
    }
    wait_for_y();
  }

 private:
  // --- Geometry.
  std::int64_t k_of_x(std::int64_t x) const { return std::min(m_tiles.kg, m_shape.k - x * m_tiles.kg); }
  std::int64_t steps(std::int64_t x) const { return ceil_div(k_of_x(x), m_tiles.k2); }
  std::int64_t k_of_step(const Step& at) const { return std::min(m_tiles.k2, k_of_x(at.x) - at.s * m_tiles.k2); }
  /// Columns [first, end) of this core in a column block.
  std::int64_t first_column(std::int64_t block) const {
    return std::min(m_end_tile, m_first_tile + block * m_split.block_tiles) * m_format.n1;
  }
  std::int64_t end_column(std::int64_t block) const { return std::min(first_column(block + 1), m_shape.n); }
  std::int64_t rounds(std::int64_t block) const {
    return ceil_div(std::max<std::int64_t>(end_column(block) - first_column(block), 0), m_tiles.n2);
  }
  std::int64_t column(const Step& at) const { return first_column(at.block) + at.n * m_tiles.n2; }
  bool last_step(const Step& at) const { return at.x == m_split.x_blocks - 1 && at.s == steps(at.x) - 1; }
  std::int64_t columns(const Step& at) const { return std::min(m_tiles.n2, end_column(at.block) - column(at)); }

  /// The next step of this core; block == column_blocks when there is none.
  Step after(Step at) const {
    if (++at.n < rounds(at.block)) return at;
    at.n = 0;
    if (++at.s < steps(at.x)) return at;
    at.s = 0;
    if (++at.x < m_split.x_blocks) return at;
    at.x = 0;
    ++at.block;
    return at;
  }

  // --- X.
  /// Makes x-block (block, x) usable and starts the one after it.
  void next_x(std::int64_t block, std::int64_t x) {
    const std::int64_t number = block * m_split.x_blocks + x;  // x-blocks so far
    if (m_split.x_buffers == 1) {
      if (number == 0) m_dsp.dma_wait(broadcast_x(0, 0));
      return;
    }
    if (number == 0) m_x_channel = broadcast_x(0, 0);
    m_dsp.dma_wait(m_x_channel);
    if (number + 1 < m_split.column_blocks * m_split.x_blocks) {
      m_x_channel = broadcast_x((number + 1) % m_split.x_blocks, (number + 1) % 2);
    }
    m_x_buffer = number % 2;
  }
  int broadcast_x(std::int64_t x, std::int64_t buffer) {
    const std::int64_t k = k_of_x(x), last_step = (steps(x) - 1) * m_tiles.k2;
    zero_x_pad(m_x[buffer] + last_step * m_bytes, m_split.x_pitch, m_shape.m, k - last_step);
    return m_dsp.dma_broadcast(x_at(0, x * m_tiles.kg), rows_of(m_shape.m, k * m_bytes, m_shape.k * m_bytes),
                               m_x[buffer], rows_of(m_shape.m, k * m_bytes, m_split.x_pitch), 0);
  }

  // --- W.
  void load_w(const Step& at, std::int64_t buffer) {
    if (at.block == m_split.column_blocks || rounds(at.block) == 0) return;
    const std::int64_t k = at.x * m_tiles.kg + at.s * m_tiles.k2;
    zero_w_pad(m_w[buffer], m_w_pitch, columns(at), k_of_step(at));
    const std::int64_t count = m_by_rows ? columns(at) : k_of_step(at),
                       bytes = (m_by_rows ? k_of_step(at) : columns(at)) * m_bytes,
                       pitch = (m_by_rows ? m_shape.k : m_shape.n) * m_bytes;
    m_dsp.raw_dma_p2p(w_at(k, column(at)), rows_of(count, bytes, pitch), m_w[buffer], rows_of(count, bytes, m_w_pitch),
                      k_w, Channels::k_first_w + static_cast<int>(buffer));
  }

  void multiply(const Step& at, std::int64_t buffer) {
    const CoreTile tile{m_x[m_x_buffer] + at.s * m_tiles.k2 * m_bytes,
                        m_w[buffer],
                        sums(at),
                        m_split.x_pitch,
                        m_w_pitch,
                        m_sums_pitch,
                        m_shape.m,
                        columns(at),
                        k_of_step(at),
                        at.x > 0 || at.s > 0,
                        m_scratch};
    std::int64_t first = 0;  // row that is not finished
    for (const CutStrip& strip : strips(tile)) {
      multiply_strip(tile, strip);
      if (!last_step(at)) continue;
      const std::int64_t end = rows_to_narrow(tile, strip.row + strip.rows);
      if (narrows()) narrow_rows(tile, {tile.sums, m_sums_pitch}, first, end);
      m_epilogue.finish({sums(at) + first * m_sums_pitch, m_sums_pitch, first, end - first, column(at), tile.columns});
      first = end;
    }
  }

  // --- Y. FP16 that is made of FP32 sums lies at the start of each row of a round's sums.
  sim::Pointer sums(const Step& at) const { return m_sums + at.n * m_tiles.n2 * m_sum_bytes; }
  void store_y(const Step& at) {
    if (at.n >= Channels::k_ys) m_dsp.dma_wait(y_channel(at.n));
    const std::int64_t bytes = columns(at) * m_bytes;
    m_dsp.raw_dma_p2p(sums(at), rows_of(m_shape.m, bytes, m_sums_pitch), y_at(0, column(at)),
                      rows_of(m_shape.m, bytes, m_shape.n * m_bytes), k_y, y_channel(at.n));
    m_y_in_flight = std::min<std::int64_t>(at.n + 1, Channels::k_ys);
  }
  void wait_for_y() {
    for (std::int64_t i = 0; i < m_y_in_flight; ++i) m_dsp.dma_wait(y_channel(i));
    m_y_in_flight = 0;
  }
  int y_channel(std::int64_t n) const { return Channels::k_first_y + static_cast<int>(n % Channels::k_ys); }

  const SmallMSplit m_split;
  std::int64_t m_first_tile = 0, m_end_tile = 0;  // this core's tiles of N1 columns
  std::int64_t m_w_pitch = 0, m_sums_pitch = 0, m_sums_bytes = 0;
  std::array<sim::Pointer, 2> m_x;  // SM, by rows AM; the second only when X does not fit whole
  std::array<sim::Pointer, 2> m_w;  // AM
  sim::Pointer m_sums;              // AM, [m, block_tiles * N1]
  sim::Pointer m_scratch;           // AM, by rows
  std::int64_t m_x_buffer = 0;
  int m_x_channel = 0;
  std::int64_t m_y_in_flight = 0;
};

}  // namespace

void run_small_m(sim::Dsp& dsp, const GemmPlan& plan, const GemmOperands& operands, const Kernels& kernels) {
  SmallM(dsp, plan, operands, kernels).run();
}

}  // namespace mtsim::kernels::gemm
