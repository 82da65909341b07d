// SPDX-License-Identifier: Apache-2.0
// What a debugger command names: a register, or bytes of SM or AM.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/stepper.h"

namespace mtsim::scenarios {

struct Location {
  std::optional<isa::Register> reg;  // if absent, memory:
  sim::CoreMemory space = sim::CoreMemory::sm;
  std::uint64_t address = 0;
  std::size_t bytes = 8;
  bool sized = false;  // the text said how many bytes

  std::string str() const;  // "VR3", "am:0x1000"
  bool is_vector() const { return reg && reg->file == isa::RegisterFile::VR; }
};

/// "VR3", a .param name, "sm:0x100", "am:AR0+0x80:128": an address is a sum of numbers, registers and .param names as
/// they are now, then the bytes. Throws UsageError.
Location parse_location(const std::string& text, const sim::Stepper& stepper);

/// The same place with room for `bytes` bytes. Throws UsageError when they end outside the memory.
Location with_bytes(const Location& location, std::size_t bytes, const sim::Stepper& stepper);

std::vector<std::byte> bytes_at(const Location& location, const sim::Stepper& stepper);

/// A whole number from `low` on, decimal or 0x hex. Throws UsageError, which says what was wanted.
std::int64_t parse_count(const std::string& text, const std::string& what, std::int64_t low = 1);

}  // namespace mtsim::scenarios
