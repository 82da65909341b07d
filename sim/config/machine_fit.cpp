// SPDX-License-Identifier: Apache-2.0
// Writing a fitted number back without touching another byte of the file.
#include <algorithm>
#include <array>

#include "sim/config/machine.h"
#include "sim/config/machine_fields.h"
#include "sim/config/output_file.h"

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

std::string double_quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

/// A scalar over several lines or with a comma outside quotes ends elsewhere than extent_of() thinks.
bool edit_is_right(const std::string& text, const std::string& path, const std::string& key, const std::string& value,
                   const std::string& source) {
  try {
    const auto machine = Machine::parse(text, path);
    for (const auto& number : machine.numbers())
      if (number.key == key)
        return number.value == value && number.provenance == Provenance::fitted && number.source == source;
  } catch (const ConfigError&) {
    // The edit broke the file, which was right before.
  }
  return false;
}

std::string with_fitted(std::string text, const std::string& path, const FittedNumber& fitted) {
  const auto& [key, value, source] = fitted;
  Machine::parse(text, path);  // refuses a file that is wrong already
  const auto document = YamlDocument::parse(text, path);
  MachineConfig config{};
  const auto fields = machine_fields(config);
  const auto field = std::find_if(fields.begin(), fields.end(), [&](const auto& f) { return f.key == key; });
  if (field == fields.end()) {
    const auto problem = unknown_machine_key(key);
    throw ConfigError("cannot fit '" + key + "': " + problem.message + "; " + problem.suggestion);
  }
  if (const auto problem = field->assign(shortest(value)))
    throw ConfigError("cannot fit '" + key + "': " + problem->message + "; " + problem->suggestion);
  const auto section = document.root().find(field->section());
  const auto number = section ? section->find(field->name()) : std::nullopt;
  if (!number || !number->is_mapping())
    throw ConfigError("cannot fit '" + key + "': " + path +
                      " does not have it as {value: ..., source: ..., from: ...}");

  const std::array<std::pair<const char*, std::string>, 3> facts = {
      {{"value", shortest(value)}, {"source", to_string(Provenance::fitted)}, {"from", double_quoted(source)}}};
  std::vector<std::pair<Extent, std::string>> edits;
  for (const auto& [name, replacement] : facts) {
    const auto node = number->find(name);
    if (!node) throw ConfigError(number->place().str() + ": cannot fit '" + key + "': it has no '" + name + "'");
    edits.emplace_back(extent_of(text, node->place()), replacement);
  }
  // From the last in the text to the first, so that places stay right.
  std::sort(edits.begin(), edits.end(), [](const auto& a, const auto& b) { return a.first.begin > b.first.begin; });
  for (const auto& [extent, replacement] : edits) replace(text, extent, replacement);
  if (!edit_is_right(text, path, key, shortest(value), source))
    throw ConfigError("cannot fit '" + key + "' in " + path +
                      ": write its value, source and from on one line each, 'from' in double quotes");
  return text;
}

}  // namespace

void write_fitted(const std::string& path, const std::vector<FittedNumber>& numbers) {
  std::string text = read_text_file(path);
  for (const FittedNumber& number : numbers) text = with_fitted(std::move(text), path, number);
  write_file(path, k_fit_writer, text, isa::FileUse::Purpose::update);
}

void write_fitted(const std::string& path, const std::string& key, double value, const std::string& source) {
  write_fitted(path, {{key, value, source}});
}

void require_fittable(const std::string& path, const std::vector<std::string>& keys) {
  const Machine machine = Machine::load(path);
  std::string text = read_text_file(path);
  for (const std::string& key : keys) text = with_fitted(std::move(text), path, {key, machine.get(key), "a trial"});
}

}  // namespace mtsim::sim
