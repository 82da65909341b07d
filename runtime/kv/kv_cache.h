// SPDX-License-Identifier: Apache-2.0
// Which blocks of the KV cache belong to which sequence, and whether there are any left: the accounting, not the bytes.
// A block holds K and V of so many positions, of all layers.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "models/config.h"

namespace mtsim::runtime {

enum class KvMode : std::uint8_t {
  reserve,  // a sequence gets the blocks of its longest possible context when it begins
  paged     // blocks as they are needed (Kwon et al., SOSP 2023)
};

struct KvOptions {
  KvMode mode = KvMode::reserve;
  /// Positions of a block, a multiple of 4; 0: reserve, the longest context of a sequence; paged, k_kv_block. Short
  /// blocks cost MT attention a broadcast each (about 6 us, docs/architecture.md).
  std::int64_t block = 0;
  std::int64_t sequences = 0;  // at a time, at most; 0: as many as fit
};
inline constexpr std::int64_t k_kv_block = 512;
/// "reserve", "paged", "paged(256)". Throws RuntimeError.
KvOptions parse_kv_options(const std::string& text);

class KvCache {
 public:
  /// `budget`: bytes for all blocks. `longest`: positions of the longest context. Throws RuntimeError when not one
  /// sequence of that length fits: bytes needed and there.
  KvCache(const models::LlamaConfig& config, const KvOptions& options, std::int64_t bytes_per_element,
          std::int64_t budget, std::int64_t longest);
  /// The same for a position of so many bytes: of one cluster's part of a model.
  KvCache(std::int64_t position_bytes, const KvOptions& options, std::int64_t budget, std::int64_t longest);

  std::int64_t block() const { return m_block; }              // positions
  std::int64_t block_bytes() const { return m_block_bytes; }  // of all layers, K and V
  std::int64_t blocks() const { return m_blocks; }
  std::int64_t free_blocks() const { return static_cast<std::int64_t>(m_free.size()); }

  /// Room for a sequence of at most `most` positions. False when there is none now.
  bool begin(std::int64_t sequence, std::int64_t most);
  /// Room for `positions` positions of it. False when no block is left. Throws RuntimeError beyond what it began with.
  bool grow(std::int64_t sequence, std::int64_t positions);
  void end(std::int64_t sequence);
  /// Its blocks, in the order of its positions.
  std::span<const std::int64_t> table(std::int64_t sequence) const;

 private:
  struct Sequence {
    std::int64_t most = 0;  // positions
    std::vector<std::int64_t> table;
  };
  bool take(std::vector<std::int64_t>& table, std::int64_t positions);

  KvMode m_mode;
  std::int64_t m_block = 0, m_block_bytes = 0, m_blocks = 0, m_longest = 0;
  std::vector<std::int64_t> m_free;  // the last one is next
  std::map<std::int64_t, Sequence> m_sequences;
};

}  // namespace mtsim::runtime
