// SPDX-License-Identifier: Apache-2.0
#include "scenarios/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/operator.h"
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

std::vector<ScenarioCell> GridScenario::cells() const {
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

std::string GridScenario::text(const Point& at) const {
  std::vector<std::string> words;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (!axes[a].is_named() && at[a] == 0) continue;  // as the dimension's help says
    if (axes[a].words.size() == 1) continue;          // nothing else it could be
    if (!axes[a].is_dtype || axes[a].values.size() > 1)
      words.push_back(fmt::format("{}={}", axes[a].name, axes[a].text(at[a])));
  }
  return joined(words, " ");
}

std::vector<std::size_t> GridScenario::fixed_axes() const {
  std::vector<std::size_t> fixed;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (a != rows && a != columns && a != tables) fixed.push_back(a);
  }
  return fixed;
}

std::string GridScenario::cells_text(const ScenarioNote& note) const {
  std::vector<std::string> words;
  for (std::size_t a = 0; a < note.cells.where.size(); ++a) {
    std::vector<std::string> values;
    for (const std::int64_t value : note.cells.where[a]) values.push_back(axes[a].text(value));
    if (!values.empty()) words.push_back(fmt::format("{}={}", axes[a].name, joined(values, "|")));
  }
  return words.empty() ? "" : " (" + joined(words) + ")";
}

std::vector<Axis> restricted(std::vector<Axis> axes, const CellFilter& filter) {
  for (std::size_t a = 0; a < filter.where.size(); ++a) {
    if (!filter.where[a].empty()) axes[a].values = filter.where[a];
  }
  return axes;
}

void MetricSummary::add(double error_percent, std::size_t cell) {
  mape_percent += (std::abs(error_percent) - mape_percent) / (cells + 1);
  if (cells++ > 0 && std::abs(error_percent) <= std::abs(worst_percent)) return;
  worst_percent = error_percent;
  worst_cell = cell;
}

}  // namespace mtsim::scenarios
