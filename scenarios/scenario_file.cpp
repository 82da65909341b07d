// SPDX-License-Identifier: Apache-2.0
// Reads scenario files and --set; scenario.cpp says what a scenario is.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "isa/diagnostic.h"
#include "kernels/library.h"
#include "scenarios/error.h"
#include "scenarios/grid_file.h"
#include "scenarios/scenario.h"

namespace mtsim::scenarios {

namespace {

using sim::YamlNode;

std::optional<std::int64_t> read_value(const YamlNode& node, const Operator& op, const Axis& axis) {
  if (axis.is_dtype) {
    std::optional<std::int64_t> value;
    read_word(node, [&](const std::string& word) { value = static_cast<std::int64_t>(parse_dtype(op, word)); });
    return value;
  }
  if (!axis.words.empty()) return read_axis_word(node, axis);
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

GridReader reader_of(Scenario& scenario) {
  return {scenario, [op = scenario.op](const YamlNode& node, const Axis& axis) { return read_value(node, *op, axis); }};
}

void read_grid(const YamlNode& root, Scenario& scenario, GridReader& reader) {
  const YamlNode grid = root.require("grid");
  const YamlNode dtype = root.require("dtype");
  if (grid.is_null() || dtype.is_null()) return;
  scenario.grid_place = grid.place();
  for (std::size_t a = 0; a + 1 < scenario.axes.size(); ++a) {
    Axis& axis = scenario.axes[a];
    if (axis.is_tile) continue;  // read already
    if (axis.is_named()) {
      axis.values = reader.values(*grid.find(axis.name), axis);
      continue;
    }
    const auto usual = scenario.op->info().dimensions[a].value;
    if (const auto values = usual ? grid.find(axis.name) : grid.require(axis.name); values && !values->is_null()) {
      axis.values = reader.values(*values, axis);
    } else if (usual) {
      axis.values = {*usual};
    }
  }
  scenario.axes.back().values = reader.values(dtype, scenario.axes.back());
  reader.layout(root, [&](const Axis& axis) { return axis.is_dtype ? dtype : grid; });
}

void read_paper(const YamlNode& root, Scenario& scenario, GridReader& reader) {
  const auto paper = root.find("paper");
  if (!paper) return;
  reader.paper(*paper, k_metrics);
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
        of.complain(fmt::format("there is no table {}", of.as_string()), values_text(axis));
    }
  }
}

/// Block sizes: a text that all cells have, or a mapping of axes.
void read_tile(const YamlNode& root, Scenario& scenario, const GridReader& reader) {
  const auto node = root.find("tile");
  if (!node || !node->is_mapping()) return;
  for (const std::string& key : node->keys()) {
    Axis axis;
    axis.name = key;
    axis.is_tile = true;
    axis.values = reader.values(*node->find(key), axis);
    scenario.axes.push_back(std::move(axis));
  }
}

/// What depends on the operator; keys of a scenario without one are left unread.
void read_operator(const YamlNode& root, Scenario& scenario) {
  const Operator& op = *scenario.op;
  GridReader reader = reader_of(scenario);
  for (const Dimension& dimension : op.info().dimensions) scenario.axes.push_back({std::string(dimension.name), {}});
  if (const auto grid = root.find("grid"); grid && grid->is_mapping() && !op.info().variants.empty()) {
    const auto& words = op.info().variants.front().words;
    if (grid->find("variant")) scenario.axes.push_back({"variant", {}, false, {words.begin(), words.end()}});
  }
  read_tile(root, scenario, reader);
  scenario.axes.push_back({"dtype", {}, true});
  scenario.variant = parse_variant(op, "");
  read_word(root, "variant", [&](const std::string& words) { scenario.variant = parse_variant(op, words); });
  read_word(root, "beside", [&](const std::string& words) { scenario.beside = parse_variant(op, words); });
  read_grid(root, scenario, reader);
  if (const auto tile = root.find("tile"); tile && !tile->is_mapping())
    read_word(*tile, [&](const std::string& text) {
      for (const std::int64_t dtype : scenario.axes.back().values) op.check_tile(text, static_cast<DType>(dtype));
      scenario.tile = text;
    });
  read_paper(root, scenario, reader);
  reader.notes(root);
  if (const auto fit = root.find("fit")) scenario.fit = reader.filter(*fit);
}

}  // namespace

std::vector<std::string_view> Scenario::keys() const {
  auto keys = axis_names(*this);
  keys.insert(keys.end() - 1, {"depth", "variant", "beside", "tile"});
  keys.push_back("machine");
  return keys;
}

bool Scenario::set(const std::string& key, const std::string& value) {
  if (reader_of(*this).set_axis(key, value)) return true;
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
  if (!read_head(root, path, scenario)) document.finish();
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
