// SPDX-License-Identifier: Apache-2.0
// The tree behind YamlNode, and the only place that knows yaml-cpp. Private to sim/config.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "isa/diagnostic.h"
#include "isa/text_file.h"

namespace mtsim::sim {

enum class YamlKind : std::uint8_t { null, scalar, sequence, mapping };

/// What is wrong with a document, in the order of the text.
class YamlComplaints {
 public:
  void add(isa::Place place, std::string message, std::string suggestion = "");
  /// Throws ConfigError with all of them.
  void throw_if_any() const;

 private:
  std::vector<isa::Diagnostic> m_diagnostics;
};

struct YamlData;

struct YamlEntry {
  std::string key;
  isa::Place place;  // of the key
  std::shared_ptr<const YamlData> value;
};

struct YamlData {
  YamlKind kind = YamlKind::null;
  isa::Place place;
  std::string path;  // "ddr.bandwidth_gb_s", "cases[2]"; "" for the root
  std::shared_ptr<YamlComplaints> complaints;

  std::string text;                                    // scalar
  bool quoted = false;                                 // in quotes or a block scalar: text, never a number
  std::vector<std::shared_ptr<const YamlData>> items;  // sequence
  std::vector<YamlEntry> entries;                      // mapping, in file order, keys unique
  std::unordered_map<std::string, std::size_t> index;  // key to entry

  // What readers did with the node; the document itself does not change.
  mutable std::vector<std::string> asked;  // in the order of the questions
  mutable bool all_asked = false;
  mutable bool settled = false;  // complained about already

  const YamlEntry* entry(std::string_view key) const;
  void ask(std::string_view key) const;
  std::string child_path(std::string_view key) const;  // "ddr.bytes"
  std::string child_path(std::size_t position) const;  // "cases[2]"
};

inline constexpr int k_max_yaml_depth = 64;
inline constexpr std::size_t k_max_yaml_bytes = isa::k_max_text_bytes;

/// Reads one document. Complaints about duplicates, anchors, aliases, tags, merge keys and further documents collect in
/// the tree; ConfigError when there is no tree: not YAML, empty, nested deeper than k_max_yaml_depth, not text, too
/// long.
std::shared_ptr<const YamlData> parse_yaml_tree(std::string_view text, const std::string& file);

}  // namespace mtsim::sim
