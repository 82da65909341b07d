// SPDX-License-Identifier: Apache-2.0
// What bounds the initiation interval of a loop. Internal to isa.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "isa/modulo_schedule.h"

namespace mtsim::isa {

using RegisterName = std::function<std::string(Register)>;  // as the text spells it

/// The loop's dependences when accesses through different address registers never overlap; empty when they are so.
using IndependentGraph = std::function<DependenceGraph()>;

/// Fills the report's bounds from the loop as written, with all its dependences. `independent` is asked only where
/// memory holds the loop up.
void describe_bounds(const ModuloLoop& written, const IndependentGraph& independent, const RegisterName& name,
                     LoopReport& report);

/// The least interval that units, all dependences and the loop's own counter allow.
int interval_bound(const ModuloLoop& loop);

/// What an interval one below the bound of resources, values and memory lacks.
std::string bound_reason(const LoopReport& report);
/// What an interval one below interval_bound() lacks, where that is more than the report's bound.
std::string lifetime_reason(const ModuloLoop& loop);
/// What kept the hardest instruction from a place: the units it may use or the cycle of dependences it is in, whichever
/// is nearer to full.
std::string obstacle(const ModuloLoop& loop, int interval, int hardest);

}  // namespace mtsim::isa
