// SPDX-License-Identifier: Apache-2.0
// FlashAttention on this machine, as the paper describes it (III-C2, Table III): "keeping the K/V blocks fixed in AM
// and repeatedly loads Q blocks and output O blocks via DMA". Loops item > block of mc keys > block of mr rows of this
// core.
//
// A visit is one block of rows at one block of keys:
//   scores and weights as in mt, with one pass; O, its running maximum and sum come from DDR before and go back after,
//   but for the first block of keys, which begins them, and the last one, after which O / l leaves in its own type
//
//   Q   of the next visit comes once the scores of this one are made: SM has no room for a second one beside the
//   weights O   two buffers: the next visit's comes, the last one's leaves K^T and V have one buffer each, which 2 x
//   512 keys fill AM with: their broadcast is waited for.
//
// In the paper's sequence Q and O are double-buffered within a block of keys, so that its first ones are waited for and
// its last ones drained; best goes on loading over that border, if it is not the rows just stored that are needed.
#include <algorithm>

#include "kernels/attention/attention_program.h"

namespace mtsim::kernels::attention {
namespace {

struct Visit {
  std::int64_t item = 0, step = 0, round = 0;
  bool last = false;  // block of keys of its rows
};

class FlashAttention : CoreProgram {
 public:
  FlashAttention(sim::Dsp& dsp, const AttentionPlan& plan, const AttentionOperands& operands, const Kernels& kernels,
                 const Memory& memory, std::int64_t items)
      : CoreProgram(dsp, plan, operands, kernels, memory), m_items(items) {
    allocate_queries();
    m_kt = m_dsp.vector_malloc(m_sizes.kt);
    m_v = m_dsp.vector_malloc(m_sizes.slot);
    for (OBuffer& buffer : m_o) {
      buffer.am = m_dsp.vector_malloc(m_sizes.kept + m_sizes.o);
      // O goes to scratch with its pads, of which products fill those in a vector with values.
      fill(buffer.am, m_sizes.kept + (m_sizes.d == m_sizes.padded_d ? 0 : m_sizes.o), 0);
    }
    allocate_softmax();
    // The pads of a vector of O come from those of V.
    if (m_sizes.d != m_sizes.padded_d && !m_sizes.half) fill(m_v, m_sizes.slot, 0);
  }

  void run() {
    for (std::int64_t item = 0; item < m_items; ++item) {
      for (std::int64_t step = 0; step < std::ssize(m_steps); ++step) run_step(item, step);
    }
    for (OBuffer& buffer : m_o) wait(buffer.out);
  }

 private:
  struct OBuffer {
    sim::Pointer am;  // m and l, O
    Channel in, out;
    std::int64_t round = -1;  // what leaves, to scratch
  };

  // --- Visits of this core.
  bool visits(std::int64_t item, std::int64_t step, std::int64_t round) const {
    const RowBlock block = row_block(item, round);
    return block.tokens > 0 && m_steps[step].position < visible_keys(block);
  }
  /// The first one at a place or behind it, within its block of keys or with `beyond` behind that too.
  std::optional<Visit> visit(Visit at, bool beyond) const {
    for (; at.item < m_items; ++at.item, at.step = 0) {
      for (; at.step < std::ssize(m_steps); ++at.step, at.round = 0) {
        for (; at.round < rounds(); ++at.round) {
          if (!visits(at.item, at.step, at.round)) continue;
          at.last = at.step + 1 == std::ssize(m_steps) || !visits(at.item, at.step + 1, at.round);
          return at;
        }
        if (!beyond) return std::nullopt;
      }
    }
    return std::nullopt;
  }

  void run_step(std::int64_t item, std::int64_t step) {
    m_dsp.loop_iteration();
    std::optional<Visit> now = visit({item, step, 0}, false);
    const bool ahead = m_asked;  // by the last visit
    if (now && !ahead) ask(*now);
    load_keys(item, step);
    if (now && !ahead) {
      stage_queries();
      fetch_queries();
    }
    if (now) m_asked = false;
    while (now) {
      const Visit after{now->item, now->step, now->round + 1};
      const std::optional<Visit> next = visit(after, !paper());
      run_visit(*now, next);
      m_asked = next.has_value();
      now = next && next->item == item && next->step == step ? next : std::nullopt;
    }
    wait(m_kt_channel);
    wait(m_v_channel);
  }

  void load_keys(std::int64_t item, std::int64_t step) {
    const KeyStep& keys = m_steps[step];
    if (!m_sizes.half) {
      m_kt_channel = broadcast(Matrix::k, item, keys, m_kt);
      m_v_channel = broadcast(Matrix::v, item, keys, m_v);
      return;
    }
    const sim::Pointer wire = m_tiles[0];
    Channel channel = broadcast(Matrix::k, item, keys, wire);
    wait(channel);
    widen(wire, m_kt, m_sizes.d * m_kt_pitch);
    if (m_sizes.d != m_sizes.padded_d) fill(wire, m_sizes.wire, 0);
    channel = broadcast(Matrix::v, item, keys, wire);
    wait(channel);
    widen(wire, m_v, round_up(keys.keys, k_key_unit) * m_sizes.row);
  }

  // --- Q, and O in its buffers.
  RowBlock block(const Visit& visit) const { return row_block(visit.item, visit.round); }
  void ask(const Visit& visit) {
    ask_for_queries(block(visit));
    load_o(visit);
  }
  std::size_t buffer_of(std::int64_t visit) const { return static_cast<std::size_t>(visit % 2); }
  sim::Pointer scratch(std::int64_t round) const {
    return m_memory.scratch + (round * m_cores + m_core) * (m_sizes.kept + m_sizes.o);
  }
  sim::Rows scratch_row(const Visit& visit) const { return {1, m_sizes.kept + rows(block(visit)) * m_sizes.row, 0}; }
  /// Into the buffer that does not hold the visit before it, which has left.
  void load_o(const Visit& visit) {
    m_next_buffer = buffer_of(m_visits++);
    OBuffer& buffer = m_o[m_next_buffer];
    wait(buffer.out);
    if (visit.step == 0) return;
    for (OBuffer& other : m_o) {
      if (other.round == visit.round) wait(other.out);
    }
    set_priority(k_usual);
    buffer.in = m_dsp.dma_p2p(scratch(visit.round), scratch_row(visit), buffer.am, scratch_row(visit));
  }

  void run_visit(const Visit& now, const std::optional<Visit>& next) {
    m_dsp.loop_iteration();
    OBuffer& buffer = m_o[m_next_buffer];
    const sim::Pointer kept = buffer.am, o = buffer.am + m_sizes.kept;
    const bool first = now.step == 0;
    wait_for_queries();
    wait(m_kt_channel);
    begin_pass(block(now), now.step, now.step + 1);
    score(now.step, m_kt);
    const bool same_rows = next && next->item == now.item && next->round == now.round;
    if (next) {
      ask_for_queries(block(*next));
      if (!same_rows) load_o(*next);
    }
    wait(buffer.in);
    softmax(kept, first, o);
    wait(m_v_channel);
    if (next) stage_queries();
    multiply_values(now.step, m_v, o, first);
    if (next) fetch_queries();
    if (now.last) {
      divide(kept, o);
      buffer.out = store(o, block(now));
      buffer.round = -1;
    } else {
      set_priority(k_usual);
      buffer.out = m_dsp.dma_p2p(buffer.am, scratch_row(now), scratch(now.round), scratch_row(now));
      buffer.round = now.round;
    }
    if (same_rows) load_o(*next);
  }

  const std::int64_t m_items;
  sim::Pointer m_kt, m_v;  // AM
  Channel m_kt_channel, m_v_channel;
  OBuffer m_o[2];
  std::int64_t m_visits = 0;      // whose O has a buffer
  std::size_t m_next_buffer = 0;  // of the next visit
  bool m_asked = false;           // for Q and O of the next visit
};

}  // namespace

void run_flash(sim::Dsp& dsp, const AttentionPlan& plan, const AttentionOperands& operands, const Kernels& kernels,
               const Memory& memory, std::int64_t items) {
  FlashAttention(dsp, plan, operands, kernels, memory, items).run();
}

}  // namespace mtsim::kernels::attention
