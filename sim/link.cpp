// SPDX-License-Identifier: Apache-2.0
#include "sim/link.h"

#include <algorithm>
#include <cmath>

namespace mtsim::sim {
namespace {

std::int64_t cycles(const MachineConfig& machine, bool is_same_device, std::int64_t messages, std::int64_t bytes) {
  const auto& link = machine.link;
  const double latency_us = is_same_device ? link.device_latency_us : link.network_latency_us;
  const double gb_s = is_same_device ? link.device_bandwidth_gb_s : link.network_bandwidth_gb_s;
  return static_cast<std::int64_t>(
      std::llround(latency_us * machine.cycles_per_us() +
                   static_cast<double>(messages) * static_cast<double>(bytes) / machine.bytes_per_cycle(gb_s)));
}

}  // namespace

std::int64_t LinkModel::message_cycles(std::int64_t bytes, bool is_same_device) const {
  return cycles(m_machine, is_same_device, 1, bytes);
}

std::int64_t LinkModel::exchange_cycles(std::int64_t bytes, std::span<const int> group) const {
  if (group.size() < 2) return 0;
  const bool is_near =
      std::all_of(group.begin(), group.end(), [&](int cluster) { return same_device(group.front(), cluster); });
  return cycles(m_machine, is_near, std::ssize(group) - 1, bytes);
}

}  // namespace mtsim::sim
