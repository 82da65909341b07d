// SPDX-License-Identifier: Apache-2.0
// KV caches as they pass between clusters whose blocks and shares of heads differ: ClusterStage::read_cache and
// write_cache.
#include <fmt/format.h>

#include <cstring>
#include <functional>

#include "runtime/backend/cluster_stage.h"
#include "runtime/error.h"

namespace mtsim::runtime {
namespace {

/// Where the elements of a layer's cache lie in its blocks, and in what passes between clusters.
struct CacheLayout {
  std::int64_t heads = 0, dim = 0, block = 0, bytes = 0;

  std::int64_t row_bytes() const { return heads * dim * bytes; }
  std::int64_t block_bytes() const { return row_bytes() * block; }
  /// Tells of each element of so many positions of K or V: its place in the block, and in [positions][heads][dim].
  void each(bool is_v, std::int64_t positions, const std::function<void(std::int64_t, std::int64_t)>& at) const {
    for (std::int64_t head = 0; head < heads; ++head) {
      for (std::int64_t position = 0; position < positions; ++position) {
        for (std::int64_t i = 0; i < dim; ++i) {
          const std::int64_t in_block =
              is_v ? (head * block + position) * dim + i : (head * dim + i) * block + position;
          at(in_block * bytes, ((position * heads + head) * dim + i) * bytes);
        }
      }
    }
  }
};

}  // namespace

std::vector<std::byte> ClusterStage::read_cache(std::int64_t sequence, std::int64_t layer) const {
  const models::LlamaConfig& c = m_model.config();
  const CacheLayout layout{c.kv_heads, c.head_dim, m_cache.block(), bytes_of(m_options.dtype)};
  const std::int64_t positions = length(sequence);
  if (!has_values()) return {};
  std::vector<std::byte> result(static_cast<std::size_t>(2 * positions * layout.row_bytes()));
  const kernels::AttentionBlocks its = blocks(sequence, static_cast<int>(layer));
  for (const bool is_v : {false, true}) {
    std::byte* to = result.data() + (is_v ? positions * layout.row_bytes() : 0);
    for (std::int64_t first = 0, b = 0; first < positions; first += layout.block, ++b) {
      const auto& places = is_v ? its.v : its.kt;
      const std::vector<std::byte> block = read(places[static_cast<std::size_t>(b)], layout.block_bytes());
      layout.each(is_v, std::min(layout.block, positions - first), [&](std::int64_t in_block, std::int64_t in_rows) {
        std::memcpy(to + first * layout.row_bytes() + in_rows, block.data() + in_block,
                    static_cast<std::size_t>(layout.bytes));
      });
    }
  }
  return result;
}

void ClusterStage::write_cache(std::int64_t sequence, std::int64_t layer, std::span<const std::byte> bytes) {
  if (!has_values()) return;
  const models::LlamaConfig& c = m_model.config();
  const CacheLayout layout{c.kv_heads, c.head_dim, m_cache.block(), bytes_of(m_options.dtype)};
  if (std::ssize(bytes) % (2 * layout.row_bytes()) != 0) {
    throw RuntimeError(fmt::format("a cache of {} bytes in layer {} of sequence {}: a position has {}", bytes.size(),
                                   layer, sequence, 2 * layout.row_bytes()));
  }
  const std::int64_t positions = std::ssize(bytes) / (2 * layout.row_bytes());
  const kernels::AttentionBlocks its = blocks(sequence, static_cast<int>(layer));
  for (const bool is_v : {false, true}) {
    const std::byte* from = bytes.data() + (is_v ? positions * layout.row_bytes() : 0);
    for (std::int64_t first = 0, b = 0; first < positions; first += layout.block, ++b) {
      std::vector<std::byte> block(static_cast<std::size_t>(layout.block_bytes()));
      layout.each(is_v, std::min(layout.block, positions - first), [&](std::int64_t in_block, std::int64_t in_rows) {
        std::memcpy(block.data() + in_block, from + first * layout.row_bytes() + in_rows,
                    static_cast<std::size_t>(layout.bytes));
      });
      write((is_v ? its.v : its.kt).at(static_cast<std::size_t>(b)), block);
    }
  }
}

bool ClusterStage::set_length(std::int64_t sequence, std::int64_t positions) {
  if (!m_cache.grow(sequence, positions)) return false;
  m_lengths.at(sequence) = positions;
  return true;
}

}  // namespace mtsim::runtime
