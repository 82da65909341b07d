// SPDX-License-Identifier: Apache-2.0
// Attention before it was fused: three launches a head, whose scores and weights lie in DDR, in FP32, [seq_q,
// score_row].
//
//   scores   rounds of rows as in mt: Q in SM, blocks of K^T pass by, each tile of scores leaves while the next is
//   computed softmax  rows are streamed (kernels/stream), masked, and made weights in place by kernels/softmax, or in
//   the paper's
//            sequence by the passes of attention_paper.s and a last one that divides
//   values   rounds of rows again: blocks of V pass by, weights come to SM a chunk ahead, O leaves once
//
// Without the softmax to fuse there is nothing to share between query heads: each reads K and V by itself. The first
// and last launch know no mask, so that they compute what it hides.
#include <algorithm>

#include "kernels/attention/attention_ring.h"

namespace mtsim::kernels::attention {
namespace {

class Unfused : protected KeyRing {
 protected:
  Unfused(sim::Dsp& dsp, const AttentionPlan& plan, const AttentionOperands& operands, const Kernels& kernels,
          const Memory& memory, std::int64_t item, Matrix matrix)
      : KeyRing(dsp, plan, operands, kernels, memory), m_item(item) {
    std::vector<Load> loads;
    for (std::int64_t round = 0; round < rounds(); ++round) {
      for (const KeyStep& step : m_steps) loads.push_back({matrix, step});
    }
    begin_ring(std::move(loads), item, 1);
    allocate_queries();
  }

  sim::Pointer scores_at(std::int64_t token, std::int64_t key) const {
    return m_memory.scratch + 4 * (token * m_sizes.score_row + key);
  }
  /// `columns` of a block's rows of scores in DDR.
  sim::Rows score_rows(const RowBlock& block, std::int64_t columns) const {
    return {block.tokens, 4 * columns, 4 * (m_sizes.score_row - columns)};
  }

  const std::int64_t m_item;
};

class Scores : Unfused {
 public:
  Scores(sim::Dsp& dsp, const AttentionPlan& plan, const AttentionOperands& operands, const Kernels& kernels,
         const Memory& memory, std::int64_t item)
      : Unfused(dsp, plan, operands, kernels, memory, item, Matrix::k) {
    allocate_tiles();
    m_left.resize(m_tiles.size());
  }

  void run() {
    ask_for_queries(row_block(m_item, 0));
    load_first();
    for (std::int64_t round = 0; round < rounds(); ++round) {
      const RowBlock now = row_block(m_item, round);
      for (Channel& channel : m_left) wait(channel);  // FP16 Q passes through the first tile
      stage_queries();
      fetch_queries();
      wait_for_queries();
      for (const KeyStep& step : m_steps) {
        const sim::Pointer kt = take(now.tokens > 0);
        if (now.tokens > 0) score_step(now, step, kt);
      }
      ask_for_queries(round + 1 < rounds() ? row_block(m_item, round + 1) : RowBlock{});
    }
    for (Channel& channel : m_left) wait(channel);
  }

 private:
  void score_step(const RowBlock& now, const KeyStep& step, sim::Pointer kt) {
    for (std::int64_t column = 0; column < step.keys; column += k_tile_keys) {
      m_dsp.loop_iteration();
      const std::size_t slot = m_tile++ % m_tiles.size();
      wait(m_left[slot]);
      multiply({.x = m_q,
                .x_pitch = 4 * m_sizes.d,
                .w = kt + 4 * column,
                .w_pitch = m_kt_pitch,
                .y = m_tiles[slot],
                .y_pitch = k_tile_pitch,
                .rows = now.tokens,
                .vectors = k_tile_keys / k_lanes,
                .k = m_sizes.d});
      const std::int64_t position = step.position + column,
                         columns = std::min(round_up(step.keys - column, k_key_unit), k_tile_keys);
      m_left[slot] = m_dsp.dma_p2p(m_tiles[slot], {now.tokens, 4 * columns, k_tile_pitch - 4 * columns},
                                   scores_at(now.token, position), score_rows(now, columns));
    }
  }

  std::vector<Channel> m_left;  // by tile
  std::size_t m_tile = 0;
};

class Values : Unfused {
 public:
  Values(sim::Dsp& dsp, const AttentionPlan& plan, const AttentionOperands& operands, const Kernels& kernels,
         const Memory& memory, std::int64_t item)
      : Unfused(dsp, plan, operands, kernels, memory, item, Matrix::v) {
    m_o = m_dsp.vector_malloc(m_sizes.o);
  }

  void run() {
    load_first();
    for (std::int64_t round = 0; round < rounds(); ++round) {
      m_now = row_block(m_item, round);
      if (m_now.tokens > 0) ask(0, 0);
      for (std::int64_t s = 0; s < std::ssize(m_steps); ++s) {
        const sim::Pointer v = take(m_now.tokens > 0);
        if (s == 0) wait(m_o_channel);
        if (m_now.tokens > 0) multiply_step(s, v);
      }
      if (m_now.tokens > 0) m_o_channel = store(m_o, m_now);
    }
    wait(m_o_channel);
  }

 private:
  /// Keys of the chunk at `column` of a step, the last one of the context with its pads, which are weights of 0.
  std::int64_t keys(std::int64_t s, std::int64_t column) const {
    const std::int64_t left = m_steps[s].keys - column;
    return left < m_plan.weight_columns ? left : m_plan.weight_columns;
  }
  void ask(std::int64_t s, std::int64_t column) {
    if (column >= m_steps[s].keys) {
      column = 0;
      if (++s == std::ssize(m_steps)) return;
    }
    const std::int64_t count = round_up(keys(s, column), k_key_unit), bytes = 4 * count;
    const std::size_t buffer = m_asked++ % 2;
    m_chunks[buffer] = m_dsp.dma_p2p(scores_at(m_now.token, m_steps[s].position + column), score_rows(m_now, count),
                                     m_weights[buffer], {m_now.tokens, bytes, 4 * m_plan.weight_columns - bytes});
  }
  void multiply_step(std::int64_t s, sim::Pointer v) {
    for (std::int64_t column = 0; column < m_steps[s].keys; column += m_plan.weight_columns) {
      m_dsp.loop_iteration();
      wait(m_chunks[m_used % 2]);
      ask(s, column + m_plan.weight_columns);
      multiply({.x = m_weights[m_used++ % 2],
                .x_pitch = 4 * m_plan.weight_columns,
                .w = v + column * m_sizes.row,
                .w_pitch = m_sizes.row,
                .y = m_o,
                .y_pitch = m_sizes.row,
                .rows = m_now.tokens,
                .vectors = ceil_div(m_sizes.d, k_lanes),
                .k = round_up(keys(s, column), k_key_unit),
                .accumulate = s > 0 || column > 0});
    }
  }

  RowBlock m_now;
  sim::Pointer m_o;  // AM
  Channel m_o_channel, m_chunks[2];
  std::size_t m_asked = 0, m_used = 0;  // chunks
};

}  // namespace

void run_scores(sim::Dsp& dsp, const AttentionPlan& plan, const AttentionOperands& operands, const Kernels& kernels,
                const Memory& memory, std::int64_t item) {
  Scores(dsp, plan, operands, kernels, memory, item).run();
}

void run_values(sim::Dsp& dsp, const AttentionPlan& plan, const AttentionOperands& operands, const Kernels& kernels,
                const Memory& memory, std::int64_t item) {
  Values(dsp, plan, operands, kernels, memory, item).run();
}

}  // namespace mtsim::kernels::attention
