// SPDX-License-Identifier: Apache-2.0
// Finds wrong schedules before they run. Errors: two writes to one register landing in one cycle, certain double taken
// branch, a read bound to another producer than under .scheduled_for, an issue slot the machine lacks. Warnings: value
// overwritten before use, two results of one unit landing together, a register read that nothing writes, packets that
// nothing reaches. Notes: read in flight in hand packets (the scheduler of .linear code means it), shapes not known to
// run on hardware (no known kernel shows them).
#pragma once

#include <vector>

#include "isa/diagnostic.h"
#include "isa/program.h"

namespace mtsim::isa {

/// Checks all code reachable from `entry` (every label that nothing branches to and the first packet, when empty).
std::vector<Diagnostic> check(const Program& program, const Pipeline& machine, const std::string& entry = "");

/// "two VLDST with different address registers", ... : packet shapes of the program that no published kernel shows.
std::vector<std::string> assumed_shapes(const Program& program);

/// True when every branch condition derives from immediates and count parameters, so that cycles do not depend on data.
/// Otherwise *why says which predicate depends on what, with its place.
bool timing_is_static(const Program& program, std::string* why = nullptr);

/// True when every address derives from immediates, counts and pointer parameters, so that what a call touches is known
/// without data. Otherwise *why as above.
bool footprint_is_static(const Program& program, std::string* why = nullptr);

}  // namespace mtsim::isa
