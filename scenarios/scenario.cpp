// SPDX-License-Identifier: Apache-2.0
#include "scenarios/scenario.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/error.h"
#include "scenarios/files.h"
#include "scenarios/table.h"
#include "sim/config/scalar.h"

namespace mtsim::scenarios {

namespace {

using sim::YamlNode;

std::size_t index(Axis axis) { return static_cast<std::size_t>(axis); }
std::int64_t value_of(const kernels::GemmShape& shape, Axis axis) {
  return std::array{shape.m, shape.n, shape.k}[index(axis)];
}

std::int64_t read_size(const YamlNode& node) {
  const std::int64_t value = node.as_integer();
  if (value < 1) node.complain(fmt::format("{} is no size", value), "at least 1");
  return value;
}

/// One size or a list of different ones.
std::vector<std::int64_t> read_sizes(const YamlNode& node) {
  if (!node.is_sequence()) return {read_size(node)};
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < node.size(); ++i) {
    const std::int64_t size = read_size(node.at(i));
    if (std::find(sizes.begin(), sizes.end(), size) != sizes.end())
      node.at(i).complain(fmt::format("{} is given twice", size));
    sizes.push_back(size);
  }
  if (sizes.empty()) node.complain("an empty list", "give at least one size");
  return sizes;
}

std::optional<Axis> read_axis(const YamlNode& node) {
  const std::string name = node.as_string();
  for (int a = 0; a < k_axes; ++a) {
    if (name == k_axis_names[static_cast<std::size_t>(a)]) return static_cast<Axis>(a);
  }
  node.complain(fmt::format("unknown axis '{}'", name), "known: m, n, k");
  return std::nullopt;
}

/// Runs a reader of a word that throws UsageError and makes that a complaint at the word's place.
template <class Value, class Parse>
void read_word(const YamlNode& root, std::string_view key, Value& value, const Parse& parse) {
  const auto node = root.find(key);
  if (!node) return;
  try {
    value = parse(node->as_string());
  } catch (const UsageError& error) {
    node->complain(error.what());
  } catch (const kernels::KernelError& error) {
    node->complain(error.what());
  }
}

void read_grid(const YamlNode& root, Scenario& scenario) {
  const YamlNode grid = root.require("grid");
  if (grid.is_null()) return;
  scenario.grid_place = grid.place();
  for (std::size_t a = 0; a < k_axes; ++a) {
    const YamlNode axis = grid.require(k_axis_names[a]);
    if (!axis.is_null()) scenario.grid[a] = read_sizes(axis);
  }
  const auto rows_node = root.find("rows"), columns_node = root.find("columns");
  const auto rows = rows_node ? read_axis(*rows_node) : scenario.rows;
  const auto columns = columns_node ? read_axis(*columns_node) : scenario.columns;
  if (!rows || !columns) return;
  scenario.rows = *rows;
  scenario.columns = *columns;
  if (scenario.rows == scenario.columns) root.complain("rows and columns are the same axis", "use two of m, n, k");
  const auto third =
      static_cast<std::size_t>(k_axes - static_cast<int>(scenario.rows) - static_cast<int>(scenario.columns));
  if (scenario.rows != scenario.columns && scenario.grid[third].size() > 1) {
    grid.complain(fmt::format("{} has {} values but is neither rows nor columns", k_axis_names[third],
                              scenario.grid[third].size()),
                  "give it one value");
  }
}

void read_paper(const YamlNode& root, Scenario& scenario) {
  const auto paper = root.find("paper");
  if (!paper) return;
  scenario.paper_source = paper->require("source").as_string();
  const auto& rows = scenario.grid[index(scenario.rows)];
  const auto& columns = scenario.grid[index(scenario.columns)];
  for (const std::string_view metric : k_metrics) {
    const auto table = paper->find(metric);
    if (!table) continue;
    for (const std::string& key : table->keys()) {
      const auto row = sim::scan_integer(key).value;
      if (!row || std::find(rows.begin(), rows.end(), *row) == rows.end()) {
        table->complain_about_key(
            key, fmt::format("'{}' is no value of the rows' axis {}", key, k_axis_names[index(scenario.rows)]),
            fmt::format("its values: {}", fmt::join(rows, ", ")));
        continue;
      }
      const YamlNode values = *table->find(key);
      if (values.size() != columns.size()) {
        values.complain(fmt::format("{} numbers for {} columns", values.size(), columns.size()), "one number a column");
        continue;
      }
      for (std::size_t c = 0; c < columns.size(); ++c) {
        const double number = values.at(c).as_number();
        if (!(number > 0)) values.at(c).complain(fmt::format("{:g} is no {}", number, metric), "a number above 0");
        scenario.paper[std::string(metric)][*row][columns[c]] = number;
      }
    }
  }
}

void read_notes(const YamlNode& root, Scenario& scenario) {
  const auto notes = root.find("notes");
  if (!notes) return;
  for (std::size_t i = 0; i < notes->size(); ++i) {
    const YamlNode entry = notes->at(i);
    ScenarioNote note;
    note.text = entry.require("note").as_string();
    for (std::size_t a = 0; a < k_axes; ++a) {
      const auto sizes = entry.find(k_axis_names[a]);
      if (!sizes) continue;
      note.where[a] = read_sizes(*sizes);
      for (const std::int64_t size : note.where[a]) {
        if (std::find(scenario.grid[a].begin(), scenario.grid[a].end(), size) == scenario.grid[a].end()) {
          sizes->complain(fmt::format("no cell has {} = {}", k_axis_names[a], size),
                          fmt::format("its values: {}", fmt::join(scenario.grid[a], ", ")));
        }
      }
    }
    scenario.notes.push_back(std::move(note));
  }
}

/// "[1024, 2048]" or "1024" of --set.
std::vector<std::int64_t> parse_sizes(const std::string& key, const std::string& text) {
  std::vector<std::int64_t> sizes;
  if (text == "null" || text == "~") {
    throw UsageError(
        fmt::format("--set {}={}: is no size; give one, or a list such as \"{}=[256, 512]\"", key, text, key));
  }
  const auto document = sim::YamlDocument::parse(text, "--set " + key);
  sizes = read_sizes(document.root());
  document.finish();
  return sizes;
}

std::string checked_dtype(const std::string& dtype) {
  require_gemm_dtype(dtype);
  return dtype;
}

}  // namespace

bool ScenarioNote::matches(const kernels::GemmShape& shape) const {
  for (std::size_t a = 0; a < k_axes; ++a) {
    const std::int64_t value = value_of(shape, static_cast<Axis>(a));
    if (!where[a].empty() && std::find(where[a].begin(), where[a].end(), value) == where[a].end()) return false;
  }
  return true;
}

std::vector<ScenarioCell> Scenario::cells() const {
  std::vector<ScenarioCell> cells;
  const auto third = static_cast<std::size_t>(k_axes - static_cast<int>(rows) - static_cast<int>(columns));
  for (const std::int64_t row : grid[index(rows)]) {
    for (const std::int64_t column : grid[index(columns)]) {
      std::array<std::int64_t, k_axes> at{};
      at[index(rows)] = row;
      at[index(columns)] = column;
      at[third] = grid[third].front();
      ScenarioCell cell;
      cell.shape = {at[0], at[1], at[2]};
      for (const auto& [metric, table] : paper) {
        const auto line = table.find(row);
        if (line == table.end()) continue;
        if (const auto number = line->second.find(column); number != line->second.end())
          cell.paper[metric] = number->second;
      }
      for (const auto& note : notes) {
        if (note.matches(cell.shape)) cell.notes.push_back(note.text);
      }
      cells.push_back(std::move(cell));
    }
  }
  return cells;
}

std::vector<std::string_view> Scenario::keys() {
  return {"m", "n", "k", "depth", "variant", "beside", "tile", "dtype", "machine"};
}

bool Scenario::set(const std::string& key, const std::string& value) {
  for (std::size_t a = 0; a < k_axes; ++a) {
    if (key != k_axis_names[a]) continue;
    grid[a] = parse_sizes(key, value);
    if (static_cast<Axis>(a) != rows && static_cast<Axis>(a) != columns) {
      if (grid[a].size() > 1)
        throw UsageError(fmt::format("--set {}={}: the table has one {}; give one value", key, value, key));
      paper.clear();  // the paper's numbers belong to the scenario's own value
    }
    return true;
  }
  if (key == "depth") {
    depth = parse_depth(value);
  } else if (key == "variant") {
    sequence = parse_sequence(value);
  } else if (key == "beside") {
    beside = value == "none" ? std::nullopt : std::optional(parse_sequence(value));
  } else if (key == "tile") {
    tiles = kernels::parse_gemm_tiles(value, kernels::DType::f32);
  } else if (key == "dtype") {
    dtype = checked_dtype(value);
  } else if (key == "machine") {
    machine = value;
  } else {
    return false;
  }
  return true;
}

Scenario load_scenario(const std::string& path) {
  const auto document = sim::YamlDocument::load(path);
  const YamlNode root = document.root();
  Scenario scenario;
  scenario.path = path;
  if (!root.is_mapping()) {
    root.complain("a scenario is a mapping", "start with 'name: ...'");
    document.finish();
  }
  scenario.name = root.require("name").as_string();
  scenario.title = root.require("title").as_string();
  const YamlNode machine = root.require("machine");
  if (!machine.is_null()) {
    scenario.machine = machine.as_string();
    if (scenario.machine.ends_with(".yaml")) scenario.machine = relative_to(path, scenario.machine);
    try {
      sim::Machine::load(scenario.machine);
    } catch (const sim::ConfigError& error) {
      machine.complain(error.what());
    }
  }
  const YamlNode operation = root.require("operator");
  if (!operation.is_null() && operation.as_string() != "gemm") {
    operation.complain(fmt::format("unknown operator '{}'", operation.as_string()), "known: gemm");
  }
  root.require("dtype");
  read_word(root, "dtype", scenario.dtype, checked_dtype);
  read_word(root, "depth", scenario.depth, parse_depth);
  read_word(root, "variant", scenario.sequence, parse_sequence);
  read_word(root, "beside", scenario.beside, parse_sequence);
  read_word(root, "tile", scenario.tiles,
            [](const std::string& text) { return kernels::parse_gemm_tiles(text, kernels::DType::f32); });
  read_grid(root, scenario);
  read_paper(root, scenario);
  read_notes(root, scenario);
  document.finish();
  return scenario;
}

}  // namespace mtsim::scenarios
