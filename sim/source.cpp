// SPDX-License-Identifier: Apache-2.0
#include "sim/source.h"

#include <fmt/format.h>

namespace mtsim::sim {

std::string short_path(std::string_view file) {
  const auto name = file.rfind('/');
  if (name == std::string_view::npos || name == 0) return std::string(file);
  const auto folder = file.rfind('/', name - 1);
  return std::string(folder == std::string_view::npos ? file : file.substr(folder + 1));
}

std::string source_text(const std::source_location& place) {
  return place.line() == 0 ? "" : fmt::format("{}:{}", short_path(place.file_name()), place.line());
}

}  // namespace mtsim::sim
