// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "scenarios/explore/exploration.h"

namespace mtsim::scenarios {

std::vector<std::size_t> pareto_front(const std::vector<Explored>& points) {
  using Cost = std::array<double, 3>;
  const auto cost = [](const Explored& e) {
    return Cost{e.measured.latency_ms, static_cast<double>(e.measured.ddr_bytes),
                static_cast<double>(e.point.am_bytes)};
  };
  const auto is_as_good = [](const Cost& a, const Cost& b) { return a[0] <= b[0] && a[1] <= b[1] && a[2] <= b[2]; };
  std::vector<std::size_t> front;
  for (std::size_t i = 0; i < points.size(); ++i) {
    // By latency: only what came before can be as good, and what is as good as that is there itself.
    const Cost mine = cost(points[i]);
    if (points[i].measured.cut ||
        std::any_of(front.begin(), front.end(), [&](std::size_t kept) { return is_as_good(cost(points[kept]), mine); }))
      continue;
    std::erase_if(front, [&](std::size_t kept) { return is_as_good(mine, cost(points[kept])); });
    front.push_back(i);
  }
  return front;
}

}  // namespace mtsim::scenarios
