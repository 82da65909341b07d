// SPDX-License-Identifier: Apache-2.0
// Inputs that random bytes would never be: a sound file with some bytes changed and its end cut off.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "models/error.h"

namespace mtsim::models {

inline void require(bool condition) {
  if (!condition) std::abort();
}

/// `file` with the bytes that `patches` names: two bytes of place and one of value each; an odd byte at the end cuts as
/// many off.
inline std::string patched(std::string file, std::string_view patches) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(patches[i]); };
  std::size_t i = 0;
  for (; i + 3 <= patches.size(); i += 3) {
    const std::size_t place = byte(i) | std::size_t{byte(i + 1)} << 8;
    if (!file.empty()) file[place % file.size()] = patches[i + 2];
  }
  if (i < patches.size()) file.resize(file.size() - byte(i) % (file.size() + 1));
  return file;
}

/// A result or a ModelError that says something, nothing else.
template <class Action>
void run(Action action) {
  try {
    action();
  } catch (const ModelError& error) {
    require(*error.what() != '\0');
  }
}

template <class T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace mtsim::models
