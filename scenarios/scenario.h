// SPDX-License-Identifier: Apache-2.0
// A scenario file: an operator over a grid of shapes and element types, the paper's numbers for them, and what explains
// the misses. docs/scenarios.md describes every key.
//
//   Scenario scenario = load_scenario("scenarios/paper/table_viii.yaml");
//   scenario.set("m", "[1024]");
//   for (const ScenarioCell& cell : scenario.cells()) ...
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/grid.h"
#include "scenarios/operator_runner.h"
#include "sim/config/yaml.h"

namespace mtsim::scenarios {

/// What a cell yields and a paper may report.
inline constexpr std::array<std::string_view, 3> k_metrics = {"latency_ms", "gmac_s", "ddr_gb_s"};

/// Its axes: the operator's dimensions, variant if the grid has it (the words of the first variant group), block sizes
/// (keys of --tile), dtype.
struct Scenario : GridScenario {
  const Operator* op = nullptr;
  sim::Depth depth = sim::Depth::timing;
  std::vector<std::string> variant;                // compared with the paper; one word a group
  std::optional<std::vector<std::string>> beside;  // simulated as well and shown beside it
  std::string tile;                                // the same for all cells
  bool skip_pieces = false;                        // CaseOptions::skip_pieces
  std::string speedup_figure;  // the paper's figure that shows what `speedup_of` gains over the other tables
  std::optional<std::int64_t> speedup_of;  // a value of the tables' axis
  std::string utilisation_figure;  // the paper's figure that shows the latencies as percent of the peak; "": none

  /// The request for a cell.
  OperatorRequest request(const ScenarioCell& cell, const std::vector<std::string>& variant_words) const;
  /// Only the cells of `fit`, without the variant beside.
  Scenario for_fit() const;
  /// Whether block sizes are axes: cells that do not fit are then results.
  bool sweeps_tiles() const;

  /// Changes one key as --set does: an axis ("m", "[1024, 2048]" or "1024"; "dtype", "f16"), depth, variant, beside,
  /// tile or machine. Throws UsageError for a wrong value; false when `key` is no key of the scenario.
  bool set(const std::string& key, const std::string& value);
  std::vector<std::string_view> keys() const;
};

/// Throws sim::ConfigError with every mistake, file:line:col.
Scenario load_scenario(const std::string& path);

}  // namespace mtsim::scenarios
