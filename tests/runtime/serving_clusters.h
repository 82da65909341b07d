// SPDX-License-Identifier: Apache-2.0
// The clusters of the test program: all are there before the first of them runs.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "sim/cluster.h"
#include "tests/runtime/support.h"

namespace mtsim::runtime::test {

/// Four with values, their memories empty, and behind them one for time.
inline std::vector<sim::Cluster*> serving_clusters() {
  static const auto all = [] {
    std::array<std::unique_ptr<sim::Cluster>, 5> made;
    for (auto& cluster : made) cluster = std::make_unique<sim::Cluster>(machine(), sim::ClusterOptions{});
    return made;
  }();
  std::vector<sim::Cluster*> result;
  for (const auto& cluster : all) {
    cluster->reset(machine(),
                   {.depth = cluster == all.back() ? sim::Depth::timing : sim::Depth::functional, .hazards = false});
    result.push_back(cluster.get());
  }
  return result;
}

}  // namespace mtsim::runtime::test
