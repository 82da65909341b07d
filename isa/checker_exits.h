// SPDX-License-Identifier: Apache-2.0
// How a program ends: paths that run off its end, a return address that is lost, packets behind it that nothing
// reaches. Internal to isa.
#pragma once

#include <vector>

#include "isa/checked_program.h"

namespace mtsim::isa {

/// `all_entries`: a packet that none of them reaches is dead, and not just another entry's.
void check_exits(const CheckedProgram& checked, const std::vector<int>& entries, bool all_entries, Findings& findings);

}  // namespace mtsim::isa
