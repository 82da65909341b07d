// SPDX-License-Identifier: Apache-2.0
#include "scenarios/explore/candidate.h"

namespace mtsim::scenarios {

void Killed::add(std::int64_t count, const std::string& tile, std::int64_t its_need, std::int64_t its_limit) {
  points += count;
  if (!example.empty() && std::pair(needed - available, example) <= std::pair(its_need - its_limit, tile)) return;
  example = tile;
  needed = its_need;
  available = its_limit;
}
void Killed::add(const Killed& other) { add(other.points, other.example, other.needed, other.available); }

}  // namespace mtsim::scenarios
