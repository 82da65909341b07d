// SPDX-License-Identifier: Apache-2.0
// Exhaustive search for a modulo schedule of a given interval: shows that none exists, or finds one. Internal to isa.
#pragma once

#include <cstdint>
#include <optional>

#include "isa/modulo_schedule.h"

namespace mtsim::isa {

struct ExactSearch {
  enum class Outcome : std::uint8_t { found, none, unknown };  // unknown: the budget ran out
  Outcome outcome = Outcome::unknown;
  std::optional<ModuloSchedule> schedule;
};

/// `budget` counts elementary steps (some 10^8 a second) and is decreased by what the search took.
ExactSearch search_modulo_schedule(const ModuloLoop& loop, int interval, std::int64_t& budget);

}  // namespace mtsim::isa
