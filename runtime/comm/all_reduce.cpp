// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/all_reduce.h"

namespace mtsim::runtime {

void exchange_parts(Transport& transport, std::span<const int> group, const std::function<Bytes(std::size_t)>& part,
                    const std::function<void(std::size_t, std::size_t, const Bytes&)>& put) {
  for (std::size_t from = 0; from < group.size(); ++from) {
    if (!transport.owns(group[from])) continue;
    const Bytes mine = part(from);
    for (std::size_t to = 0; to < group.size(); ++to) {
      if (to != from) transport.send(group[from], group[to], mine);
    }
  }
  for (std::size_t to = 0; to < group.size(); ++to) {
    if (!transport.owns(group[to])) continue;
    for (std::size_t from = 0; from < group.size(); ++from) {
      if (from != to) put(to, from, transport.receive(group[from], group[to]));
    }
  }
}

}  // namespace mtsim::runtime
