// SPDX-License-Identifier: Apache-2.0
// How a program ends: paths that run off its end, a return address that is lost. Internal to isa.
#pragma once

#include <vector>

#include "isa/checked_program.h"

namespace mtsim::isa {

void check_exits(const CheckedProgram& checked, const std::vector<int>& entries, Findings& findings);

}  // namespace mtsim::isa
