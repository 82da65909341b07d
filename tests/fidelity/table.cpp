// SPDX-License-Identifier: Apache-2.0
#include "table.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <map>

namespace mtsim::test {

const nlohmann::json& run_table(const std::string& name) {
  static std::map<std::string, nlohmann::json> tables;
  if (const auto known = tables.find(name); known != tables.end()) return known->second;
  const std::string command = MTSIM_COMMAND " run " MTSIM_SOURCE "/scenarios/paper/" + name + ".yaml --json -";
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  std::array<char, 4096> part;
  for (std::size_t n; (n = fread(part.data(), 1, part.size(), pipe)) > 0;) text.append(part.data(), n);
  REQUIRE(pclose(pipe) == 0);
  return tables[name] = nlohmann::json::parse(text);
}

}  // namespace mtsim::test
