// SPDX-License-Identifier: Apache-2.0
#include "sim/config/yaml.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "isa/text_file.h"
#include "sim/config/scalar.h"
#include "sim/config/yaml_tree.h"

namespace mtsim::sim {

namespace {

std::string join(const std::vector<isa::Diagnostic>& diagnostics) {
  std::string text;
  for (const auto& diagnostic : diagnostics) {
    if (!text.empty()) text += '\n';
    text += diagnostic.str();
  }
  return text;
}

std::vector<isa::Diagnostic> without_place(const std::string& message) {
  std::vector<isa::Diagnostic> diagnostics(1);
  diagnostics.front().message = message;
  return diagnostics;
}

const char* describe(YamlKind kind) {
  switch (kind) {
    case YamlKind::null: return "nothing";
    case YamlKind::scalar: return "a value";
    case YamlKind::sequence: return "a list";
    case YamlKind::mapping: return "a mapping";
  }
  return "?";
}

/// "'ddr.bandwidth_gb_s': " or, for the root, "".
std::string subject(const YamlData& data) { return data.path.empty() ? "" : "'" + data.path + "': "; }

/// A node of the wrong kind is complained about once; what is read out of it afterwards is quiet.
void mismatch(const YamlData& data, const std::string& problem, const std::string& suggestion = "") {
  if (std::exchange(data.settled, true)) return;
  data.complaints->add(data.place, subject(data) + problem, suggestion);
}

bool require_kind(const YamlData& data, YamlKind kind) {
  if (data.kind == kind) return true;
  mismatch(data, std::string("expected ") + describe(kind) + ", found " +
                     (data.kind == YamlKind::scalar ? "'" + data.text + "'" : describe(data.kind)));
  return false;
}

/// What stands for a node that is missing: null, and no further complaint about it.
std::shared_ptr<const YamlData> absent(const YamlData& parent, std::string path) {
  auto data = std::make_shared<YamlData>();
  data->place = parent.place;
  data->path = std::move(path);
  data->complaints = parent.complaints;
  data->settled = true;
  return data;
}

void complain_about_unasked_keys(const YamlData& data) {
  for (const auto& item : data.items) complain_about_unasked_keys(*item);
  if (data.kind != YamlKind::mapping || data.settled) return;
  std::vector<std::string_view> known(data.asked.begin(), data.asked.end());
  std::string known_keys;
  for (const auto key : known) known_keys += (known_keys.empty() ? "" : ", ") + std::string(key);
  for (const auto& entry : data.entries) {
    if (data.all_asked || std::find(known.begin(), known.end(), entry.key) != known.end()) {
      complain_about_unasked_keys(*entry.value);
      continue;
    }
    data.complaints->add(
        entry.place, "unknown key '" + entry.key + "'" + (data.path.empty() ? "" : " in '" + data.path + "'"),
        known.empty() ? "no keys are known here" : "known keys: " + known_keys + isa::did_you_mean(entry.key, known));
  }
}

}  // namespace

ConfigError::ConfigError(std::vector<isa::Diagnostic> diagnostics)
    : std::runtime_error(join(diagnostics)), m_diagnostics(std::move(diagnostics)) {}

ConfigError::ConfigError(const std::string& message) : ConfigError(without_place(message)) {}

bool YamlNode::is_scalar() const { return m_data->kind == YamlKind::scalar; }
bool YamlNode::is_sequence() const { return m_data->kind == YamlKind::sequence; }
bool YamlNode::is_mapping() const { return m_data->kind == YamlKind::mapping; }
bool YamlNode::is_quoted() const { return m_data->quoted; }
bool YamlNode::is_null() const { return m_data->kind == YamlKind::null; }
isa::Place YamlNode::place() const { return m_data->place; }

std::string YamlNode::as_string() const {
  return require_kind(*m_data, YamlKind::scalar) ? m_data->text : std::string();
}

template <class T, class Scan>
T YamlNode::scalar(Scan scan, const char* wanted) const {
  if (!require_kind(*m_data, YamlKind::scalar)) return T{};
  if (m_data->quoted) {
    mismatch(*m_data, std::string("expected ") + wanted + ", found the text \"" + m_data->text + "\"",
             "remove the quotes");
    return T{};
  }
  const auto result = scan(m_data->text);
  if (!result.value) mismatch(*m_data, result.problem.message, result.problem.suggestion);
  return result.value.value_or(T{});
}

std::int64_t YamlNode::as_integer() const { return scalar<std::int64_t>(scan_integer, "an integer"); }
double YamlNode::as_number() const { return scalar<double>(scan_number, "a number"); }
bool YamlNode::as_boolean() const { return scalar<bool>(scan_boolean, "true or false"); }

std::size_t YamlNode::size() const {
  if (m_data->kind == YamlKind::mapping) return m_data->entries.size();
  return require_kind(*m_data, YamlKind::sequence) ? m_data->items.size() : 0;
}

YamlNode YamlNode::at(std::size_t index) const {
  if (require_kind(*m_data, YamlKind::sequence) && index < m_data->items.size()) return YamlNode(m_data->items[index]);
  if (is_sequence())
    m_data->complaints->add(m_data->place, subject(*m_data) + "expected at least " + std::to_string(index + 1) +
                                               " items, found " + std::to_string(m_data->items.size()));
  return YamlNode(absent(*m_data, m_data->child_path(index)));
}

std::optional<YamlNode> YamlNode::find(std::string_view key) const {
  if (!require_kind(*m_data, YamlKind::mapping)) return std::nullopt;
  m_data->ask(key);
  const YamlEntry* entry = m_data->entry(key);
  if (entry == nullptr) return std::nullopt;
  return YamlNode(entry->value);
}

YamlNode YamlNode::require(std::string_view key) const {
  if (auto node = find(key)) return *node;
  if (is_mapping()) complain("missing key '" + std::string(key) + "'");
  return YamlNode(absent(*m_data, m_data->child_path(key)));
}

std::vector<std::string> YamlNode::keys() const {
  std::vector<std::string> names;
  if (!require_kind(*m_data, YamlKind::mapping)) return names;
  m_data->all_asked = true;
  for (const auto& entry : m_data->entries) names.push_back(entry.key);
  return names;
}

void YamlNode::complain(const std::string& message, const std::string& suggestion) const {
  if (m_data->settled) return;  // what was read out of it is a default
  m_data->complaints->add(m_data->place, subject(*m_data) + message, suggestion);
}

void YamlNode::complain_about_key(std::string_view key, const std::string& message,
                                  const std::string& suggestion) const {
  const YamlEntry* entry = m_data->entry(key);
  m_data->complaints->add(entry != nullptr ? entry->place : m_data->place, subject(*m_data) + message, suggestion);
}

YamlDocument YamlDocument::load(const std::string& path) { return parse(read_text_file(path), path); }

YamlDocument YamlDocument::parse(std::string_view text, const std::string& file) {
  YamlDocument document;
  document.m_root = parse_yaml_tree(text, file);
  return document;
}

YamlNode YamlDocument::root() const { return YamlNode(m_root); }

void YamlDocument::finish() const {
  complain_about_unasked_keys(*m_root);
  m_root->complaints->throw_if_any();
}

std::string read_text_file(const std::string& path) {
  try {
    return isa::read_text_file(path);
  } catch (const isa::IsaError& error) {
    throw ConfigError(error.diagnostics());
  }
}

}  // namespace mtsim::sim
