// SPDX-License-Identifier: Apache-2.0
// Strict YAML: a wrong file is refused with every mistake in it, each with file:line:col, the value and a suggestion.
// Refused: unknown, duplicate and mistyped keys, values out of range, anchors/aliases/merge keys, octal and 'yes'
// traps.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "isa/diagnostic.h"

namespace mtsim::sim {

/// A configuration that cannot be used; every problem found, not just the first.
class ConfigError : public std::runtime_error {
 public:
  explicit ConfigError(std::vector<isa::Diagnostic> diagnostics);
  explicit ConfigError(const std::string& message);
  const std::vector<isa::Diagnostic>& diagnostics() const { return m_diagnostics; }

 private:
  std::vector<isa::Diagnostic> m_diagnostics;
};

class YamlDocument;
struct YamlData;

/// One node of a parsed document with its place. Readers take keys from a mapping one by one; finish() complains about
/// those nobody took. All complaints collect in the document and are thrown together by YamlDocument::finish().
///
///   auto document = YamlDocument::load("spec.yaml");
///   auto cycles = document.root().require("max_cycles").as_integer();
///   document.finish();
class YamlNode {
 public:
  bool is_scalar() const;
  bool is_sequence() const;
  bool is_mapping() const;
  bool is_quoted() const;  // a scalar in quotes or a block: text, whatever it looks like
  isa::Place place() const;

  // Scalars. A mismatch is recorded (not thrown) and gives a default value.
  std::string as_string() const;
  std::int64_t as_integer() const;  // decimal or 0x hex; a leading 0 as in 010 is refused
  double as_number() const;
  bool as_boolean() const;  // true or false only

  // Sequences.
  std::size_t size() const;
  YamlNode at(std::size_t index) const;

  // Mappings. find() marks the key as known; keys nobody asked for are errors with a suggestion.
  std::optional<YamlNode> find(std::string_view key) const;
  YamlNode require(std::string_view key) const;  // records "missing key" and gives a null node
  std::vector<std::string> keys() const;         // in file order, marks all as known
  bool is_null() const;

  /// Records a complaint about this node, or about one key of this mapping. Nothing more is said about a node whose
  /// reading failed already.
  void complain(const std::string& message, const std::string& suggestion = "") const;
  void complain_about_key(std::string_view key, const std::string& message, const std::string& suggestion = "") const;

 private:
  friend class YamlDocument;
  explicit YamlNode(std::shared_ptr<const YamlData> data) : m_data(std::move(data)) {}
  template <class T, class Scan>
  T scalar(Scan scan, const char* wanted) const;
  std::shared_ptr<const YamlData> m_data;
};

class YamlDocument {
 public:
  /// Throws ConfigError for unreadable or empty files, text that is not YAML, and nesting deeper than 64.
  static YamlDocument load(const std::string& path);
  static YamlDocument parse(std::string_view text, const std::string& file);

  YamlNode root() const;
  /// Throws ConfigError with all complaints and all keys nobody asked for; otherwise does nothing.
  void finish() const;

 private:
  std::shared_ptr<const YamlData> m_root;
};

/// The bytes of a file. Throws ConfigError when it cannot be read or has more than 16 MiB.
std::string read_text_file(const std::string& path);

}  // namespace mtsim::sim
