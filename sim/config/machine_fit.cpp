// SPDX-License-Identifier: Apache-2.0
// Writing a fitted number back without touching another byte of the file.
#include <algorithm>
#include <array>

#include "sim/config/machine.h"
#include "sim/config/machine_fields.h"
#include "sim/config/output_file.h"
#include "sim/config/scalar_edit.h"

namespace mtsim::sim {

namespace {

/// A scalar over several lines or with a comma outside quotes ends elsewhere than with_scalars() thinks.
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
  std::vector<ScalarEdit> edits;
  for (const auto& [name, replacement] : facts) {
    const auto node = number->find(name);
    if (!node) throw ConfigError(number->place().str() + ": cannot fit '" + key + "': it has no '" + name + "'");
    edits.push_back({node->place(), replacement});
  }
  text = with_scalars(std::move(text), edits);
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
