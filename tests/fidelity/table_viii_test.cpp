// SPDX-License-Identifier: Apache-2.0
// Table VIII, FP32: two fitted numbers, 28 cells. The table's own noise is 3 to 5 %.
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace {

nlohmann::json run_table() {
  FILE* pipe = popen(MTSIM_COMMAND " run " MTSIM_SOURCE "/scenarios/paper/table_viii.yaml --json -", "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  std::array<char, 4096> part;
  for (std::size_t n; (n = fread(part.data(), 1, part.size(), pipe)) > 0;) text.append(part.data(), n);
  REQUIRE(pclose(pipe) == 0);
  return nlohmann::json::parse(text);
}

}  // namespace

TEST_CASE("Table VIII FP32 is predicted within 9 percent on average", "[fidelity]") {
  const auto table = run_table();
  CHECK(table.at("cases").size() == 28);
  CHECK(table.at("summary").at("latency_ms").at("cases") == 28);
  CHECK(table.at("summary").at("latency_ms").at("mape_percent").get<double>() <= 9.0);
  CHECK(std::abs(table.at("summary").at("latency_ms").at("worst_percent").get<double>()) <= 30.0);
  CHECK(table.at("depth") == "timing");
  int fitted = 0;
  for (const auto& [key, number] : table.at("machine").at("numbers").items())
    fitted += number.at("provenance") == "fitted";
  CHECK(fitted == 2);
}

TEST_CASE("our own sequence is never slower than the paper's", "[fidelity]") {
  for (const auto& cell : run_table().at("cases")) {
    INFO(cell.at("case").dump());
    CHECK(cell.at("beside").at("latency_ms").get<double>() <= cell.at("metrics").at("latency_ms").get<double>());
  }
}
