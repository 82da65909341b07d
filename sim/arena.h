// SPDX-License-Identifier: Apache-2.0
// Hands out a memory's bytes one after another; all are freed together.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

namespace mtsim::sim {

class Arena {
 public:
  static constexpr std::int64_t k_alignment = 256;  // bytes

  explicit Arena(std::int64_t size) : m_size(size) {}

  /// Offset of `bytes` bytes; nothing when they do not fit or are fewer than one (complaint() then says so).
  std::optional<std::int64_t> allocate(std::int64_t bytes) {
    if (bytes < 1 || bytes > m_size - m_used) return std::nullopt;
    const std::int64_t offset = m_used;
    const std::int64_t free = m_size - m_used - bytes;
    m_used += bytes + std::min(free, (k_alignment - bytes % k_alignment) % k_alignment);
    return offset;
  }
  /// "4096 bytes asked, 256 of 65536 free"
  std::string complaint(std::int64_t bytes) const {
    return fmt::format("{} bytes asked, {} of {} free", bytes, m_size - m_used, m_size);
  }
  /// Bytes handed out, gaps of the alignment included.
  std::int64_t used() const { return m_used; }
  void clear() { m_used = 0; }
  /// Frees what was handed out after used() was `used`.
  void release(std::int64_t used) { m_used = std::min(m_used, used); }

 private:
  std::int64_t m_size;
  std::int64_t m_used = 0;
};

}  // namespace mtsim::sim
