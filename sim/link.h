// SPDX-License-Identifier: Apache-2.0
// Messages between clusters: a latency, then bytes at a bandwidth, within a device or between two (machine file,
// section link). Clusters are numbered through the devices. A cluster sends and receives at the same time, one message
// after the other each way.
#pragma once

#include <cstdint>
#include <span>

#include "sim/config/machine.h"

namespace mtsim::sim {

class LinkModel {
 public:
  explicit LinkModel(const MachineConfig& machine) : m_machine(machine) {}

  bool same_device(int a, int b) const { return a / m_machine.device.clusters == b / m_machine.device.clusters; }
  /// Cycles from the send until all bytes are in the receiver's DDR.
  std::int64_t message_cycles(std::int64_t bytes, bool is_same_device) const;
  /// Every cluster of the group sends its part to each of the others and receives theirs: the direct exchange of an
  /// all-reduce, of which each cluster then adds up the parts. TP - 1 messages each way (eq. 17), by the slowest link.
  std::int64_t exchange_cycles(std::int64_t bytes, std::span<const int> group) const;
  /// One cluster receives a part of each of the others.
  std::int64_t gather_cycles(std::int64_t bytes, std::span<const int> group) const {
    return exchange_cycles(bytes, group);
  }

 private:
  const MachineConfig m_machine;
};

}  // namespace mtsim::sim
