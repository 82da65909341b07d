// SPDX-License-Identifier: Apache-2.0
#include "sim/pointer.h"

#include <array>
#include <charconv>

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
  std::string text = to_string(space);
  if (space != Space::gsm && space != Space::ddr) text.append("[").append(std::to_string(core)).append("]");
  std::array<char, 16> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), offset, 16).ptr;
  return text.append("+0x").append(digits.data(), end);
}

}  // namespace mtsim::sim
