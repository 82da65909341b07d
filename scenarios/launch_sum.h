// SPDX-License-Identifier: Apache-2.0
// Launches taken together: one after the other, or more of the same.
#pragma once

#include <cstdint>

#include "sim/cluster.h"

namespace mtsim::scenarios {

/// `next` was launched after what `all` holds: cycles, accounts, bytes, calls and findings add up, and a fault ends it.
void append(sim::LaunchResult& all, const sim::LaunchResult& next);

/// `more` did some work more than `fewer` with all else equal: `more` and `times` that work. Accounts of a core still
/// sum to the cycles.
sim::LaunchResult extrapolated(const sim::LaunchResult& fewer, const sim::LaunchResult& more, std::int64_t times);

}  // namespace mtsim::scenarios
