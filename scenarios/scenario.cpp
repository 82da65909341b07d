// SPDX-License-Identifier: Apache-2.0
#include "scenarios/scenario.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scenarios/error.h"
#include "scenarios/table.h"

namespace mtsim::scenarios {

std::string Axis::text(std::int64_t value) const {
  if (!words.empty()) return words[static_cast<std::size_t>(value)];
  return is_dtype ? std::string(to_string(static_cast<DType>(value))) : std::to_string(value);
}

bool CellFilter::matches(const Point& at) const {
  for (std::size_t a = 0; a < where.size(); ++a) {
    if (!where[a].empty() && std::find(where[a].begin(), where[a].end(), at[a]) == where[a].end()) return false;
  }
  return true;
}

std::vector<ScenarioCell> Scenario::cells() const {
  static const std::vector<std::int64_t> k_one_table = {0};
  std::vector<ScenarioCell> cells;
  for (const std::int64_t table : tables ? axes[*tables].values : k_one_table) {
    for (const std::int64_t row : axes[rows].values) {
      for (const std::int64_t column : axes[columns].values) {
        ScenarioCell cell;
        for (const Axis& axis : axes) cell.at.push_back(axis.values.front());
        if (tables) cell.at[*tables] = table;
        cell.at[rows] = row;
        cell.at[columns] = column;
        for (const auto& [metric, numbers] : paper) {
          if (const auto number = numbers.find({table, row, column}); number != numbers.end())
            cell.paper[metric] = number->second;
        }
        for (const auto& note : notes) {
          if (note.cells.matches(cell.at)) cell.notes.push_back(note.text);
        }
        cells.push_back(std::move(cell));
      }
    }
  }
  return cells;
}

OperatorRequest Scenario::request(const ScenarioCell& cell, const std::vector<std::string>& variant_words) const {
  OperatorRequest request;
  request.op = op;
  const std::size_t dimensions = op->info().dimensions.size();
  request.spec = {Shape(cell.at.begin(), cell.at.begin() + static_cast<std::ptrdiff_t>(dimensions)),
                  static_cast<DType>(cell.at.back()), variant_words, tile};
  for (std::size_t a = dimensions; a < axes.size(); ++a) {
    const Axis& axis = axes[a];
    if (!axis.words.empty()) request.spec.variant.front() = axis.text(cell.at[a]);
    if (!axis.is_tile) continue;
    std::string& tiles = request.spec.tile;
    tiles += fmt::format("{}{}={}", tiles.empty() ? "" : ",", axis.name, cell.at[a]);
  }
  request.options.depth = depth;
  request.options.skip_pieces = skip_pieces;
  return request;
}

std::string Scenario::text(const Point& at) const {
  std::vector<std::string> words;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (!axes[a].is_named() && at[a] == 0) continue;  // as the dimension's help says
    if (!axes[a].is_dtype || axes[a].values.size() > 1)
      words.push_back(fmt::format("{}={}", axes[a].name, axes[a].text(at[a])));
  }
  return joined(words, " ");
}

std::vector<std::size_t> Scenario::fixed_axes() const {
  std::vector<std::size_t> fixed;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (a != rows && a != columns && a != tables) fixed.push_back(a);
  }
  return fixed;
}

bool Scenario::sweeps_tiles() const {
  return std::any_of(axes.begin(), axes.end(), [](const Axis& axis) { return axis.is_tile; });
}

Scenario Scenario::for_fit() const {
  Scenario scenario = *this;
  scenario.beside.reset();
  for (std::size_t a = 0; a < fit.where.size(); ++a) {
    if (!fit.where[a].empty()) scenario.axes[a].values = fit.where[a];
  }
  return scenario;
}

}  // namespace mtsim::scenarios
