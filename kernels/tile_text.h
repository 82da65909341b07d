// SPDX-License-Identifier: Apache-2.0
// Block sizes as the user writes them: "mg=720,k2=128".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace mtsim::kernels {

struct TileKey {
  std::string_view name;
  std::int64_t* value;  // holds the default; nullptr: not to be had here, `why_not`
  std::string_view why_not = "";
};

/// Sets the values `text` names, the others stay. Throws KernelError for an unknown or repeated key and for what is no
/// positive number.
void parse_tiles(const std::string& text, std::span<const TileKey> keys);

}  // namespace mtsim::kernels
