// SPDX-License-Identifier: Apache-2.0
// An address that carries its memory, so that a wrong space is an error and not a wrong number.
#pragma once

#include <cstdint>
#include <string>

namespace mtsim::sim {

enum class Space : std::uint8_t { sm, am, gsm, ddr };
inline constexpr int k_spaces = 4;
const char* to_string(Space space);

struct Pointer {
  Space space = Space::ddr;
  std::int16_t core = -1;  // owner of an SM or AM; -1 for GSM and DDR
  std::uint64_t offset = 0;

  Pointer operator+(std::int64_t bytes) const { return {space, core, offset + static_cast<std::uint64_t>(bytes)}; }
  bool operator==(const Pointer&) const = default;
  std::string str() const;  // "am[3]+0x8000"
};

/// The rows of a 2-D transfer as hthreads has them: `step` is the gap in bytes from a row's end to the next row's
/// start.
struct Rows {
  std::int64_t count = 1;
  std::int64_t bytes = 0;
  std::int64_t step = 0;

  // Of rows that DmaEngine::check let through; others may overflow.
  std::int64_t total_bytes() const { return count * bytes; }
  std::int64_t pitch() const { return bytes + step; }
};

}  // namespace mtsim::sim
