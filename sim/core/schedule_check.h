// SPDX-License-Identifier: Apache-2.0
// Whether a hand schedule still means the same on a machine with other latencies or fewer issue slots.
#pragma once

#include "isa/program.h"

namespace mtsim::sim {

/// Throws isa::IsaError when `program`, scheduled for program.scheduled_for, would compute something else on a machine
/// with this pipeline, or cannot issue there: one sentence that says why ("k is scheduled for VLDW=9 and this machine
/// has 12"), then every place (isa::check). What is wrong on the machine it was scheduled for too is not reported.
void require_same_meaning(const isa::Program& program, const isa::Pipeline& pipeline);

}  // namespace mtsim::sim
