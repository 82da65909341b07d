// SPDX-License-Identifier: Apache-2.0
// Attention before it was fused: three launches a head, whose scores and weights lie in DDR, [seq_q, score_row], in
// FP32 or in FP16 (AttentionChoice::scores), as an operator library stores what goes from one of its operators to the
// next.
//
//   scores   rounds of rows as in mt: Q in SM, blocks of K^T pass by, each tile of scores leaves while the next is
//   computed softmax  rows are streamed (kernels/stream), masked, and made weights in place by kernels/softmax, or in
//   the paper's
//            sequence by the passes of attention_paper.s and a last one that divides
//   values   rounds of rows again: blocks of V pass by, weights come to SM a chunk ahead (FP16 ones in tiles to AM
//   first, where
//            they are widened, and from there through GSM), O leaves once
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
    return m_memory.scratch + m_sizes.score_bytes * (token * m_sizes.score_row + key);
  }
  /// `columns` of a block's rows of scores in DDR.
  sim::Rows score_rows(const RowBlock& block, std::int64_t columns) const {
    const std::int64_t bytes = m_sizes.score_bytes;
    return {block.tokens, bytes * columns, bytes * (m_sizes.score_row - columns)};
  }
  /// And in a tile, in the type they have in DDR.
  sim::Rows tile_rows(const RowBlock& block, std::int64_t columns) const {
    const std::int64_t bytes = m_sizes.score_bytes;
    return {block.tokens, bytes * columns, bytes * (k_tile_keys - columns)};
  }
  bool half_scores() const { return m_plan.choice.scores == DType::f16; }

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
      if (half_scores()) m_dsp.call(m_kernels.narrow, {m_tiles[slot], m_tiles[slot], now.tokens * k_tile_pitch});
      m_left[slot] = m_dsp.dma_p2p(m_tiles[slot], tile_rows(now, columns), scores_at(now.token, position),
                                   score_rows(now, columns));
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
    if (half_scores()) {
      for (sim::Pointer& wire : m_wires) wire = m_dsp.vector_malloc(m_sizes.tile / 2);
      for (int i = 0; i < 2; ++i) m_tiles.push_back(m_dsp.vector_malloc(m_sizes.tile));
    }
    for (std::size_t s = 0; s < m_steps.size(); ++s) {
      for (std::int64_t column = 0; column < m_steps[s].keys; column += m_plan.weight_columns) {
        const std::int64_t keys = std::min(m_plan.weight_columns, m_steps[s].keys - column);
        if (column % k_tile_keys == 0)
          m_weight_tiles.push_back({m_steps[s].position + column, std::min(k_tile_keys, m_steps[s].keys - column)});
        m_weight_chunks.push_back({s, column, keys, m_weight_tiles.size() - 1});
      }
    }
  }

  void run() {
    load_first();
    for (std::int64_t round = 0; round < rounds(); ++round) {
      m_now = row_block(m_item, round);
      m_used = 0;
      if (m_now.tokens > 0) {
        for (std::size_t tile = 0; half_scores() && tile < 2; ++tile) load_tile(tile);
        stage_tile(0);
        ask(0);
      }
      for (std::size_t s = 0; s < m_steps.size(); ++s) {
        const sim::Pointer v = take(m_now.tokens > 0);
        if (s == 0) wait(m_o_channel);
        if (m_now.tokens > 0) multiply_step(s, v);
      }
      if (m_now.tokens > 0) m_o_channel = store(m_o, m_now);
    }
    wait(m_o_channel);
  }

 private:
  struct WeightTile {
    std::int64_t position = 0, keys = 0;
  };
  struct WeightChunk {
    std::size_t step = 0;
    std::int64_t column = 0, keys = 0;  // of the step
    std::size_t tile = 0;
  };

  // --- FP16: tiles DDR -> AM, widened, -> GSM; two of each, and one is ahead.
  void load_tile(std::size_t i) {
    if (i >= m_weight_tiles.size()) return;
    const std::int64_t columns = round_up(m_weight_tiles[i].keys, k_key_unit);
    m_arriving[i % 2] = m_dsp.dma_p2p(scores_at(m_now.token, m_weight_tiles[i].position), score_rows(m_now, columns),
                                      m_wires[i % 2], tile_rows(m_now, columns));
  }
  void stage_tile(std::size_t i) {
    if (!half_scores() || i >= m_weight_tiles.size()) return;
    wait(m_arriving[i % 2]);
    wait(m_staged[i % 2]);
    const std::int64_t bytes = m_now.tokens * k_tile_pitch;
    widen(m_wires[i % 2], m_tiles[i % 2], bytes);
    m_staged[i % 2] = m_dsp.dma_p2p(m_tiles[i % 2], {1, bytes, 0}, home(i % 2), {1, bytes, 0});
    load_tile(i + 2);
  }

  /// A chunk to SM; the last one of the context has its pads, which are weights of 0.
  void ask(std::size_t i) {
    if (i >= m_weight_chunks.size()) return;
    const WeightChunk& chunk = m_weight_chunks[i];
    const std::int64_t columns = round_up(chunk.keys, k_key_unit), bytes = 4 * columns;
    const sim::Rows rows{m_now.tokens, bytes, 4 * m_plan.weight_columns - bytes};
    if (half_scores()) {
      wait(m_staged[chunk.tile % 2]);
      m_chunks[i % 2] = m_dsp.dma_p2p(home(chunk.tile % 2) + 4 * (chunk.column % k_tile_keys),
                                      {m_now.tokens, bytes, k_tile_pitch - bytes}, m_weights[i % 2], rows);
    } else {
      m_chunks[i % 2] = m_dsp.dma_p2p(scores_at(m_now.token, m_steps[chunk.step].position + chunk.column),
                                      score_rows(m_now, columns), m_weights[i % 2], rows);
    }
  }
  void multiply_step(std::size_t s, sim::Pointer v) {
    for (; m_used < m_weight_chunks.size() && m_weight_chunks[m_used].step == s; ++m_used) {
      const WeightChunk& chunk = m_weight_chunks[m_used];
      m_dsp.loop_iteration();
      wait(m_chunks[m_used % 2]);
      if (chunk.column % k_tile_keys == 0) stage_tile(chunk.tile + 1);
      ask(m_used + 1);
      multiply({.x = m_weights[m_used % 2],
                .x_pitch = 4 * m_plan.weight_columns,
                .w = v + chunk.column * m_sizes.row,
                .w_pitch = m_sizes.row,
                .y = m_o,
                .y_pitch = m_sizes.row,
                .rows = m_now.tokens,
                .vectors = ceil_div(m_sizes.d, k_lanes),
                .k = round_up(chunk.keys, k_key_unit),
                .accumulate = m_used > 0});
    }
  }

  std::vector<WeightTile> m_weight_tiles;
  std::vector<WeightChunk> m_weight_chunks;
  RowBlock m_now;
  sim::Pointer m_o, m_wires[2];  // AM
  Channel m_o_channel, m_chunks[2], m_arriving[2], m_staged[2];
  std::size_t m_used = 0;  // chunks of the round
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
