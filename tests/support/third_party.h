// SPDX-License-Identifier: Apache-2.0
// Third-party checkpoints and what other programs made of them. A test that uses them is skipped where they are absent.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace mtsim::test {

/// The path of a folder of the third-party data, or nothing after saying so: the test is skipped then.
inline std::optional<std::string> test_data(const std::string& name) {
  const char* given = std::getenv("MTSIM_TEST_DATA");
  const std::string path = std::string(given != nullptr ? given : MTSIM_DEFAULT_TEST_DATA) + "/" + name;
  if (std::filesystem::exists(path)) return path;
  WARN("skipped: there is no " << path << "; set MTSIM_TEST_DATA to the folder of the third-party checkpoints");
  return std::nullopt;
}

/// A step of a greedy run of llama2.c.
struct ReferenceStep {
  std::int64_t position = 0, token = 0, next = 0;
  bool forced = false;  // the next token is the prompt's
};

inline std::vector<ReferenceStep> read_steps(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);  // the names of the columns
  std::vector<ReferenceStep> steps;
  while (std::getline(file, line)) {
    std::istringstream columns(line);
    ReferenceStep step;
    int forced = 0;
    columns >> step.position >> step.token >> step.next >> forced;
    REQUIRE(columns);
    step.forced = forced != 0;
    steps.push_back(step);
  }
  return steps;
}

/// Logits by position.
inline std::map<std::int64_t, std::vector<double>> read_logits(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::map<std::int64_t, std::vector<double>> logits;
  while (std::getline(file, line)) {
    if (line.starts_with('#')) continue;
    std::istringstream numbers(line);
    std::int64_t position = 0;
    numbers >> position;
    for (double value = 0; numbers >> value;) logits[position].push_back(value);
  }
  return logits;
}

}  // namespace mtsim::test
