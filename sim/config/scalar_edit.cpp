// SPDX-License-Identifier: Apache-2.0
#include "sim/config/scalar_edit.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace mtsim::sim {

namespace {

struct Extent {
  std::size_t begin = 0, end = 0;
};

std::size_t offset_of(std::string_view text, const isa::Place& place) {
  std::size_t line_start = 0;
  for (int line = 1; line < place.line; ++line) line_start = text.find('\n', line_start) + 1;
  return line_start + static_cast<std::size_t>(place.column - 1);
}

/// Where the scalar written at `place` stands in its line, quotes included.
Extent extent_of(std::string_view text, const isa::Place& place) {
  const std::size_t begin = offset_of(text, place);
  const std::size_t line_end = std::min(text.find('\n', begin), text.size());
  const char first = text[begin];
  std::size_t end = begin + 1;
  if (first == '"') {
    while (end < line_end && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
    return {begin, std::min(end + 1, line_end)};
  }
  if (first == '\'') {  // '' inside stands for one quote
    while (end < line_end && (text[end] != '\'' || text.substr(end, 2) == "''")) end += text[end] == '\'' ? 2 : 1;
    return {begin, std::min(end + 1, line_end)};
  }
  while (end < line_end && text[end] != ',' && text[end] != '}' && text.substr(end, 2) != " #") ++end;
  while (text[end - 1] == ' ' || text[end - 1] == '\r') --end;
  return {begin, end};
}

/// Puts `replacement` there and moves the blanks after the comma that follows, so that columns stay aligned.
void replace(std::string& text, const Extent& extent, const std::string& replacement) {
  const std::size_t old_size = extent.end - extent.begin;
  if (text.substr(extent.end, 2) == ", ") {
    const std::size_t blanks_begin = extent.end + 1;
    const std::size_t blanks = text.find_first_not_of(' ', blanks_begin) - blanks_begin;
    const std::size_t wanted = blanks + old_size;
    const std::size_t kept = wanted > replacement.size() ? wanted - replacement.size() : 1;
    text.replace(blanks_begin, blanks, kept, ' ');
  }
  text.replace(extent.begin, old_size, replacement);
}

}  // namespace

std::string double_quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string with_scalars(std::string text, const std::vector<ScalarEdit>& edits) {
  std::vector<std::pair<Extent, std::string>> extents;
  for (const ScalarEdit& edit : edits) extents.emplace_back(extent_of(text, edit.place), edit.replacement);
  // From the last in the text to the first, so that places stay right.
  std::sort(extents.begin(), extents.end(), [](const auto& a, const auto& b) { return a.first.begin > b.first.begin; });
  for (const auto& [extent, replacement] : extents) replace(text, extent, replacement);
  return text;
}

}  // namespace mtsim::sim
