// SPDX-License-Identifier: Apache-2.0
// The buffer between prefill and decode (III-D2): bytes that caches reserve and hold, and the links they leave by. A
// cache is spread over the buffer's clusters in proportion to their room, so that none is full before the others.
#pragma once

#include <algorithm>
#include <cstdint>

namespace mtsim::runtime {

class KvBuffer {
 public:
  /// `capacity`: Buf_max. `senders`: clusters that keep it, at least one.
  KvBuffer(std::int64_t capacity, bool is_bounded, std::int64_t senders)
      : m_capacity(capacity), m_is_bounded(is_bounded), m_senders(senders) {}

  /// Reserves; false when it is full.
  bool take(std::int64_t bytes) {
    if (m_is_bounded && m_used + bytes > m_capacity) return false;
    m_used += bytes;
    return true;
  }
  void give_back(std::int64_t bytes) { m_used -= bytes; }
  std::int64_t used() const { return m_used; }
  std::int64_t capacity() const { return m_capacity; }

  /// When a pull of so many bytes is complete that is asked for now. The links send one after the other; a cluster of
  /// the receiver takes `received` bytes. `message_s(bytes)` is the time of one link.
  template <class Message>
  double pull(double now, std::int64_t bytes, std::int64_t received, const Message& message_s) {
    const std::int64_t sent = (bytes + m_senders - 1) / m_senders;
    const double start = std::max(now, m_links_free);
    m_links_free = start + message_s(sent);
    return start + message_s(std::max(sent, received));
  }

 private:
  std::int64_t m_capacity;
  bool m_is_bounded;
  std::int64_t m_senders;
  std::int64_t m_used = 0;
  double m_links_free = 0;
};

}  // namespace mtsim::runtime
