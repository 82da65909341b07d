// SPDX-License-Identifier: Apache-2.0
#include "runtime/kv/kv_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "runtime/error.h"

namespace mtsim::runtime {

KvOptions parse_kv_options(const std::string& text) {
  if (text == "reserve") return {};
  if (text == "paged") return {KvMode::paged, 0, 0};
  if (text.starts_with("paged(") && text.ends_with(")")) {
    std::int64_t block = 0;
    const char *begin = text.data() + 6, *end = text.data() + text.size() - 1;
    const auto [stop, error] = std::from_chars(begin, end, block);
    if (error == std::errc() && stop == end && block > 0 && block % 4 == 0 && block <= 1 << 20)
      return {KvMode::paged, block, 0};
  }
  throw RuntimeError(
      fmt::format("KV cache '{}': reserve, paged or paged(BLOCK), BLOCK positions being a multiple of 4", text));
}

KvCache::KvCache(const models::LlamaConfig& config, const KvOptions& options, std::int64_t bytes_per_element,
                 std::int64_t budget, std::int64_t longest)
    : KvCache(config.kv_bytes_per_token(bytes_per_element), options, budget, longest) {}

KvCache::KvCache(std::int64_t position_bytes, const KvOptions& options, std::int64_t budget, std::int64_t longest)
    : m_mode(options.mode), m_longest(longest) {
  const std::int64_t unit = 4;  // keys that attention loads together
  m_block = options.block > 0                 ? options.block
            : options.mode == KvMode::reserve ? (longest + unit - 1) / unit * unit
                                              : k_kv_block;
  m_block_bytes = m_block * position_bytes;
  m_blocks = std::max<std::int64_t>(budget, 0) / m_block_bytes;
  const std::int64_t needed = (longest + m_block - 1) / m_block;
  if (m_blocks < needed) {
    throw RuntimeError(
        fmt::format("KV cache: a context of {} positions needs {} bytes of DDR ({} a position), {} are left "
                    "beside the weights; use a shorter context, fewer layers or a smaller type",
                    longest, needed * m_block_bytes, m_block_bytes / m_block, std::max<std::int64_t>(budget, 0)));
  }
  if (options.sequences > 0) m_blocks = std::min(m_blocks, needed * options.sequences);
  for (std::int64_t i = m_blocks; i-- > 0;) m_free.push_back(i);
}

bool KvCache::take(std::vector<std::int64_t>& table, std::int64_t positions) {
  const std::int64_t missing = (positions + m_block - 1) / m_block - std::ssize(table);
  if (missing > free_blocks()) return false;
  for (std::int64_t i = 0; i < missing; ++i) {
    table.push_back(m_free.back());
    m_free.pop_back();
  }
  return true;
}

bool KvCache::begin(std::int64_t sequence, std::int64_t most) {
  if (most > m_longest)
    throw RuntimeError(fmt::format("KV cache: a sequence of {} positions, made for at most {}", most, m_longest));
  const auto [it, is_new] = m_sequences.try_emplace(sequence, Sequence{most, {}});
  if (!is_new) throw RuntimeError(fmt::format("KV cache: sequence {} has begun already", sequence));
  if (m_mode == KvMode::paged || take(it->second.table, most)) return true;
  m_sequences.erase(it);
  return false;
}

bool KvCache::grow(std::int64_t sequence, std::int64_t positions) {
  Sequence& its = m_sequences.at(sequence);
  if (positions > its.most) {
    throw RuntimeError(fmt::format("KV cache: {} positions of sequence {}, which began with room for {}", positions,
                                   sequence, its.most));
  }
  return take(its.table, positions);
}

void KvCache::end(std::int64_t sequence) {
  const auto it = m_sequences.find(sequence);
  if (it == m_sequences.end()) return;
  m_free.insert(m_free.end(), it->second.table.rbegin(), it->second.table.rend());
  m_sequences.erase(it);
}

std::span<const std::int64_t> KvCache::table(std::int64_t sequence) const { return m_sequences.at(sequence).table; }

}  // namespace mtsim::runtime
