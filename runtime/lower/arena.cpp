// SPDX-License-Identifier: Apache-2.0
#include "runtime/lower/arena.h"

#include <algorithm>
#include <numeric>

namespace mtsim::runtime {

ArenaPlan plan_arena(const std::vector<Lifetime>& values, std::int64_t alignment) {
  const auto padded = [&](std::int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; };
  std::vector<std::size_t> by_size(values.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](std::size_t a, std::size_t b) { return values[a].bytes > values[b].bytes; });
  ArenaPlan plan;
  plan.offsets.resize(values.size());
  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t value : by_size) {
    std::int64_t offset = 0;
    for (const std::size_t other : placed) {
      const bool meet = values[other].first <= values[value].last && values[value].first <= values[other].last;
      if (!meet) continue;
      if (offset + values[value].bytes <= plan.offsets[other]) break;
      offset = std::max(offset, plan.offsets[other] + padded(values[other].bytes));
    }
    plan.offsets[value] = offset;
    plan.bytes = std::max(plan.bytes, offset + padded(values[value].bytes));
    placed.insert(std::upper_bound(placed.begin(), placed.end(), value,
                                   [&](std::size_t a, std::size_t b) { return plan.offsets[a] < plan.offsets[b]; }),
                  value);
  }
  return plan;
}

}  // namespace mtsim::runtime
