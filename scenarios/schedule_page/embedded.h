// SPDX-License-Identifier: Apache-2.0
// The files of the page that are not C++, as CMake built them in.
#pragma once

#include <span>
#include <string_view>

namespace mtsim::scenarios {

struct PageFile {
  std::string_view name;
  std::string_view text;
};

/// In the order in which they stand in the page.
std::span<const PageFile> page_files();

}  // namespace mtsim::scenarios
