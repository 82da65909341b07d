// SPDX-License-Identifier: Apache-2.0
// The initiation interval of one loop and what stands in the way of a smaller one. Internal to isa.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "isa/modulo_schedule.h"

namespace mtsim::isa {

using RegisterName = std::function<std::string(Register)>;  // as the text spells it

/// The least interval found, by heuristic, then by exhaustive search below it; fills the report's bounds, interval,
/// blocked intervals and proof. nullopt when there is none below `limit`.
std::optional<ModuloSchedule> find_schedule(const ModuloLoop& loop, const RegisterName& name, int longer, int limit,
                                            std::int64_t& search_budget, LoopReport& report);

}  // namespace mtsim::isa
