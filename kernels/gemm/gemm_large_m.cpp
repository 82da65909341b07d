// SPDX-License-Identifier: Apache-2.0
// Large M (Figs. 5 and 7): loops m-block (Mg) > k-block (Kg) > n-round (N2) > k-step (K2).
// X in GSM, W broadcast, Y stays.
//
// One k-step of each core, all of it lock-stepped by the broadcast:
//   wait for X2, W2 of this step and for the Y tiles moved in the last one
//   start  Xg chunk of the next block   DDR -> GSM   last round only: this step's chunk of GSM has just become free
//          X2 of the next step          GSM -> SM
//          tile of the next round's Y2  DDR -> AM    from the second k-block on
//          tile of the last round's Y2  AM -> DDR
//          W2 of the next step          DDR -> AM    broadcast
//   multiply
//
// A core's rows of Xg are its own: it loads them to GSM and reads them back itself, and it alone reads and writes its
// rows of Y. So nothing but the broadcast needs cores to meet, and that meets them by itself: the bytes move only when
// every core has called it, hence is done with the buffer they overwrite.
//
// What the paper's sequence does otherwise (variant paper), and what is done here instead:
//   Xg     a block starts when all its Xg is in GSM (III-B2: "cached into GSM", "subsequently ... decomposed").
//          Here a step starts when its own chunk is there.
//   order  X2, W2, then the tiles of Y2, as Figs. 6 and 7 list T1, T2, T4.
//          Here the tiles go first and use the DDR while the broadcast still gathers the cores.
//   Y2     three buffers, so Y2 goes out and comes back between k-blocks unless one or two rounds leave no time for it.
//          Here all Y2 of a block stay in AM whenever they fit.
//   end    the last Y2 leaves when it is complete.
//          Here each strip of it leaves as soon as it is done.
//   tails  rows and columns beside whole M1 x N1 are padded to it: the paper has one microkernel.
//          Here they go to tiles of their own size where that takes fewer cycles (gemm_cut.h).
// The paper does not say how the next block's Xg comes in; both variants stream it as above.
//
// FP16 with FP32 sums. Where all Y2 of a block stay in AM, each is narrowed where it lies when it is complete, and
// leaves from there. Else there is one tile of sums and two of FP16: while a round computes, the FP16 that the k-blocks
// before left in DDR comes into one of them and the last round's goes out of the other; at the round's end the sums are
// added to what came in, and narrowed (GemmSums::promoted). Or three tiles of FP32 sums move as in Fig. 7
// (GemmSums::f32).
#include <algorithm>
#include <iterator>
#include <optional>

#include "kernels/gemm/gemm_rounds.h"

namespace mtsim::kernels::gemm {
namespace {

// What the next step needs goes first, then what the next round needs, then what the next block needs, in that order.
enum Priority : int { k_next_step = 0, k_next_round = 1, k_next_block = 2 };

using Channels = LargeMChannels;

/// A place in the loops, outermost first.
struct Step {
  std::int64_t m = 0, k = 0, n = 0, s = 0;
};

class LargeM : RoundProgram {
 public:
  LargeM(sim::Dsp& dsp, const GemmPlan& plan, const GemmOperands& operands, const Kernels& kernels,
         const Scratch& scratch)
      : RoundProgram(dsp, plan, operands, kernels, scratch, plan.tiles.k2, plan.column_unit(), k_next_round),
        m_paper(plan.variant == GemmVariant::paper),
        m_cores(dsp.group_size()),
        m_m_blocks(ceil_div(m_shape.m, m_tiles.mg)),
        m_rounds(ceil_div(m_shape.n, m_tiles.n2)),
        m_chunk_bytes(plan.m2 * m_x_pitch),
        m_chunks(scratch.gsm + dsp.thread_id() * ceil_div(m_tiles.kg, m_tiles.k2) * m_chunk_bytes) {}

  void run() {
    m_dsp.set_priority(k_next_step);
    load_chunks();
    m_w_channel = broadcast_w(m_now, 0);
    load_x(m_now, 0);
    std::optional<Round> last;  // before this one
    for (std::int64_t i = 0; !done(m_now); ++i) {
      m_dsp.loop_iteration();
      const Step next = after(m_now);
      const Round now = round(m_now);
      if (m_now.k == 0 && m_now.n == 0 && m_now.s == 0) m_epilogue.begin_rows(first_row(m_now), rows(m_now));
      if (rows(m_now) > 0) m_dsp.dma_wait(m_x_channel);
      wait_for_y(now, m_now.s);
      m_dsp.dma_wait(m_w_channel);
      free_chunks();
      load_chunks();
      bool x_pending = !done(next);
      const auto try_load_x = [&] {
        if (!x_pending || m_x.size() == 1 || !chunk_is_here(next)) return;
        load_x(next, i + 1);
        x_pending = false;
      };
      try_load_x();
      const bool w_ahead = m_w.size() > 1;  // else W2 of the next step overwrites this one's
      const auto move_tiles = [&] { move_y(now, m_now.s, round_after(m_now), last); };
      if (!m_paper) move_tiles();
      if (!done(next) && w_ahead) m_w_channel = broadcast_w(next, i + 1);
      if (m_paper) move_tiles();
      multiply(now, m_now.s, {x_buffer(i), w_buffer(i), k_of_step(m_now)}, !m_paper && done(next), try_load_x);
      if (x_pending) load_x(next, i + 1);
      if (!done(next) && !w_ahead) m_w_channel = broadcast_w(next, i + 1);
      if (next.s == 0) last = now;
      m_now = next;
    }
    if (m_paper) move_y_out(*last);
    wait_for_all_y();
  }

 private:
  // --- Geometry.
  bool done(const Step& at) const { return at.m == m_m_blocks; }
  std::int64_t k_of_block(std::int64_t k) const { return std::min(m_tiles.kg, m_shape.k - k * m_tiles.kg); }
  std::int64_t steps(const Step& at) const { return ceil_div(k_of_block(at.k), m_tiles.k2); }
  std::int64_t k_of_step(const Step& at) const { return std::min(m_tiles.k2, k_of_block(at.k) - at.s * m_tiles.k2); }
  std::int64_t columns(const Step& at) const { return std::min(m_tiles.n2, m_shape.n - at.n * m_tiles.n2); }
  std::int64_t first_k(const Step& at) const { return at.k * m_tiles.kg + at.s * m_tiles.k2; }
  /// Rows a core has of the m-block when they are split evenly, the last cores taking what is left.
  std::int64_t share(const Step& at) const {
    return ceil_div(std::min(m_tiles.mg, m_shape.m - at.m * m_tiles.mg), m_cores);
  }
  std::int64_t first_row(const Step& at) const { return at.m * m_tiles.mg + m_dsp.thread_id() * share(at); }
  std::int64_t rows(const Step& at) const {
    const std::int64_t end = std::min(m_shape.m, (at.m + 1) * m_tiles.mg);
    return std::clamp<std::int64_t>(end - first_row(at), 0, share(at));
  }

  Step after(Step at) const {
    if (++at.s < steps(at)) return at;
    return next_round(at);
  }
  Step next_round(Step at) const {
    at.s = 0;
    if (++at.n < m_rounds) return at;
    at.n = 0;
    if (++at.k < m_k_blocks) return at;
    at.k = 0;
    ++at.m;
    return at;
  }

  // --- X: DDR -> GSM in chunks of one k-step, a block ahead as far as GSM has become free; GSM -> SM one step ahead.
  int chunk_channel(std::int64_t chunk) const {
    return Channels::k_first_chunk + static_cast<int>(chunk % Channels::k_chunks);
  }

  /// X2 of this step is in SM: in the last round its chunk in GSM is free, with the last step the whole area.
  void free_chunks() {
    m_free_chunks = 0;
    if (m_now.n == m_rounds - 1)
      m_free_chunks = m_now.s == steps(m_now) - 1 ? ceil_div(m_tiles.kg, m_tiles.k2) : m_now.s + 1;
  }
  /// Starts every chunk that has a place in GSM: of this block all, of the next one those whose predecessors no round
  /// needs any more.
  void load_chunks() {
    const auto has_place = [&] {
      if (done(m_chunk) || m_loaded_chunks - m_waited_chunks == Channels::k_chunks) return false;
      if (m_chunk.m == m_now.m && m_chunk.k == m_now.k) return true;
      const Step next_block = next_round({m_now.m, m_now.k, m_rounds - 1, 0});
      return m_chunk.m == next_block.m && m_chunk.k == next_block.k && m_chunk.s < m_free_chunks;
    };
    while (has_place()) {
      if (rows(m_chunk) > 0) {
        const std::int64_t count = rows(m_chunk), bytes = k_of_step(m_chunk) * m_bytes;
        m_dsp.raw_dma_p2p(x_at(first_row(m_chunk), first_k(m_chunk)), rows_of(count, bytes, m_shape.k * m_bytes),
                          chunk(m_chunk), rows_of(count, bytes, m_x_pitch), k_next_block + static_cast<int>(m_chunk.s),
                          chunk_channel(m_loaded_chunks));
      }
      ++m_loaded_chunks;
      m_chunk = ++m_chunk.s < steps(m_chunk) ? m_chunk : next_round({m_chunk.m, m_chunk.k, m_rounds - 1, 0});
    }
  }

  /// Chunks a step's X2 has to wait for.
  std::int64_t chunks_before(const Step& at) const {
    if (at.n > 0) return 0;
    if (m_paper) return at.s == 0 ? steps(at) : 0;
    return 1;
  }
  /// Whether load_x would not block; the paper's sequence finishes a block before it asks for the next one's Xg.
  bool chunk_is_here(const Step& at) const {
    if (chunks_before(at) == 0 || rows(at) == 0) return true;
    return !m_paper && m_dsp.dma_query(chunk_channel(m_waited_chunks));
  }
  void load_x(const Step& at, std::int64_t step) {
    for (std::int64_t i = 0; i < chunks_before(at); ++i) {
      load_chunks();
      if (rows(at) > 0) m_dsp.dma_wait(chunk_channel(m_waited_chunks));
      ++m_waited_chunks;
    }
    if (rows(at) == 0) return;
    const sim::Pointer x = x_buffer(step);
    zero_x_pad(x, m_x_pitch, rows(at), k_of_step(at));
    const sim::Rows shape = rows_of(rows(at), k_of_step(at) * m_bytes, m_x_pitch);
    m_x_channel = m_dsp.dma_p2p(chunk(at), shape, x, shape);
  }

  sim::Pointer chunk(const Step& at) const { return m_chunks + at.s * m_chunk_bytes; }

  // --- W: broadcast one step ahead.
  sim::Pointer w_buffer(std::int64_t step) const { return m_w[step % std::ssize(m_w)]; }
  int broadcast_w(const Step& at, std::int64_t step) {
    const sim::Pointer w = w_buffer(step);
    zero_w_pad(w, m_w_pitch, columns(at), k_of_step(at));
    const std::int64_t bytes = columns(at) * m_bytes;
    return m_dsp.dma_broadcast(w_at(first_k(at), at.n * m_tiles.n2), rows_of(k_of_step(at), bytes, m_shape.n * m_bytes),
                               w, rows_of(k_of_step(at), bytes, m_w_pitch), 0);
  }

  // --- Y: buffers in turn. What stays in AM from one k-block to the next needs no transfers between them. The paper's
  // sequence keeps one or two rounds: their Y2 would have to come in while it still goes out.
  Round round(const Step& at) const {
    return {.turn = (m_stays ? at.m : at.m * m_k_blocks + at.k) * m_rounds + at.n,
            .row = first_row(at),
            .rows = rows(at),
            .column = at.n * m_tiles.n2,
            .columns = columns(at),
            .k_block = at.k,
            .steps = steps(at)};
  }
  std::optional<Round> round_after(const Step& at) const {
    const Step next = next_round(at);
    return done(next) ? std::nullopt : std::optional(round(next));
  }

  const bool m_paper;
  const std::int64_t m_cores, m_m_blocks, m_rounds;
  const std::int64_t m_chunk_bytes;
  const sim::Pointer m_chunks;  // GSM: this core's rows of Xg, chunk after chunk
  int m_x_channel = 0, m_w_channel = 0;
  Step m_now;
  Step m_chunk;  // the next chunk to load: (m, k, -, s)
  std::int64_t m_loaded_chunks = 0, m_waited_chunks = 0;
  std::int64_t m_free_chunks = 0;  // for the next block
};

}  // namespace

void run_large_m(sim::Dsp& dsp, const GemmPlan& plan, const GemmOperands& operands, const Kernels& kernels,
                 const Scratch& scratch) {
  LargeM(dsp, plan, operands, kernels, scratch).run();
}

}  // namespace mtsim::kernels::gemm
