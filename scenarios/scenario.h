// SPDX-License-Identifier: Apache-2.0
// A scenario file: an operator over a grid of shapes, the paper's numbers for them, and what explains the misses.
// docs/scenarios.md describes every key.
//
//   Scenario scenario = load_scenario("scenarios/paper/table_viii.yaml");
//   scenario.set("m", "[1024]");
//   for (const ScenarioCell& cell : scenario.cells()) ...
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/gemm_runner.h"
#include "sim/config/yaml.h"

namespace mtsim::scenarios {

enum class Axis : std::uint8_t { m, n, k };
inline constexpr int k_axes = 3;
inline constexpr std::array<std::string_view, k_axes> k_axis_names = {"m", "n", "k"};

/// What a cell yields and a paper may report.
inline constexpr std::array<std::string_view, 2> k_metrics = {"latency_ms", "gmac_s"};

struct ScenarioNote {                                   // explains the cells it matches
  std::array<std::vector<std::int64_t>, k_axes> where;  // per axis the values it matches; empty: all
  std::string text;
  bool matches(const kernels::GemmShape& shape) const;
};

struct ScenarioCell {
  kernels::GemmShape shape;
  std::map<std::string, double> paper;  // metric -> the paper's value
  std::vector<std::string> notes;
};

struct Scenario {
  std::string path;
  std::string name;
  std::string title;
  std::string machine;  // name or path
  std::string dtype;
  sim::Depth depth = sim::Depth::timing;
  GemmSequence sequence;               // compared with the paper
  std::optional<GemmSequence> beside;  // simulated as well and shown beside it
  kernels::GemmTiles tiles;
  std::array<std::vector<std::int64_t>, k_axes> grid;
  isa::Place grid_place;                   // in the file
  Axis rows = Axis::m, columns = Axis::n;  // of the printed table; the third axis has one value
  std::string paper_source;
  // metric -> row value -> column value -> number, as the paper printed it
  std::map<std::string, std::map<std::int64_t, std::map<std::int64_t, double>>> paper;
  std::vector<ScenarioNote> notes;

  /// Every cell of the grid, row by row.
  std::vector<ScenarioCell> cells() const;
  /// Changes one key as --set does: an axis ("m", "[1024, 2048]" or "1024"), depth, variant, beside, tile, dtype or
  /// machine. Throws UsageError for a wrong value; false when `key` is no key of a scenario.
  bool set(const std::string& key, const std::string& value);
  static std::vector<std::string_view> keys();
};

/// Throws sim::ConfigError with every mistake, file:line:col.
Scenario load_scenario(const std::string& path);

}  // namespace mtsim::scenarios
