// SPDX-License-Identifier: Apache-2.0
#include "sim/config/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <sstream>
#include <tuple>
#include <utility>

#include "sim/config/yaml.h"

namespace mtsim::sim {

namespace {

/// Ends the parse; what is wrong is in the complaints.
struct StopParsing {};

isa::Place place_of(const YAML::Mark& mark, const std::string& file) {
  if (mark.is_null()) return {file, 0, 0};
  return {file, mark.line + 1, mark.column + 1};  // yaml-cpp counts from 0
}

/// Builds the tree from yaml-cpp's events instead of its nodes, which keep duplicate keys, follow cyclic aliases and
/// merge documents silently.
class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(std::string file, std::shared_ptr<YamlComplaints> complaints)
      : m_file(std::move(file)), m_complaints(std::move(complaints)) {}

  std::shared_ptr<const YamlData> root() const { return m_root; }

  /// Where to look when the text breaks off or goes wrong; yaml-cpp's place may be the next token's.
  std::string open_hint() const {
    if (m_stack.empty()) return "";
    const YamlData& open = *m_stack.back().container;
    return std::string("inside the ") + (open.kind == YamlKind::sequence ? "list" : "mapping") +
           " that starts at line " + std::to_string(open.place.line) + ", column " + std::to_string(open.place.column);
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (m_documents++ == 0) return;
    complain(mark, "a second document starts here", "one file holds one document; remove what follows or the '---'");
    throw StopParsing();
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    auto data = make(mark, YamlKind::null);
    // Nothing has no place: yaml-cpp names the token that follows.
    if (!m_stack.empty() && m_stack.back().has_key) data->place = m_stack.back().key_place;
    attach(std::move(data));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    complain(mark, "aliases ('*name') are not supported", "write the value out");
    auto data = make(mark, YamlKind::null);
    data->settled = true;
    attach(std::move(data));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    auto data = make(mark, YamlKind::scalar);
    data->text = value;
    data->quoted = tag == "!";
    attach(std::move(data));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlKind::sequence);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlKind::mapping);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    std::shared_ptr<YamlData> container;
    bool has_key = false;
    bool drop_value = false;  // of a duplicate or unusable key
    std::string key;
    isa::Place key_place;
  };

  void complain(const YAML::Mark& mark, std::string message, std::string suggestion = "") {
    m_complaints->add(place_of(mark, m_file), std::move(message), std::move(suggestion));
  }

  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor)
      complain(mark, "anchors ('&name') are not supported", "write the value out where it is used");
  }

  void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!")
      complain(mark, "tags ('!" + tag + "') are not supported", "remove the tag");
  }

  std::shared_ptr<YamlData> make(const YAML::Mark& mark, YamlKind kind) const {
    auto data = std::make_shared<YamlData>();
    data->kind = kind;
    data->place = place_of(mark, m_file);
    data->complaints = m_complaints;
    if (m_stack.empty()) return data;
    const Frame& parent = m_stack.back();
    const YamlData& container = *parent.container;
    data->path = container.kind == YamlKind::mapping ? container.child_path(parent.key)
                                                     : container.child_path(container.items.size());
    return data;
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YamlKind kind) {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (m_stack.size() == static_cast<std::size_t>(k_max_yaml_depth)) {
      complain(mark, "nested deeper than " + std::to_string(k_max_yaml_depth) + " levels", "flatten the file");
      throw StopParsing();
    }
    m_stack.push_back({make(mark, kind), false, false, {}, {}});
  }

  void close() {
    auto data = std::move(m_stack.back().container);
    m_stack.pop_back();
    attach(std::move(data));
  }

  void attach(std::shared_ptr<YamlData> data) {
    if (m_stack.empty()) {
      m_root = std::move(data);
      return;
    }
    Frame& frame = m_stack.back();
    if (frame.container->kind == YamlKind::sequence) {
      frame.container->items.push_back(std::move(data));
    } else if (!frame.has_key) {
      take_key(frame, *data);
    } else {
      frame.has_key = false;
      if (!frame.drop_value) add_entry(*frame.container, {frame.key, frame.key_place, std::move(data)});
    }
  }

  void take_key(Frame& frame, const YamlData& key) {
    frame.has_key = true;
    frame.key = key.text;
    frame.key_place = key.place;
    frame.drop_value = true;
    const YamlEntry* first = frame.container->entry(key.text);
    const std::string where = frame.container->path.empty() ? "" : " in '" + frame.container->path + "'";
    if (key.kind != YamlKind::scalar) {
      m_complaints->add(key.place, "a key must be a word" + where, "a ':' may be in the wrong place");
    } else if (key.text == "<<" && !key.quoted) {
      m_complaints->add(key.place, "merge keys ('<<') are not supported" + where, "write the keys out");
    } else if (first != nullptr) {
      m_complaints->add(key.place, "duplicate key '" + key.text + "'" + where,
                        "first at line " + std::to_string(first->place.line) + "; remove one");
    } else {
      frame.drop_value = false;
    }
  }

  static void add_entry(YamlData& mapping, YamlEntry entry) {
    mapping.index.emplace(entry.key, mapping.entries.size());
    mapping.entries.push_back(std::move(entry));
  }

  std::string m_file;
  std::shared_ptr<YamlComplaints> m_complaints;
  std::vector<Frame> m_stack;
  std::shared_ptr<const YamlData> m_root;
  int m_documents = 0;
};

[[noreturn]] void refuse(isa::Place place, std::string message, std::string suggestion) {
  throw ConfigError({{isa::Severity::error, std::move(place), std::move(message), std::move(suggestion), {}}});
}

/// yaml-cpp takes a 0x04 byte for the end of the file, and no control character belongs into a configuration.
void check_text(std::string_view text, const std::string& file) {
  if (text.size() > k_max_yaml_bytes)
    refuse({file, 0, 0},
           "the file has " + std::to_string(text.size()) + " bytes, more than " + std::to_string(k_max_yaml_bytes),
           "is this a YAML file?");
  isa::Place place{file, 1, 1};
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\r' && c != '\t') || byte == 0x7f) {
      char hex[8];
      std::snprintf(hex, sizeof hex, "0x%02x", byte);
      refuse(place, std::string("control character ") + hex, "is this a YAML file? remove the character");
    }
    ++place.column;
    if (c == '\n') place = {file, place.line + 1, 1};
  }
}

}  // namespace

void YamlComplaints::add(isa::Place place, std::string message, std::string suggestion) {
  m_diagnostics.push_back({isa::Severity::error, std::move(place), std::move(message), std::move(suggestion), {}});
}

void YamlComplaints::throw_if_any() const {
  if (m_diagnostics.empty()) return;
  auto sorted = m_diagnostics;
  std::stable_sort(sorted.begin(), sorted.end(), [](const isa::Diagnostic& a, const isa::Diagnostic& b) {
    return std::tie(a.place.line, a.place.column) < std::tie(b.place.line, b.place.column);
  });
  throw ConfigError(std::move(sorted));
}

const YamlEntry* YamlData::entry(std::string_view key) const {
  const auto found = index.find(std::string(key));
  return found == index.end() ? nullptr : &entries[found->second];
}

void YamlData::ask(std::string_view key) const {
  if (!all_asked && std::find(asked.begin(), asked.end(), key) == asked.end()) asked.emplace_back(key);
}

std::string YamlData::child_path(std::string_view key) const {
  return (path.empty() ? std::string() : path + ".").append(key);
}

std::string YamlData::child_path(std::size_t position) const { return path + "[" + std::to_string(position) + "]"; }

std::shared_ptr<const YamlData> parse_yaml_tree(std::string_view text, const std::string& file) {
  check_text(text, file);
  auto complaints = std::make_shared<YamlComplaints>();
  TreeBuilder builder(file, complaints);
  std::istringstream in{std::string(text)};
  try {
    YAML::Parser parser(in);
    if (parser.HandleNextDocument(builder)) parser.HandleNextDocument(builder);
  } catch (const YAML::Exception& error) {
    complaints->add(place_of(error.mark, file), "not valid YAML: " + error.msg, builder.open_hint());
    complaints->throw_if_any();
  } catch (const StopParsing&) {
    if (builder.root() == nullptr) complaints->throw_if_any();
  }
  if (builder.root() == nullptr || builder.root()->kind == YamlKind::null) {
    complaints->throw_if_any();
    refuse({file, 1, 1}, "the file is empty", "at least one 'key: value' is needed");
  }
  return builder.root();
}

}  // namespace mtsim::sim
