// SPDX-License-Identifier: Apache-2.0
#include "sim/pointer.h"

#include <fmt/format.h>

namespace mtsim::sim {

const char* to_string(Space space) {
  switch (space) {
    case Space::sm: return "sm";
    case Space::am: return "am";
    case Space::gsm: return "gsm";
    case Space::ddr: return "ddr";
  }
  return "?";
}

std::string Pointer::str() const {
  if (space == Space::gsm || space == Space::ddr) return fmt::format("{}+{:#x}", to_string(space), offset);
  return fmt::format("{}[{}]+{:#x}", to_string(space), core, offset);
}

}  // namespace mtsim::sim
