// SPDX-License-Identifier: Apache-2.0
// Reads what every kind of scenario file has: head, axes, layout, the paper's numbers, notes.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/library.h"
#include "runtime/error.h"
#include "scenarios/error.h"
#include "scenarios/grid.h"
#include "sim/config/yaml.h"

namespace mtsim::scenarios {

/// Runs a reader of a word that throws and makes that a complaint at the word's place.
template <class Parse>
void read_word(const sim::YamlNode& node, const Parse& parse) {
  try {
    parse(node.as_string());
  } catch (const UsageError& error) {
    node.complain(error.what());
  } catch (const kernels::KernelError& error) {
    node.complain(error.what());
  } catch (const runtime::RuntimeError& error) {
    node.complain(error.what());
  }
}
template <class Parse>
void read_word(const sim::YamlNode& root, std::string_view key, const Parse& parse) {
  if (const auto node = root.find(key)) read_word(*node, parse);
}

/// Complaints go to the nodes; YamlDocument::finish() throws them.
class GridReader {
 public:
  /// A value of an axis, complained about when it is none.
  using ReadValue = std::function<std::optional<std::int64_t>(const sim::YamlNode&, const Axis&)>;
  GridReader(GridScenario& scenario, ReadValue read_value)
      : m_scenario(scenario), m_read_value(std::move(read_value)) {}

  /// One value or a list of different ones.
  std::vector<std::int64_t> values(const sim::YamlNode& node, const Axis& axis) const;
  /// "[1024, 2048]" or "1024" of --set. Throws UsageError, sim::ConfigError.
  std::vector<std::int64_t> parse_values(const Axis& axis, const std::string& text) const;
  /// Whether `key` is an axis, which then gets the values of `text`, as --set says it.
  bool set_axis(const std::string& key, const std::string& text);
  /// rows, columns and tables, when the axes have their values; all others must have one. `place` has the axis's
  /// values.
  void layout(const sim::YamlNode& root, const std::function<sim::YamlNode(const Axis&)>& place);
  /// `paper:`: its source and numbers.
  void paper(const sim::YamlNode& paper, std::span<const std::string_view> metrics);
  /// Of each metric one number a column, above 0; with `may_lack` null where it has none.
  void numbers(const sim::YamlNode& node, std::span<const std::string_view> metrics, bool may_lack = false);
  void notes(const sim::YamlNode& root);
  /// {m: 1024, n: [256, 512]}: which cells an entry is about.
  CellFilter filter(const sim::YamlNode& node) const;

 private:
  void axis(const sim::YamlNode& root, std::string_view key, std::size_t& index) const;
  std::optional<std::int64_t> key_value(const sim::YamlNode& node, const std::string& key, const Axis& axis,
                                        std::string_view what) const;
  void table(const sim::YamlNode& node, const std::string& metric, std::int64_t table, bool may_lack);

  GridScenario& m_scenario;
  ReadValue m_read_value;
};

/// The index of a word of an axis of words, complained about when it is none.
std::optional<std::int64_t> read_axis_word(const sim::YamlNode& node, const Axis& axis);

/// name, title and machine. False when the document is no mapping; then that is said.
bool read_head(const sim::YamlNode& root, const std::string& path, GridScenario& scenario);

/// "its values: 256, 512".
std::string values_text(const Axis& axis);
std::vector<std::string_view> axis_names(const GridScenario& scenario);

}  // namespace mtsim::scenarios
