// SPDX-License-Identifier: Apache-2.0
// Reads scenario files and --set; scenario.cpp says what a scenario is.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "isa/diagnostic.h"
#include "kernels/library.h"
#include "scenarios/error.h"
#include "scenarios/files.h"
#include "scenarios/scenario.h"
#include "sim/config/scalar.h"

namespace mtsim::scenarios {

namespace {

using sim::YamlNode;

/// Runs a reader of a word that throws and makes that a complaint at the word's place.
template <class Parse>
void read_word(const YamlNode& node, const Parse& parse) {
  try {
    parse(node.as_string());
  } catch (const UsageError& error) {
    node.complain(error.what());
  } catch (const kernels::KernelError& error) {
    node.complain(error.what());
  }
}
template <class Parse>
void read_word(const YamlNode& root, std::string_view key, const Parse& parse) {
  if (const auto node = root.find(key)) read_word(*node, parse);
}

std::optional<std::int64_t> read_value(const YamlNode& node, const Operator& op, const Axis& axis) {
  if (axis.is_dtype) {
    std::optional<std::int64_t> value;
    read_word(node, [&](const std::string& word) { value = static_cast<std::int64_t>(parse_dtype(op, word)); });
    return value;
  }
  if (!axis.words.empty()) {
    const std::string word = node.as_string();
    const auto found = std::find(axis.words.begin(), axis.words.end(), word);
    if (found != axis.words.end()) return found - axis.words.begin();
    node.complain(fmt::format("unknown {} '{}'", axis.name, word),
                  fmt::format("known: {}", fmt::join(axis.words, ", ")));
    return std::nullopt;
  }
  const std::int64_t value = node.as_integer();
  if (value < 1) node.complain(fmt::format("{} is no size", value), "at least 1");
  if (axis.is_tile && value >= 1) {
    try {
      op.check_tile(fmt::format("{}={}", axis.name, value), op.info().dtypes.front());
    } catch (const kernels::KernelError& error) {
      node.complain(error.what());
    }
  }
  return value;
}

/// One value or a list of different ones.
std::vector<std::int64_t> read_values(const YamlNode& node, const Operator& op, const Axis& axis) {
  std::vector<std::int64_t> values;
  if (!node.is_sequence()) {
    if (const auto value = read_value(node, op, axis)) values.push_back(*value);
    return values;
  }
  for (std::size_t i = 0; i < node.size(); ++i) {
    const auto value = read_value(node.at(i), op, axis);
    if (!value) continue;
    if (std::find(values.begin(), values.end(), *value) != values.end())
      node.at(i).complain(fmt::format("{} is given twice", axis.text(*value)));
    values.push_back(*value);
  }
  if (node.size() == 0) node.complain("an empty list", "give at least one value");
  return values;
}

std::vector<std::string_view> axis_names(const Scenario& scenario) {
  std::vector<std::string_view> names;
  for (const Axis& axis : scenario.axes) names.push_back(axis.name);
  return names;
}

/// The index of the axis a key names.
void read_axis(const YamlNode& root, std::string_view key, const Scenario& scenario, std::size_t& index) {
  const auto node = root.find(key);
  if (!node) return;
  const std::string name = node->as_string();
  const auto names = axis_names(scenario);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    node->complain(fmt::format("unknown axis '{}'", name), fmt::format("known: {}", fmt::join(names, ", ")));
    return;
  }
  index = static_cast<std::size_t>(found - names.begin());
}

void read_grid(const YamlNode& root, Scenario& scenario) {
  const YamlNode grid = root.require("grid");
  const YamlNode dtype = root.require("dtype");
  if (grid.is_null() || dtype.is_null()) return;
  scenario.grid_place = grid.place();
  for (std::size_t a = 0; a + 1 < scenario.axes.size(); ++a) {
    Axis& axis = scenario.axes[a];
    if (axis.is_tile) continue;  // read already
    if (axis.is_named()) {
      axis.values = read_values(*grid.find(axis.name), *scenario.op, axis);
      continue;
    }
    const auto usual = scenario.op->info().dimensions[a].value;
    if (const auto values = usual ? grid.find(axis.name) : grid.require(axis.name); values && !values->is_null()) {
      axis.values = read_values(*values, *scenario.op, axis);
    } else if (usual) {
      axis.values = {*usual};
    }
  }
  scenario.axes.back().values = read_values(dtype, *scenario.op, scenario.axes.back());
  read_axis(root, "rows", scenario, scenario.rows);
  read_axis(root, "columns", scenario, scenario.columns);
  if (root.find("tables")) read_axis(root, "tables", scenario, scenario.tables.emplace());
  if (scenario.rows == scenario.columns || scenario.rows == scenario.tables || scenario.columns == scenario.tables) {
    root.complain("two of rows, columns and tables are the same axis",
                  fmt::format("use different ones of {}", fmt::join(axis_names(scenario), ", ")));
    return;
  }
  for (const std::size_t a : scenario.fixed_axes()) {
    if (scenario.axes[a].values.size() > 1) {
      (scenario.axes[a].is_dtype ? dtype : grid)
          .complain(fmt::format("{} has {} values but is neither rows nor columns nor tables", scenario.axes[a].name,
                                scenario.axes[a].values.size()),
                    "give it one value");
    }
  }
}

std::string texts(const Axis& axis) {
  std::vector<std::string> words;
  for (const std::int64_t value : axis.values) words.push_back(axis.text(value));
  return fmt::format("its values: {}", fmt::join(words, ", "));
}

/// The value of `axis` a key of `node` stands for; complains when it is none.
std::optional<std::int64_t> value_of_key(const YamlNode& node, const std::string& key, const Axis& axis,
                                         std::string_view what) {
  for (const std::int64_t value : axis.values) {
    if (axis.is_named() ? key == axis.text(value) : sim::scan_integer(key).value == value) return value;
  }
  node.complain_about_key(key, fmt::format("'{}' is no value of the {}' axis {}", key, what, axis.name), texts(axis));
  return std::nullopt;
}

/// Lines of one table: one a row, one number a column.
void read_table(const YamlNode& node, Scenario& scenario, const std::string& metric, std::int64_t table) {
  const auto& columns = scenario.axes[scenario.columns].values;
  for (const std::string& key : node.keys()) {
    const auto row = value_of_key(node, key, scenario.axes[scenario.rows], "rows");
    if (!row) continue;
    const YamlNode values = *node.find(key);
    if (values.size() != columns.size()) {
      values.complain(fmt::format("{} numbers for {} columns", values.size(), columns.size()), "one number a column");
      continue;
    }
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const double number = values.at(c).as_number();
      if (!(number > 0)) values.at(c).complain(fmt::format("{:g} is no {}", number, metric), "a number above 0");
      scenario.paper[metric][{table, *row, columns[c]}] = number;
    }
  }
}

void read_paper(const YamlNode& root, Scenario& scenario) {
  const auto paper = root.find("paper");
  if (!paper) return;
  scenario.paper_source = paper->require("source").as_string();
  if (const auto figure = paper->find("utilisation_figure")) scenario.utilisation_figure = figure->as_string();
  if (const auto figure = paper->find("speedup_figure")) {
    scenario.speedup_figure = figure->as_string();
    const YamlNode of = paper->require("speedup_of");
    if (!of.is_null() && !scenario.tables) {
      of.complain("speed-ups are those of one table over the others", "give the scenario 'tables: AXIS'");
    } else if (!of.is_null()) {
      const Axis& axis = scenario.axes[*scenario.tables];
      scenario.speedup_of = read_value(of, *scenario.op, axis);
      if (std::find(axis.values.begin(), axis.values.end(), scenario.speedup_of) == axis.values.end())
        of.complain(fmt::format("there is no table {}", of.as_string()), texts(axis));
    }
  }
  for (const std::string_view metric : k_metrics) {
    const auto node = paper->find(metric);
    if (!node) continue;
    if (!scenario.tables) {
      read_table(*node, scenario, std::string(metric), 0);
      continue;
    }
    for (const std::string& key : node->keys()) {
      const auto table = value_of_key(*node, key, scenario.axes[*scenario.tables], "tables");
      if (table) read_table(*node->find(key), scenario, std::string(metric), *table);
    }
  }
}

/// {m: 1024, n: [256, 512]}: which cells an entry is about.
CellFilter read_filter(const YamlNode& node, const Scenario& scenario) {
  CellFilter filter;
  for (const Axis& axis : scenario.axes) {
    auto& wanted = filter.where.emplace_back();
    const auto values = node.find(axis.name);
    if (!values) continue;
    wanted = read_values(*values, *scenario.op, axis);
    for (const std::int64_t value : wanted) {
      if (std::find(axis.values.begin(), axis.values.end(), value) == axis.values.end())
        values->complain(fmt::format("no cell has {} = {}", axis.name, axis.text(value)), texts(axis));
    }
  }
  return filter;
}

void read_notes(const YamlNode& root, Scenario& scenario) {
  const auto notes = root.find("notes");
  if (!notes) return;
  for (std::size_t i = 0; i < notes->size(); ++i) {
    const YamlNode entry = notes->at(i);
    ScenarioNote note;
    note.text = entry.require("note").as_string();
    note.cells = read_filter(entry, scenario);
    scenario.notes.push_back(std::move(note));
  }
}

/// Block sizes: a text that all cells have, or a mapping of axes.
void read_tile(const YamlNode& root, Scenario& scenario) {
  const auto node = root.find("tile");
  if (!node || !node->is_mapping()) return;
  for (const std::string& key : node->keys()) {
    Axis axis;
    axis.name = key;
    axis.is_tile = true;
    axis.values = read_values(*node->find(key), *scenario.op, axis);
    scenario.axes.push_back(std::move(axis));
  }
}

/// What depends on the operator; keys of a scenario without one are left unread.
void read_operator(const YamlNode& root, Scenario& scenario) {
  const Operator& op = *scenario.op;
  for (const Dimension& dimension : op.info().dimensions) scenario.axes.push_back({std::string(dimension.name), {}});
  if (const auto grid = root.find("grid"); grid && grid->is_mapping() && !op.info().variants.empty()) {
    const auto& words = op.info().variants.front().words;
    if (grid->find("variant")) scenario.axes.push_back({"variant", {}, false, {words.begin(), words.end()}});
  }
  read_tile(root, scenario);
  scenario.axes.push_back({"dtype", {}, true});
  scenario.variant = parse_variant(op, "");
  read_word(root, "variant", [&](const std::string& words) { scenario.variant = parse_variant(op, words); });
  read_word(root, "beside", [&](const std::string& words) { scenario.beside = parse_variant(op, words); });
  read_grid(root, scenario);
  if (const auto tile = root.find("tile"); tile && !tile->is_mapping())
    read_word(*tile, [&](const std::string& text) {
      for (const std::int64_t dtype : scenario.axes.back().values) op.check_tile(text, static_cast<DType>(dtype));
      scenario.tile = text;
    });
  read_paper(root, scenario);
  read_notes(root, scenario);
  if (const auto fit = root.find("fit")) scenario.fit = read_filter(*fit, scenario);
}

/// "[1024, 2048]" or "1024" of --set.
std::vector<std::int64_t> parse_values(const Operator& op, const Axis& axis, const std::string& text) {
  if (text == "null" || text == "~") {
    throw UsageError(fmt::format("--set {}={}: is no {}; give one, or a list such as \"{}=[256, 512]\"", axis.name,
                                 text, axis.is_dtype ? "dtype" : "size", axis.name));
  }
  const auto document = sim::YamlDocument::parse(text, "--set " + axis.name);
  auto values = read_values(document.root(), op, axis);
  document.finish();
  return values;
}

}  // namespace

std::vector<std::string_view> Scenario::keys() const {
  auto keys = axis_names(*this);
  keys.insert(keys.end() - 1, {"depth", "variant", "beside", "tile"});
  keys.push_back("machine");
  return keys;
}

bool Scenario::set(const std::string& key, const std::string& value) {
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (key != axes[a].name) continue;
    const auto before = axes[a].values;
    axes[a].values = parse_values(*op, axes[a], value);
    const auto fixed = fixed_axes();
    if (std::find(fixed.begin(), fixed.end(), a) != fixed.end() && axes[a].values != before) {
      if (axes[a].values.size() > 1)
        throw UsageError(fmt::format("--set {}={}: the table has one {}; give one value", key, value, key));
      paper.clear();  // the paper's numbers belong to the scenario's own value
    }
    return true;
  }
  if (key == "depth") {
    depth = parse_depth(value);
  } else if (key == "variant") {
    variant = parse_variant(*op, value);
  } else if (key == "beside") {
    beside = value == "none" ? std::nullopt : std::optional(parse_variant(*op, value));
  } else if (key == "tile") {
    for (const std::int64_t dtype : axes.back().values) op->check_tile(value, static_cast<DType>(dtype));
    tile = value;
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
  if (const auto skip = root.find("skip_pieces")) scenario.skip_pieces = skip->as_boolean();
  read_word(root, "depth", [&](const std::string& word) { scenario.depth = parse_depth(word); });
  const YamlNode operation = root.require("operator");
  if (!operation.is_null())
    read_word(operation, [&](const std::string& name) { scenario.op = &require_operator(name); });
  if (scenario.op != nullptr) {
    read_operator(root, scenario);
  } else {
    root.keys();  // what they mean depends on the operator: nothing is said about them
  }
  document.finish();
  return scenario;
}

}  // namespace mtsim::scenarios
