// SPDX-License-Identifier: Apache-2.0
// What the tests of configuration files share: a folder of their own and the text of what is thrown.
#pragma once

#include <unistd.h>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "sim/config/yaml.h"

namespace mtsim::sim::test {

/// What ConfigError says, one line a mistake; "" when nothing is thrown.
template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const ConfigError& error) {
    REQUIRE_FALSE(error.diagnostics().empty());
    return error.what();
  }
  return "";
}

/// A folder that goes with its object.
class Folder {
 public:
  Folder() {
    static int count = 0;
    m_path = std::filesystem::temp_directory_path() /
             ("mtsim_config_" + std::to_string(::getpid()) + "_" + std::to_string(count++));
    std::filesystem::create_directories(m_path);
  }
  ~Folder() { std::filesystem::remove_all(m_path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string path(const std::string& name) const { return (m_path / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }

 private:
  std::filesystem::path m_path;
};

}  // namespace mtsim::sim::test
