// SPDX-License-Identifier: Apache-2.0
#include "sim/suppression.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "sim/config/yaml.h"

namespace mtsim::sim {
namespace {

constexpr std::array<std::string_view, 6> k_kinds = {"read-before-complete", "overwrite-in-use", "unordered-writes",
                                                     "never-written",        "wait-never-made",  "channel-reused"};

std::string read_text(const YamlNode& entry, std::string_view key) {
  const YamlNode node = entry.require(key);
  std::string text = node.is_null() ? "" : node.as_string();
  if (!node.is_null() && text.find_first_not_of(" \t\n") == std::string::npos) {
    node.complain(fmt::format("an empty {}", key));
  }
  return text;
}

}  // namespace

bool matches_pattern(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, from = 0;
  while (t < text.size()) {
    const bool escaped = p + 1 < pattern.size() && pattern[p] == '\\';
    if (p < pattern.size() && !escaped && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (p < pattern.size() && pattern[p + (escaped ? 1 : 0)] == text[t]) {
      p += escaped ? 2 : 1;
      ++t;
    } else if (star != std::string_view::npos) {  // the last * takes one more
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

Suppressions Suppressions::load(const std::string& path) {
  const YamlDocument document = YamlDocument::load(path);
  const YamlNode list = document.root().require("suppressions");
  Suppressions result;
  if (!list.is_sequence()) list.complain("not a list", "one '- kind: ...' entry per finding");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const YamlNode node = list.at(i);
    Entry entry;
    entry.place = node.place();
    entry.kind = read_text(node, "kind");
    entry.source = read_text(node, "source");
    entry.reason = read_text(node, "reason");
    if (const auto buffer = node.find("buffer")) entry.buffer = buffer->as_string();
    if (!entry.kind.empty() && std::find(k_kinds.begin(), k_kinds.end(), entry.kind) == k_kinds.end()) {
      node.require("kind").complain(
          fmt::format("unknown kind '{}'{}", entry.kind, isa::did_you_mean(entry.kind, k_kinds)),
          fmt::format("known: {}", fmt::join(k_kinds, ", ")));
    }
    result.m_entries.push_back(std::move(entry));
  }
  document.finish();
  return result;
}

bool Suppressions::Entry::meets(const Finding& finding) const {
  if (finding.kind != kind) return false;
  return std::any_of(finding.ends.begin(), finding.ends.end(), [&](const FindingEnd& end) {
    if (end.line == 0) return false;
    const auto at = [&](const std::string& text) { return matches_pattern(source, text); };
    // The folder may be left out, and the line.
    const std::string name = end.file.substr(end.file.rfind('/') + 1);
    const bool here = at(end.file) || at(name) || at(fmt::format("{}:{}", end.file, end.line)) ||
                      at(fmt::format("{}:{}", name, end.line)) || at(end.function);
    return here && (buffer.empty() || matches_pattern(buffer, end.buffer));
  });
}

void Suppressions::apply(LaunchResult& result) {
  std::vector<Finding> kept;
  for (Finding& finding : result.findings) {
    const auto entry =
        std::find_if(m_entries.begin(), m_entries.end(), [&](const Entry& e) { return e.meets(finding); });
    if (entry == m_entries.end()) {
      kept.push_back(std::move(finding));
      continue;
    }
    entry->used = true;
    finding.reason = entry->reason;
    result.suppressed.push_back(std::move(finding));
  }
  result.findings = std::move(kept);
}

std::vector<std::string> Suppressions::unused() const {
  std::vector<std::string> lines;
  for (const Entry& entry : m_entries) {
    if (entry.used) continue;
    lines.push_back(
        fmt::format("{}: no {} at {} was found; take the entry out", entry.place.str(), entry.kind, entry.source));
  }
  return lines;
}

}  // namespace mtsim::sim
