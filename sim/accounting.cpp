// SPDX-License-Identifier: Apache-2.0
#include "sim/accounting.h"

namespace mtsim::sim {

std::string_view name(CycleClass cycle_class) {
  static constexpr std::array<std::string_view, k_cycle_classes> k_names = {
      "busy", "call", "dma_issue", "dma_wait", "broadcast_step", "barrier", "launch", "scalar_assumed", "idle_tail"};
  return k_names[static_cast<std::size_t>(cycle_class)];
}

}  // namespace mtsim::sim
