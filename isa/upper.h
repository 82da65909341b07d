// SPDX-License-Identifier: Apache-2.0
// Letter case of ASCII text, whatever the locale. Internal to isa.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace mtsim::isa {

inline char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

inline std::string to_upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), upper);
  return out;
}

inline bool same_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return upper(x) == upper(y); });
}

}  // namespace mtsim::isa
