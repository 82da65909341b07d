// SPDX-License-Identifier: Apache-2.0
// Two words that every part of the scheduler says. Internal to isa.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>

#include "isa/program.h"

namespace mtsim::isa {

/// Instructions, packets and cycles are int, containers count in size_t.
inline std::size_t index(int i) { return static_cast<std::size_t>(i); }

/// "VLDW (line 12)".
inline std::string spelled(const Instruction& instruction) {
  return fmt::format("{} (line {})", instruction.row->mnemonic, instruction.place.line);
}

}  // namespace mtsim::isa
