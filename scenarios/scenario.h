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
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/operator_runner.h"
#include "sim/config/yaml.h"

namespace mtsim::scenarios {

/// What a cell yields and a paper may report.
inline constexpr std::array<std::string_view, 3> k_metrics = {"latency_ms", "gmac_s", "ddr_gb_s"};

/// A dimension of the operator, a block size (a key of --tile), its dtype, or which of the words of its first variant
/// group.
struct Axis {
  std::string name;
  std::vector<std::int64_t> values;  // of dtype: DType as a number; of words: an index
  bool is_dtype = false;
  std::vector<std::string> words = {};  // of an axis of variants
  bool is_tile = false;
  bool is_named() const { return is_dtype || !words.empty(); }
  /// A value as the user writes it: "4096", "f16".
  std::string text(std::int64_t value) const;
};

/// A place in the grid: one value per axis.
using Point = std::vector<std::int64_t>;

struct CellFilter {
  std::vector<std::vector<std::int64_t>> where;  // per axis the values it matches; empty: all
  bool matches(const Point& at) const;
};

struct ScenarioNote {  // explains the cells it matches
  CellFilter cells;
  std::string text;
};

struct ScenarioCell {
  Point at;
  std::map<std::string, double> paper;  // metric -> the paper's value
  std::vector<std::string> notes;
};

struct Scenario {
  std::string path;
  std::string name;
  std::string title;
  std::string machine;  // name or path
  const Operator* op = nullptr;
  sim::Depth depth = sim::Depth::timing;
  std::vector<std::string> variant;                // compared with the paper; one word a group
  std::optional<std::vector<std::string>> beside;  // simulated as well and shown beside it
  std::string tile;                                // the same for all cells
  bool skip_pieces = false;                        // CaseOptions::skip_pieces
  std::vector<Axis> axes;             // the operator's dimensions, variant if the grid has it, block sizes, dtype
  isa::Place grid_place;              // in the file
  std::size_t rows = 0, columns = 1;  // axes of the printed table
  std::optional<std::size_t> tables;  // axis with one table a value; every other axis has one value
  std::string paper_source;
  std::string speedup_figure;  // the paper's figure that shows what `speedup_of` gains over the other tables
  std::optional<std::int64_t> speedup_of;  // a value of the tables' axis
  std::string utilisation_figure;  // the paper's figure that shows the latencies as percent of the peak; "": none
  // metric -> table, row and column value (table 0 without that axis) -> number, as the paper printed it
  std::map<std::string, std::map<std::array<std::int64_t, 3>, double>> paper;
  std::vector<ScenarioNote> notes;
  CellFilter fit;  // the cells `mtsim fit` looks at

  /// Every cell of the grid, table by table and row by row.
  std::vector<ScenarioCell> cells() const;
  /// The request for a cell.
  OperatorRequest request(const ScenarioCell& cell, const std::vector<std::string>& variant_words) const;
  /// "m=1024 n=256 k=4096", and dtype where it varies.
  std::string text(const Point& at) const;
  /// Axes that are neither rows nor columns nor tables.
  std::vector<std::size_t> fixed_axes() const;
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
