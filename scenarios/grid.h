// SPDX-License-Identifier: Apache-2.0
// A grid of cells under named axes, laid out in tables as a paper prints them, with the paper's numbers and notes: what
// every kind of scenario has.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "isa/diagnostic.h"

namespace mtsim::scenarios {

/// Whole numbers, an element type, or words.
struct Axis {
  std::string name;
  std::vector<std::int64_t> values;  // of dtype: DType as a number; of words: an index
  bool is_dtype = false;
  std::vector<std::string> words = {};  // of an axis of variants, models, plans
  bool is_tile = false;                 // a block size of an operator
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

struct GridScenario {
  std::string path;
  std::string name;
  std::string title;
  std::string machine;  // name or path
  std::vector<Axis> axes;
  isa::Place grid_place;              // in the file
  std::size_t rows = 0, columns = 1;  // axes of the printed table
  std::optional<std::size_t> tables;  // axis with one table a value; every other axis has one value
  std::string paper_source;
  // metric -> table, row and column value (table 0 without that axis) -> number, as the paper printed it
  std::map<std::string, std::map<std::array<std::int64_t, 3>, double>> paper;
  std::vector<ScenarioNote> notes;
  CellFilter fit;  // the cells `mtsim fit` looks at

  /// Every cell, table by table and row by row.
  std::vector<ScenarioCell> cells() const;
  /// "m=1024 n=256 k=4096", and dtype where it varies.
  std::string text(const Point& at) const;
  /// Axes that are neither rows nor columns nor tables.
  std::vector<std::size_t> fixed_axes() const;
  /// " (m=1024, n=256|512)", or "" for a note about all cells.
  std::string cells_text(const ScenarioNote& note) const;
};

/// The axes with only the values a filter names.
std::vector<Axis> restricted(std::vector<Axis> axes, const CellFilter& filter);

struct MetricSummary {
  double mape_percent = 0;     // mean absolute error
  double worst_percent = 0;    // the signed error of the worst cell
  std::size_t worst_cell = 0;  // its index
  int cells = 0;

  void add(double error_percent, std::size_t cell);
};

}  // namespace mtsim::scenarios
