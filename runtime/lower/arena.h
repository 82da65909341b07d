// SPDX-License-Identifier: Apache-2.0
// Where values of known lifetimes lie in one area: planned before anything runs.
#pragma once

#include <cstdint>
#include <vector>

namespace mtsim::runtime {

struct Lifetime {
  std::int64_t bytes = 0;
  int first = 0, last = 0;  // steps, both included
};

struct ArenaPlan {
  std::vector<std::int64_t> offsets;  // of each value
  std::int64_t bytes = 0;             // of the area
};

/// Values whose lifetimes meet do not share bytes. The largest are placed first, each at the lowest offset that is free
/// all its life (Pisarchyk and Lee, MLSys 2020, greedy by size).
ArenaPlan plan_arena(const std::vector<Lifetime>& values, std::int64_t alignment);

}  // namespace mtsim::runtime
