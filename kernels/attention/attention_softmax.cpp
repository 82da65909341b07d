// SPDX-License-Identifier: Apache-2.0
// Scores to weights to products with V, for the rows of one core and the keys of one pass: tiles of 128 keys in AM
// slots, and a home in GSM for each, where its weights wait for SM. A pass of more tiles than there are slots sends the
// scores of the first ones home, and recalls them when the weights of the others have left. Softmax and stage 3 go
// backwards through the keys, so that they begin with what is there.
#include <algorithm>

#include "kernels/attention/attention_program.h"

namespace mtsim::kernels::attention {
namespace {

constexpr std::uint64_t k_minus_infinity = 0xFF800000'FF800000;
constexpr std::int64_t k_most_sent = 8;  // transfers of tiles in flight: channels are left for everything else

}  // namespace

void CoreProgram::begin_pass(const RowBlock& block, std::int64_t first, std::int64_t end) {
  m_block = block;
  m_block_rows = rows(block);
  m_pass.clear();
  m_chunks.clear();
  m_chunk = 0;
  const std::int64_t visible = visible_keys(block);
  for (std::int64_t step = first; step < end; ++step) {
    const KeyStep& keys = m_steps[static_cast<std::size_t>(step)];
    for (std::int64_t column = 0; column < keys.keys && keys.position + column < visible; column += k_tile_keys) {
      const std::int64_t seen = std::min({k_tile_keys, keys.keys - column, visible - keys.position - column});
      m_pass.push_back({step, column, seen});
    }
  }
  for (std::size_t t = m_pass.size(); t-- > 0;) {
    for (std::int64_t at = 0; at < m_pass[t].keys; at += m_plan.weight_columns)
      m_chunks.push_back({t, at, std::min(m_plan.weight_columns, m_pass[t].keys - at)});
  }
  m_spilled = m_pass.size() - std::min(m_pass.size(), m_tiles.size());
  m_sent.assign(m_pass.size(), {});
  m_recall.assign(m_pass.size(), {});
  const std::int64_t vectors = round_up(m_block_rows, k_rows_at_once) * k_vector_bytes;
  fill(m_first, vectors, k_minus_infinity);
  fill(m_second, vectors, 0);
}

sim::Pointer CoreProgram::slot(std::size_t tile) const { return m_tiles[tile % m_tiles.size()]; }

sim::Pointer CoreProgram::home(std::size_t tile) const {
  return m_memory.gsm + m_core * m_sizes.home + static_cast<std::int64_t>(tile) * m_sizes.tile;
}

/// From its slot to its home. Weights leave in the order in which stage 3 wants them, and not all at once.
void CoreProgram::send(std::size_t tile, int priority) {
  const auto in_flight = [](const Channel& channel) { return channel.has_value(); };
  if (std::count_if(m_sent.begin(), m_sent.end(), in_flight) == k_most_sent)
    wait(*std::find_if(m_sent.begin(), m_sent.end(), in_flight));
  const sim::Rows row{1, m_block_rows * k_tile_pitch, 0};
  set_priority(priority);
  m_sent[tile] = m_dsp.dma_p2p(slot(tile), row, home(tile), row);
}

/// Back to its slot, when what was there last is home.
void CoreProgram::recall(std::size_t tile) {
  wait(m_sent[tile]);
  for (std::size_t t = tile + m_tiles.size(); t < m_pass.size(); t += m_tiles.size()) wait(m_sent[t]);
  const sim::Rows row{1, m_block_rows * k_tile_pitch, 0};
  set_priority(k_urgent);  // before weights on their way, which have time
  m_recall[tile] = m_dsp.dma_p2p(home(tile), row, slot(tile), row);
}

/// Behind the `keys` that the tile has, and behind those that a causal mask lets each row see.
void CoreProgram::mask(sim::Pointer tile, std::int64_t position, std::int64_t keys) {
  const auto call = [&](float limit, float step) {
    m_dsp.call(m_kernels.mask, {tile, m_lanes, m_block_rows, k_tile_pitch, bits(limit), bits(step)});
  };
  if (keys < k_tile_keys) call(static_cast<float>(keys), 0);
  if (!m_shape.causal) return;
  const std::int64_t last = m_shape.seq_k - m_shape.seq_q + m_block.token;  // key that the first row sees
  if (position + keys <= last + 1) return;
  const float step = 1 / static_cast<float>(m_plan.share);
  call(static_cast<float>(last - position) + step / 2, step);
}

void CoreProgram::score(std::int64_t step, sim::Pointer kt) {
  for (std::size_t t = 0; t < m_pass.size(); ++t) {
    const Tile& tile = m_pass[t];
    if (tile.step != step) continue;
    m_dsp.loop_iteration();
    if (t >= m_tiles.size()) wait(m_sent[t - m_tiles.size()]);
    multiply({.x = m_q,
              .x_pitch = 4 * m_sizes.d,
              .w = kt + 4 * tile.column,
              .w_pitch = m_kt_pitch,
              .y = slot(t),
              .y_pitch = k_tile_pitch,
              .rows = m_block_rows,
              .vectors = k_tile_keys / k_lanes,
              .k = m_sizes.d});
    const KeyStep& keys = m_steps[static_cast<std::size_t>(step)];
    mask(slot(t), keys.position + tile.column, std::min(k_tile_keys, keys.keys - tile.column));
    if (paper()) {
      m_dsp.call(m_kernels.paper_scale, {slot(t), m_first, 0, m_block_rows, k_tile_pitch, bits(m_shape.scale)});
      m_dsp.call(m_kernels.paper_most, {slot(t), m_first, 0, m_block_rows, k_tile_pitch, 0});
    } else {
      m_dsp.call(m_kernels.most, {slot(t), m_first, m_second, m_block_rows, k_tile_pitch});
    }
    if (t < m_spilled) send(t, k_usual);
  }
}

void CoreProgram::rows_call(const sim::Kernel& kernel, sim::Pointer kept) {
  constexpr std::int64_t group = k_rows_at_once * k_vector_bytes;
  const float scale = paper() ? 1 : m_shape.scale;  // the paper's scores are scaled already
  for (std::int64_t g = 0; g * k_rows_at_once < m_block_rows; ++g) {
    m_dsp.loop_iteration();
    m_dsp.call(kernel, {m_first + g * group, m_second + g * group, m_value + g * group, m_turn, kept + g * k_kept_bytes,
                        bits(scale)});
  }
}

void CoreProgram::weigh(std::size_t t) {
  if (paper()) {
    m_dsp.call(m_kernels.paper_exp, {slot(t), m_value, 0, m_block_rows, k_tile_pitch, 0});
    m_dsp.call(m_kernels.paper_sum, {slot(t), m_second, 0, m_block_rows, k_tile_pitch, 0});
  } else {
    m_dsp.call(m_kernels.weights, {slot(t), m_value, m_second, m_block_rows, k_tile_pitch, bits(m_shape.scale)});
  }
}

void CoreProgram::softmax(sim::Pointer kept, bool first, sim::Pointer o) {
  rows_call(first ? m_kernels.begin : m_kernels.next, kept);
  // Backwards: those that stayed in AM come first, and who was in a slot after a tile leaves it before that comes back.
  const std::size_t ahead = std::min<std::size_t>(2, m_tiles.size() - 1);  // tiles from a recall to its use
  for (std::size_t t = m_pass.size(); t-- > 0;) {
    m_dsp.loop_iteration();
    if (t >= ahead && t - ahead < m_spilled) recall(t - ahead);
    wait(m_recall[t]);
    weigh(t);
    send(t, k_usual + static_cast<int>(m_pass.size() - t));
  }
  ask_for_chunk(0);
  rows_call(m_kernels.add, kept);
  if (!first) m_dsp.call(m_kernels.rescale, {o, m_first, m_block_rows, m_sizes.row});
}

void CoreProgram::ask_for_chunk(std::size_t index) {
  if (index >= m_chunks.size()) return;
  const Chunk& chunk = m_chunks[index];
  wait(m_sent[chunk.tile]);
  const std::int64_t bytes = 4 * round_up(chunk.keys, k_key_unit), pitch = 4 * m_plan.weight_columns;
  set_priority(k_urgent);
  m_chunk_channel[index % 2] =
      m_dsp.dma_p2p(home(chunk.tile) + 4 * chunk.column, {m_block_rows, bytes, k_tile_pitch - bytes},
                    m_weights[index % 2], {m_block_rows, bytes, pitch - bytes});
}

void CoreProgram::multiply_values(std::int64_t step, sim::Pointer v, sim::Pointer o, bool fresh) {
  for (; m_chunk < m_chunks.size() && m_pass[m_chunks[m_chunk].tile].step == step; ++m_chunk) {
    const Chunk& chunk = m_chunks[m_chunk];
    m_dsp.loop_iteration();
    wait(m_chunk_channel[m_chunk % 2]);
    ask_for_chunk(m_chunk + 1);
    multiply({.x = m_weights[m_chunk % 2],
              .x_pitch = 4 * m_plan.weight_columns,
              .w = v + (m_pass[chunk.tile].column + chunk.column) * m_sizes.row,
              .w_pitch = m_sizes.row,
              .y = o,
              .y_pitch = m_sizes.row,
              .rows = m_block_rows,
              .vectors = ceil_div(m_sizes.d, k_lanes),
              .k = round_up(chunk.keys, k_key_unit),
              .accumulate = !fresh || m_chunk > 0});
  }
}

/// Of all tiles that hold `bytes` from the first one on.
void CoreProgram::free_tiles(std::int64_t bytes) {
  for (std::size_t t = 0; t < m_pass.size(); ++t) {
    if (static_cast<std::int64_t>(t % m_tiles.size()) * m_sizes.tile < bytes) wait(m_sent[t]);
  }
}

void CoreProgram::divide(sim::Pointer kept, sim::Pointer o) {
  rows_call(m_kernels.finish, kept);
  m_dsp.call(m_kernels.rescale, {o, m_value, m_block_rows, m_sizes.row});
}

}  // namespace mtsim::kernels::attention
