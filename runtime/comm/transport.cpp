// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/transport.h"

#include <fmt/format.h>

#include "runtime/error.h"

namespace mtsim::runtime {

int Transport::owner(int cluster) const {
  return static_cast<int>(static_cast<std::int64_t>(cluster) * ranks() / m_clusters);
}

void Transport::send(int from, int to, Bytes bytes) { arrived(from, to, std::move(bytes)); }

std::optional<Bytes> Transport::try_receive(int from, int to) {
  const auto route = m_mail.find({from, to});
  if (route == m_mail.end() || route->second.empty()) return std::nullopt;
  Bytes bytes = std::move(route->second.front());
  route->second.pop_front();
  return bytes;
}

Bytes Transport::receive(int from, int to) {
  std::optional<Bytes> bytes = try_receive(from, to);
  if (!bytes) throw RuntimeError(fmt::format("cluster {} waits for a message of {}, which sent none", to, from));
  return std::move(*bytes);
}

Bytes Transport::broadcast(int, Bytes bytes) { return bytes; }

std::vector<std::int64_t> Transport::gather(std::int64_t number) { return {number}; }

}  // namespace mtsim::runtime
