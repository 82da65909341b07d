// SPDX-License-Identifier: Apache-2.0
#include "scenarios/grid_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scenarios/files.h"
#include "sim/config/machine.h"
#include "sim/config/scalar.h"

namespace mtsim::scenarios {

using sim::YamlNode;

std::vector<std::int64_t> GridReader::values(const YamlNode& node, const Axis& axis) const {
  std::vector<std::int64_t> values;
  if (!node.is_sequence()) {
    if (const auto value = m_read_value(node, axis)) values.push_back(*value);
    return values;
  }
  for (std::size_t i = 0; i < node.size(); ++i) {
    const auto value = m_read_value(node.at(i), axis);
    if (!value) continue;
    if (std::find(values.begin(), values.end(), *value) != values.end())
      node.at(i).complain(fmt::format("{} is given twice", axis.text(*value)));
    values.push_back(*value);
  }
  if (node.size() == 0) node.complain("an empty list", "give at least one value");
  return values;
}

std::vector<std::string_view> axis_names(const GridScenario& scenario) {
  std::vector<std::string_view> names;
  for (const Axis& axis : scenario.axes) names.push_back(axis.name);
  return names;
}

/// The index of the axis a key names.
void GridReader::axis(const YamlNode& root, std::string_view key, std::size_t& index) const {
  const auto node = root.find(key);
  if (!node) return;
  const std::string name = node->as_string();
  const auto names = axis_names(m_scenario);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    node->complain(fmt::format("unknown axis '{}'", name), fmt::format("known: {}", fmt::join(names, ", ")));
    return;
  }
  index = static_cast<std::size_t>(found - names.begin());
}

std::string values_text(const Axis& axis) {
  std::vector<std::string> words;
  for (const std::int64_t value : axis.values) words.push_back(axis.text(value));
  return fmt::format("its values: {}", fmt::join(words, ", "));
}

/// The value of `axis` a key of `node` stands for; complains when it is none.
std::optional<std::int64_t> GridReader::key_value(const YamlNode& node, const std::string& key, const Axis& axis,
                                                  std::string_view what) const {
  for (const std::int64_t value : axis.values) {
    if (axis.is_named() ? key == axis.text(value) : sim::scan_integer(key).value == value) return value;
  }
  node.complain_about_key(key, fmt::format("'{}' is no value of the {}' axis {}", key, what, axis.name),
                          values_text(axis));
  return std::nullopt;
}

/// Lines of one table: one a row, one number a column.
void GridReader::table(const YamlNode& node, const std::string& metric, std::int64_t table, bool may_lack) {
  const auto& columns = m_scenario.axes[m_scenario.columns].values;
  for (const std::string& key : node.keys()) {
    const auto row = key_value(node, key, m_scenario.axes[m_scenario.rows], "rows");
    if (!row) continue;
    const YamlNode values = *node.find(key);
    if (values.size() != columns.size()) {
      values.complain(fmt::format("{} numbers for {} columns", values.size(), columns.size()), "one number a column");
      continue;
    }
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (may_lack && values.at(c).is_null()) continue;
      const double number = values.at(c).as_number();
      if (!(number > 0)) values.at(c).complain(fmt::format("{:g} is no {}", number, metric), "a number above 0");
      m_scenario.paper[metric][{table, *row, columns[c]}] = number;
    }
  }
}

CellFilter GridReader::filter(const YamlNode& node) const {
  CellFilter filter;
  for (const Axis& axis : m_scenario.axes) {
    auto& wanted = filter.where.emplace_back();
    const auto given = node.find(axis.name);
    if (!given) continue;
    wanted = values(*given, axis);
    for (const std::int64_t value : wanted) {
      if (std::find(axis.values.begin(), axis.values.end(), value) == axis.values.end())
        given->complain(fmt::format("no cell has {} = {}", axis.name, axis.text(value)), values_text(axis));
    }
  }
  return filter;
}

void GridReader::notes(const YamlNode& root) {
  const auto entries = root.find("notes");
  if (!entries) return;
  for (std::size_t i = 0; i < entries->size(); ++i) {
    const YamlNode entry = entries->at(i);
    ScenarioNote note;
    note.text = entry.require("note").as_string();
    note.cells = filter(entry);
    m_scenario.notes.push_back(std::move(note));
  }
}

std::vector<std::int64_t> GridReader::parse_values(const Axis& axis, const std::string& text) const {
  if (text == "null" || text == "~") {
    throw UsageError(fmt::format("--set {}={}: is no {}; give one, or a list such as \"{}=[256, 512]\"", axis.name,
                                 text, axis.is_named() ? axis.name : "size", axis.name));
  }
  const auto document = sim::YamlDocument::parse(text, "--set " + axis.name);
  auto read = values(document.root(), axis);
  document.finish();
  return read;
}

bool GridReader::set_axis(const std::string& key, const std::string& text) {
  std::vector<Axis>& axes = m_scenario.axes;
  const auto axis = std::find_if(axes.begin(), axes.end(), [&](const Axis& a) { return a.name == key; });
  if (axis == axes.end()) return false;
  const auto before = axis->values;
  axis->values = parse_values(*axis, text);
  const auto fixed = m_scenario.fixed_axes();
  if (std::find(fixed.begin(), fixed.end(), static_cast<std::size_t>(axis - axes.begin())) == fixed.end()) return true;
  if (axis->values == before) return true;
  if (axis->values.size() > 1)
    throw UsageError(fmt::format("--set {}={}: the table has one {}; give one value", key, text, key));
  m_scenario.paper.clear();  // the paper's numbers belong to the scenario's own value
  return true;
}

void GridReader::layout(const YamlNode& root, const std::function<YamlNode(const Axis&)>& place) {
  GridScenario& scenario = m_scenario;
  axis(root, "rows", scenario.rows);
  axis(root, "columns", scenario.columns);
  if (root.find("tables")) axis(root, "tables", scenario.tables.emplace());
  if (scenario.rows == scenario.columns || scenario.rows == scenario.tables || scenario.columns == scenario.tables) {
    root.complain("two of rows, columns and tables are the same axis",
                  fmt::format("use different ones of {}", fmt::join(axis_names(scenario), ", ")));
    return;
  }
  for (const std::size_t a : scenario.fixed_axes()) {
    const Axis& fixed = scenario.axes[a];
    if (fixed.values.size() < 2) continue;
    place(fixed).complain(
        fmt::format("{} has {} values but is neither rows nor columns nor tables", fixed.name, fixed.values.size()),
        "give it one value");
  }
}

void GridReader::paper(const YamlNode& paper, std::span<const std::string_view> metrics) {
  m_scenario.paper_source = paper.require("source").as_string();
  numbers(paper, metrics);
}

void GridReader::numbers(const YamlNode& root, std::span<const std::string_view> metrics, bool may_lack) {
  for (const std::string_view metric : metrics) {
    const auto node = root.find(metric);
    if (!node) continue;
    if (!m_scenario.tables) {
      table(*node, std::string(metric), 0, may_lack);
      continue;
    }
    for (const std::string& key : node->keys()) {
      const auto which = key_value(*node, key, m_scenario.axes[*m_scenario.tables], "tables");
      if (which) table(*node->find(key), std::string(metric), *which, may_lack);
    }
  }
}

std::optional<std::int64_t> read_axis_word(const YamlNode& node, const Axis& axis) {
  const std::string word = node.as_string();
  const auto found = std::find(axis.words.begin(), axis.words.end(), word);
  if (found != axis.words.end()) return found - axis.words.begin();
  node.complain(fmt::format("unknown {} '{}'", axis.name, word), fmt::format("known: {}", fmt::join(axis.words, ", ")));
  return std::nullopt;
}

bool read_head(const YamlNode& root, const std::string& path, GridScenario& scenario) {
  scenario.path = path;
  if (!root.is_mapping()) {
    root.complain("a scenario is a mapping", "start with 'name: ...'");
    return false;
  }
  scenario.name = root.require("name").as_string();
  scenario.title = root.require("title").as_string();
  const YamlNode machine = root.require("machine");
  if (machine.is_null()) return true;
  scenario.machine = machine.as_string();
  if (scenario.machine.ends_with(".yaml")) scenario.machine = relative_to(path, scenario.machine);
  try {
    sim::Machine::load(scenario.machine);
  } catch (const sim::ConfigError& error) {
    machine.complain(error.what());
  }
  return true;
}

}  // namespace mtsim::scenarios
