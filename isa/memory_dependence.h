// SPDX-License-Identifier: Apache-2.0
// Which loads and stores of a basic block may touch the same bytes. Internal to isa.
#pragma once

#include <span>

#include "isa/dependence.h"

namespace mtsim::isa {

/// A load sees a store one cycle earlier; a store one packet with a load, or later, is not seen. The scalar side (SM)
/// and the vector side (AM) never meet. Addresses are followed through constants: two accesses whose distance in bytes
/// is known and that do not overlap stay free; any other pair with a store keeps its order.
void add_memory_dependences(std::span<const Instruction> block, const DependenceOptions& options,
                            DependenceGraph& graph);

}  // namespace mtsim::isa
