// SPDX-License-Identifier: Apache-2.0
#include "runtime/planner/interpolated_cost.h"

#include <bit>
#include <vector>

namespace mtsim::runtime {
namespace {

LayerTime between(const LayerTime& low, const LayerTime& high, double share) {
  return {(1 - share) * low.layer + share * high.layer, (1 - share) * low.stage + share * high.stage,
          (1 - share) * low.head + share * high.head};
}

}  // namespace

LayerTime InterpolatedCost::at(const Key& key, const models::SequenceStep& step, std::map<Key, LayerTime>& known) {
  if (const auto found = known.find(key); found != known.end()) return found->second;
  const auto& [tp, requests] = key;
  const auto low = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(requests)));
  if (low == requests) {
    const std::vector<models::SequenceStep> batch(static_cast<std::size_t>(requests), step);
    return known[key] = layer_time(m_cost, tp, batch);
  }
  const double share = static_cast<double>(requests - low) / static_cast<double>(low);
  return known[key] = between(at({tp, low}, step, known), at({tp, 2 * low}, step, known), share);
}

}  // namespace mtsim::runtime
