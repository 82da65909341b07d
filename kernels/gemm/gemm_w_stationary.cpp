// SPDX-License-Identifier: Apache-2.0
// W stationary: loops column pass (N2) > k-block (Kg) > m-block (Mg) > round (M2) > k-step (K2).
// The columns of Y are split over the cores, in whole vectors. A core's block of W, [Kg, N2], stays in AM while all
// rows of X pass by, so that each element of W is read from DDR once. The paper has no such sequence.
//
// One k-step of a core:
//   wait for X2 of this step, for the tiles of Y2 moved in the last one, in the first round of a k-block for its part
//   of
//        W
//   start  parts of the next block of W        DDR -> AM
//          tile of the next round's Y2         DDR -> AM    from the second k-block on
//          tile of the last round's Y2         AM -> DDR
//          X2 of the next step                 GSM -> SM
//   multiply
//
//   X    a block [Mg, Kg] is in GSM once for all cores: each loads an equal part of its rows and reads all of it, X2 by
//        X2. The cores meet once a block, before the first X2 of it is read, one step ahead: each has its part of this
//        block in GSM by then, and the last X2 of the block before in SM. So this block may be read, and the next one
//        loaded where the one before lay. A k-block of one m-block, or two blocks in all, stay in GSM from one column
//        pass to the next.
//   W    comes in parts of whole k-steps, in the order of the first round's steps, each waited for when its first step
//        comes. With one buffer (w_buffers=1) the next block's parts start as the last round is done with this one's,
//        and the cores wait for what a round does not hide; with two they come in behind this block's computing, but
//        half the rows of W fit, hence Y2 goes out and comes back twice as often.
//   Y    as in large_m (gemm_rounds.h): three buffers, or one tile of FP32 sums and two of FP16; where all rounds of
//        a pass fit the AM, Y2 stay there. Kg is what decides: with K in one block Y2 leaves once and never comes back.
//
// Cores meet by barriers alone: nothing pays the rendezvous of a broadcast. What it costs instead is that every core
// reads all of X from GSM in each column pass.
#include <algorithm>
#include <optional>

#include "kernels/gemm/gemm_rounds.h"

namespace mtsim::kernels::gemm {
namespace {

// X2 and the W that the cores wait for first, its parts one after the other; then what the next round needs, then what
// the next block needs.
enum Priority : int { k_next_step = 0, k_next_round = 8, k_next_block = 9 };

using Channels = WStationaryChannels;
static_assert(k_next_round == Channels::k_ws);

constexpr int k_block_barrier = 0;

/// A place in the loops, outermost first.
struct Step {
  std::int64_t n = 0, k = 0, m = 0, t = 0, s = 0;
};

class WStationary : RoundProgram {
 public:
  WStationary(sim::Dsp& dsp, const GemmPlan& plan, const GemmOperands& operands, const Kernels& kernels,
              const Scratch& scratch)
      : RoundProgram(dsp, plan, operands, kernels, scratch, plan.tiles.kg, k_vector_bytes / bytes_of(plan.dtype),
                     k_next_round),
        m_split(split_w_stationary(plan, dsp.machine())),
        m_cores(dsp.group_size()),
        m_sums_move(plan.scratch_bytes > 0),
        m_first_column(column_of_core(dsp.thread_id())),
        m_end_column(column_of_core(dsp.thread_id() + 1)),
        m_gsm(scratch.gsm),
        m_gsm_pitch(m_tiles.kg * m_bytes),
        m_part_steps(ceil_div(m_tiles.kg / m_tiles.k2, Channels::k_ws)) {}

  void run() {
    m_dsp.set_priority(k_next_step);
    load_block(m_now);
    if (scratch_holds_pads()) clear_w_pads();
    load_w();
    load_x(m_now, 0);
    std::optional<Round> last;  // before this one
    for (std::int64_t i = 0; !done(m_now); ++i) {
      m_dsp.loop_iteration();
      const Step next = after(m_now);
      const Round now = round(m_now);
      if (now.rows > 0) m_dsp.dma_wait(m_x_channel);
      wait_for_y(now, m_now.s);
      wait_for_w();
      load_w();
      move_y(now, m_now.s, round_after(m_now), last);
      const bool x_ahead = m_x.size() > 1;
      if (x_ahead) load_x(next, i + 1);
      multiply(now, m_now.s, {x_buffer(i), w_at_step(m_now), k_of_step(m_now)}, done(next), [] {});
      if (!x_ahead) load_x(next, i + 1);
      if (next.s == 0) last = now;
      m_now = next;
      load_w();
    }
    wait_for_all_y();
  }

 private:
  // --- Geometry.
  std::int64_t column_of_core(std::int64_t core) const {
    const std::int64_t vector = k_vector_bytes / m_bytes;
    return std::min(m_shape.n, m_split.vectors * core / m_cores * vector);
  }
  bool done(const Step& at) const { return at.n == m_split.column_passes; }
  std::int64_t first_column(std::int64_t pass) const {
    return std::min(m_end_column, m_first_column + pass * m_tiles.n2);
  }
  std::int64_t columns(const Step& at) const { return first_column(at.n + 1) - first_column(at.n); }
  std::int64_t k_of_block(const Step& at) const { return std::min(m_tiles.kg, m_shape.k - at.k * m_tiles.kg); }
  std::int64_t steps(const Step& at) const { return ceil_div(k_of_block(at), m_tiles.k2); }
  std::int64_t k_of_step(const Step& at) const { return std::min(m_tiles.k2, k_of_block(at) - at.s * m_tiles.k2); }
  std::int64_t rows_of_block(const Step& at) const { return std::min(m_tiles.mg, m_shape.m - at.m * m_tiles.mg); }
  std::int64_t rounds_of_block(const Step& at) const { return ceil_div(rows_of_block(at), m_tiles.m2); }
  std::int64_t rows(const Step& at) const { return std::min(m_tiles.m2, rows_of_block(at) - at.t * m_tiles.m2); }
  /// Blocks of W and of X before this one.
  std::int64_t w_block(const Step& at) const { return at.n * m_k_blocks + at.k; }
  std::int64_t x_block(const Step& at) const { return w_block(at) * m_split.m_blocks + at.m; }

  Step after(Step at) const {
    if (++at.s < steps(at)) return at;
    return next_round(at);
  }
  Step next_round(Step at) const {
    at.s = 0;
    if (++at.t < rounds_of_block(at)) return at;
    return next_block(at);
  }
  Step next_block(Step at) const {
    at.s = at.t = 0;
    if (++at.m < m_split.m_blocks) return at;
    return next_w_block(at);
  }
  Step next_w_block(Step at) const {
    at.s = at.t = at.m = 0;
    if (++at.k < m_k_blocks) return at;
    at.k = 0;
    ++at.n;
    return at;
  }

  Round round(const Step& at) const {
    const std::int64_t rounds_of_full_block = ceil_div(m_tiles.mg, m_tiles.m2);
    return {.turn = (m_stays ? at.n : w_block(at)) * m_split.rounds + at.m * rounds_of_full_block + at.t,
            .row = at.m * m_tiles.mg + at.t * m_tiles.m2,
            .rows = columns(at) > 0 ? rows(at) : 0,
            .column = first_column(at.n),
            .columns = columns(at),
            .k_block = at.k,
            .steps = steps(at)};
  }
  std::optional<Round> round_after(const Step& at) const {
    const Step next = next_round(at);
    return done(next) ? std::nullopt : std::optional(round(next));
  }

  // --- X: DDR -> GSM a block ahead, GSM -> SM one step ahead.
  /// Whether a block has to be loaded: not if it stayed in GSM.
  bool is_loaded(const Step& at) const { return !done(at) && (at.n == 0 || !m_split.x_stays); }
  sim::Pointer gsm_block(const Step& at) const {
    return m_gsm + x_block(at) % m_split.gsm_blocks * m_tiles.mg * m_gsm_pitch;
  }
  /// This core's part of a block.
  void load_block(const Step& at) {
    const std::int64_t all = rows_of_block(at), share = ceil_div(all, m_cores);
    const std::int64_t first = std::min(all, m_dsp.thread_id() * share), count = std::min(share, all - first);
    if (count == 0) return;
    const std::int64_t bytes = k_of_block(at) * m_bytes;
    m_dsp.raw_dma_p2p(x_at(at.m * m_tiles.mg + first, at.k * m_tiles.kg), rows_of(count, bytes, m_shape.k * m_bytes),
                      gsm_block(at) + first * m_gsm_pitch, rows_of(count, bytes, m_gsm_pitch),
                      x_block(at) == 0 ? k_next_step : k_next_block, m_block.channel);
    m_block.in_flight = true;
  }
  /// All parts of a block are in GSM, and nobody reads the one before any more.
  void begin_block(const Step& at) {
    if (!is_loaded(at)) return;
    wait(m_block);
    m_dsp.group_barrier(k_block_barrier);
    if (const Step next = next_block(at); is_loaded(next)) load_block(next);
  }
  void load_x(const Step& at, std::int64_t step) {
    if (done(at)) return;
    if (at.t == 0 && at.s == 0) begin_block(at);
    if (columns(at) == 0) return;
    const sim::Pointer x = x_buffer(step);
    zero_x_pad(x, m_x_pitch, rows(at), k_of_step(at));
    const std::int64_t bytes = k_of_step(at) * m_bytes;
    m_x_channel = m_dsp.dma_p2p(gsm_block(at) + at.t * m_tiles.m2 * m_gsm_pitch + at.s * m_x_pitch,
                                rows_of(rows(at), bytes, m_gsm_pitch), x, rows_of(rows(at), bytes, m_x_pitch));
  }

  // --- W: parts of m_part_steps k-steps; m_w_next is the next one to load, its s the part's first step.
  sim::Pointer w_at_step(const Step& at) const {
    return m_w[w_block(at) % std::ssize(m_w)] + at.s * m_tiles.k2 * m_w_pitch;
  }
  /// FP32 sums go to DDR with the pads of the last vector, which no W reaches.
  bool scratch_holds_pads() const {
    const std::int64_t vector = k_vector_bytes / m_bytes;
    return m_sums_move && m_end_column == m_shape.n && m_first_column < m_end_column && m_shape.n % vector != 0;
  }
  void clear_w_pads() {
    const std::int64_t last = (m_end_column - m_first_column - 1) % m_tiles.n2 * m_bytes;
    for (const sim::Pointer& w : m_w) {
      m_dsp.call(m_kernels.zero_vectors, {w + last / k_vector_bytes * k_vector_bytes, m_tiles.kg, m_w_pitch});
    }
  }
  int w_channel(std::int64_t part) const { return Channels::k_first_w + static_cast<int>(part % Channels::k_ws); }
  std::int64_t end_step(const Step& part) const { return std::min(steps(part), part.s + m_part_steps); }

  /// Whether the next part has a channel and a place in AM.
  bool w_has_place() const {
    if (done(m_w_next) || columns(m_w_next) == 0) return false;
    if (m_w_loaded - m_w_waited == Channels::k_ws) return false;
    const std::int64_t ahead = w_block(m_w_next) - w_block(m_now);
    if (ahead < std::ssize(m_w)) return true;
    const bool last_round = w_block(next_round(m_now)) > w_block(m_now);
    return ahead == std::ssize(m_w) && last_round && end_step(m_w_next) <= m_now.s;
  }
  void load_w() {
    while (!done(m_now) && w_has_place()) {
      const std::int64_t end = end_step(m_w_next), first_k = m_w_next.s * m_tiles.k2;
      const std::int64_t count = std::min(end * m_tiles.k2, k_of_block(m_w_next)) - first_k;
      const std::int64_t last_k = (end - 1) * m_tiles.k2 - first_k;  // of its last step
      const sim::Pointer w = w_at_step(m_w_next);
      zero_w_pad(w + last_k * m_w_pitch, m_w_pitch, columns(m_w_next), count - last_k);
      const std::int64_t bytes = columns(m_w_next) * m_bytes;
      const bool awaited = m_w.size() == 1 || w_block(m_w_next) == 0;
      m_dsp.raw_dma_p2p(w_at(m_w_next.k * m_tiles.kg + first_k, first_column(m_w_next.n)),
                        rows_of(count, bytes, m_shape.n * m_bytes), w, rows_of(count, bytes, m_w_pitch),
                        (awaited ? k_next_step : k_next_block + 1) + static_cast<int>(m_w_next.s / m_part_steps),
                        w_channel(m_w_loaded++));
      m_w_next.s = end;
      if (end == steps(m_w_next)) m_w_next = next_w_block(m_w_next);
    }
  }
  void wait_for_w() {
    if (columns(m_now) == 0 || m_now.m > 0 || m_now.t > 0 || m_now.s % m_part_steps != 0) return;
    m_dsp.dma_wait(w_channel(m_w_waited++));
  }

  const WStationarySplit m_split;
  const std::int64_t m_cores;
  const bool m_sums_move;
  const std::int64_t m_first_column, m_end_column;  // of this core
  const sim::Pointer m_gsm;                         // blocks of X
  const std::int64_t m_gsm_pitch;
  const std::int64_t m_part_steps;
  int m_x_channel = 0;
  Transfer m_block{Channels::k_x};  // this core's part of the block after the present one
  Step m_now, m_w_next;
  std::int64_t m_w_loaded = 0, m_w_waited = 0;  // parts
};

}  // namespace

void run_w_stationary(sim::Dsp& dsp, const GemmPlan& plan, const GemmOperands& operands, const Kernels& kernels,
                      const Scratch& scratch) {
  WStationary(dsp, plan, operands, kernels, scratch).run();
}

}  // namespace mtsim::kernels::gemm
