// SPDX-License-Identifier: Apache-2.0
#include "kernels/rope/rope_tile.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/library.h"
#include "kernels/round.h"

namespace mtsim::kernels {
namespace {

constexpr std::int64_t k_vector_angles = 32;
// Chunks of a pass of the rotation: its loop is at least 7 cycles long, a chunk takes 2.
constexpr std::int64_t k_block_chunks = 4;

/// Pairs that a vector of low and one of high elements hold, or two vectors of both.
std::int64_t chunk_pairs(RopePairs pairs, DType dtype) {
  return pairs == RopePairs::half && dtype == DType::f16 ? 64 : 32;
}

/// The FP32 of a position in both words of a scalar.
std::uint64_t position_argument(std::int64_t position) {
  const std::uint64_t bits = std::bit_cast<std::uint32_t>(static_cast<float>(position));
  return bits << 32 | bits;
}

}  // namespace

std::vector<float> rope_inv_freq(std::int64_t head_dim, double theta, double factor) {
  std::vector<float> inv_freq(static_cast<std::size_t>(head_dim / 2));
  for (std::size_t i = 0; i < inv_freq.size(); ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(head_dim);
    inv_freq[i] = static_cast<float>(std::pow(theta, exponent) / factor);
  }
  return inv_freq;
}

void RopePositions::check(std::int64_t rows) const {
  if (!list.empty() && static_cast<std::int64_t>(list.size()) != rows)
    throw KernelError(fmt::format("rope: {} positions for {} rows; give one a row", list.size(), rows));
  for (std::int64_t row = 0; row < rows; ++row) {
    if (at(row) < 0 || at(row) > k_rope_max_position) {
      throw KernelError(fmt::format("rope: row {} has position {}; sine and cosine are computed for 0 to {}", row,
                                    at(row), k_rope_max_position));
    }
  }
}

RopeLayout RopeLayout::of(std::int64_t heads, std::int64_t head_dim, RopePairs pairs, DType dtype) {
  if (heads < 1 || head_dim < 2 || head_dim % 2 != 0 || head_dim > k_rope_max_head_dim) {
    throw KernelError(fmt::format("rope: {} heads of {} elements; head_dim must be even, 2 to {}, and heads at least 1",
                                  heads, head_dim, k_rope_max_head_dim));
  }
  RopeLayout layout{pairs, dtype, heads, head_dim, 0, true};
  const std::int64_t chunk = chunk_pairs(pairs, dtype);
  if (const std::int64_t whole = 2 * chunk;
      pairs == RopePairs::interleaved && whole % head_dim == 0 && heads * head_dim % whole == 0) {
    layout.heads = heads * head_dim / whole;
    layout.head_dim = whole;
  }
  layout.angles = round_up(layout.head_dim / 2, chunk);
  layout.dense = layout.angles == layout.head_dim / 2;
  return layout;
}

std::vector<float> RopeLayout::frequencies(std::span<const float> inv_freq) const {
  if (inv_freq.empty() || head_dim / 2 % static_cast<std::int64_t>(inv_freq.size()) != 0)
    throw KernelError(fmt::format("rope: {} inv_freq for heads of {}; give one a pair", inv_freq.size(), head_dim));
  std::vector<float> result(static_cast<std::size_t>(angles));
  for (std::size_t i = 0; i < static_cast<std::size_t>(head_dim / 2); ++i) result[i] = inv_freq[i % inv_freq.size()];
  return result;
}

RopeTile::RopeTile(sim::Cluster& cluster, const RopeLayout& layout) : m_layout(layout) {
  const isa::Pipeline& pipeline = cluster.machine().pipeline;
  const bool interleaved = layout.pairs == RopePairs::interleaved;
  const std::int64_t chunks = layout.angles / chunk_pairs(layout.pairs, layout.dtype);
  m_block_heads = std::max<std::int64_t>(k_block_chunks / chunks, 1);
  const auto rotation = [&](std::int64_t heads) {
    return cluster.load(program(interleaved ? "rope_interleaved" : "rope_half", pipeline,
                                {{"CHUNKS", chunks}, {"HEADS", heads}, {"FP16", layout.dtype == DType::f16}}));
  };
  m_angles = cluster.load(program("rope_angles", pipeline, {{"PAIRS_IN_LANES", interleaved}}));
  m_head = rotation(1);
  m_block = m_block_heads == 1 ? m_head : rotation(m_block_heads);
}

void RopeTile::tabulate(sim::Dsp& dsp, const RopePositions& positions, std::int64_t first_row, std::int64_t rows,
                        sim::Pointer frequencies, sim::Pointer table) const {
  for (std::int64_t row = 0; row < rows;) {
    const std::int64_t position = positions.at(first_row + row);
    std::int64_t run = 1;  // consecutive positions
    while (row + run < rows && positions.at(first_row + row + run) == position + run) ++run;
    const sim::Pointer cosine = table + row * m_layout.table_pitch();
    for (std::int64_t column = 0; column < m_layout.angles / k_vector_angles; ++column) {
      dsp.loop_iteration();
      const sim::Pointer at = cosine + column * m_layout.column_bytes();
      dsp.call(m_angles, {position_argument(position), frequencies + column * k_vector_angles * 4, at,
                          at + m_layout.sine_offset(), run, m_layout.table_pitch()});
    }
    row += run;
  }
}

void RopeTile::rotate(sim::Dsp& dsp, sim::Pointer x, std::int64_t pitch, std::int64_t rows, std::int64_t heads,
                      sim::Pointer table) const {
  const std::int64_t blocks = heads / m_block_heads, block_bytes = m_block_heads * m_layout.head_bytes();
  walk(dsp, m_block, x, pitch, rows, blocks, block_bytes, table);
  walk(dsp, m_head, x + blocks * block_bytes, pitch, rows, heads % m_block_heads, m_layout.head_bytes(), table);
}

/// Down the rows or along the blocks, whichever makes fewer calls.
void RopeTile::walk(sim::Dsp& dsp, const sim::Kernel& kernel, sim::Pointer x, std::int64_t pitch, std::int64_t rows,
                    std::int64_t blocks, std::int64_t block_bytes, sim::Pointer table) const {
  if (blocks == 0) return;
  const bool down = blocks <= rows;
  for (std::int64_t i = 0; i < (down ? blocks : rows); ++i) {
    dsp.loop_iteration();
    const sim::Pointer cosine = down ? table : table + i * m_layout.table_pitch();
    dsp.call(kernel, {x + i * (down ? block_bytes : pitch), cosine, cosine + m_layout.sine_offset(),
                      down ? rows : blocks, down ? pitch : block_bytes, down ? m_layout.table_pitch() : 0});
  }
}

}  // namespace mtsim::kernels
