// SPDX-License-Identifier: Apache-2.0
#include "sim/config/machine_reader.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "sim/config/machine_files.h"

namespace mtsim::sim {

namespace {

namespace fs = std::filesystem;

constexpr std::array k_provenances = {Provenance::paper, Provenance::published, Provenance::assumed,
                                      Provenance::fitted};
constexpr std::string_view k_latencies = "latencies";

/// Files are the same when their resolved paths are.
std::string canonical(const std::string& file) {
  std::error_code error;
  const auto path = fs::weakly_canonical(file, error);
  return error ? file : path.string();
}

std::optional<YamlNode> take(const YamlNode& mapping, std::string_view key, bool required) {
  return required ? mapping.require(key) : mapping.find(key);
}

void read_provenance(const YamlNode& node, MachineNumber& number) {
  const std::string text = node.as_string();
  if (!node.is_scalar()) return;
  std::vector<std::string_view> names;
  for (const auto provenance : k_provenances) {
    names.emplace_back(to_string(provenance));
    if (text != names.back()) continue;
    number.provenance = provenance;
    return;
  }
  node.complain("unknown source '" + text + "'",
                "a number is paper, published, assumed or fitted" + isa::did_you_mean(text, names));
}

void read_range(const YamlNode& node, MachineNumber& number) {
  if (!node.is_sequence()) {
    node.at(0);  // complains
    return;
  }
  if (node.size() != 2) {
    node.complain("expected two numbers, found " + std::to_string(node.size()), "write [lowest, highest]");
    return;
  }
  const double low = node.at(0).as_number(), high = node.at(1).as_number();
  if (low > high) {
    node.complain("the range ends before it starts: [" + shortest(low) + ", " + shortest(high) + "]", "swap the two");
    return;
  }
  number.range_low = low;
  number.range_high = high;
}

void complain(const YamlNode& node, const std::optional<Problem>& problem) {
  if (problem) node.complain(problem->message, problem->suggestion);
}

/// A list of units; what is wrong with one of them is said where it stands.
void read_units(const YamlNode& node, const MachineField& field) {
  if (!node.is_sequence()) {
    node.at(0);  // complains
    return;
  }
  std::string text;
  bool known = true;
  for (std::size_t i = 0; i < node.size(); ++i) {
    const YamlNode item = node.at(i);
    const std::string name = item.as_string();
    if (!item.is_scalar()) {
      known = false;
      continue;
    }
    const auto problem = check_unit_name(name);
    complain(item, problem);
    known = known && !problem;
    text += (i == 0 ? "" : ", ") + name;
  }
  if (known) complain(node, field.assign(text));
}

MachineNumber number_of(const MachineField& field) {
  MachineNumber number;
  number.key = field.key;
  number.unit = field.unit;
  number.provenance = Provenance::assumed;
  return number;
}

/// The line of `describe` for one overridden latency; made when it is the first override of this mnemonic.
MachineNumber& latency_number(std::vector<MachineNumber>& numbers, std::string_view key) {
  const std::string full = std::string(k_latencies) + "." + std::string(key);
  for (auto& number : numbers)
    if (number.key == full) return number;
  numbers.push_back({full, "", "cycles", Provenance::assumed, "", 1, isa::k_max_latency, false, ""});
  return numbers.back();
}

/// What is overridden is an assumption until its file says otherwise.
void override_value(MachineNumber& number, const std::string& before, bool is_override) {
  number.provenance = Provenance::assumed;
  if (is_override && !number.overridden) number.before = before;
  number.overridden = is_override;
}

}  // namespace

Machine MachineReader::read(std::string_view text, const std::string& file) {
  m_chain.push_back(canonical(file));
  const auto document = YamlDocument::parse(text, file);
  const auto root = document.root();
  Machine machine;
  const auto extends = root.find("extends");
  if (extends)
    if (auto base = read_base(*extends, file)) machine = std::move(*base);
  m_complete = !extends;
  m_file = fs::path(file).filename().string();
  m_base = machine.m_config.name;
  machine.m_path = file;

  const auto name = m_complete ? root.require("name") : root.find("name");
  read_sections(root, machine);
  machine.m_config.name = name ? name->as_string() : fs::path(file).stem().string();
  if (name && name->is_scalar() && machine.m_config.name.empty()) name->complain("expected a name, found ''");
  document.finish();
  m_chain.pop_back();
  return machine;
}

std::optional<Machine> MachineReader::read_base(const YamlNode& extends, const std::string& file) {
  const std::string name = extends.as_string();
  if (name.empty()) {
    if (extends.is_scalar()) extends.complain("expected a machine", machine_name_suggestion(name));
    return std::nullopt;
  }
  std::string path;
  if (!is_machine_name(name)) {
    path = (fs::path(file).parent_path() / name).string();
  } else if (const auto found = find_machine(name)) {
    path = found->string();
  } else {
    extends.complain("unknown machine '" + name + "'", machine_name_suggestion(name));
    return std::nullopt;
  }
  const auto start = std::find(m_chain.begin(), m_chain.end(), canonical(path));
  if (start != m_chain.end()) {
    std::string circle;
    for (auto link = start; link != m_chain.end(); ++link) circle += fs::path(*link).filename().string() + " -> ";
    extends.complain("machines extend each other in a circle: " + circle + fs::path(path).filename().string(),
                     "one of them must stand alone");
    return std::nullopt;
  }
  std::string text;
  try {
    text = read_text_file(path);
  } catch (const ConfigError& error) {
    extends.complain(error.diagnostics().front().message);
    return std::nullopt;
  }
  return read(text, path);
}

void MachineReader::read_sections(const YamlNode& root, Machine& machine) {
  const auto fields = machine_fields(machine.m_config);
  if (machine.m_numbers.empty())
    for (const auto& field : fields) machine.m_numbers.push_back(number_of(field));
  std::optional<YamlNode> section;
  std::string_view section_name;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto& field = fields[i];
    if (section_name != field.section()) {
      section_name = field.section();
      section = take(root, section_name, m_complete);
    }
    if (!section) continue;
    if (const auto node = take(*section, field.name(), m_complete)) read_number(*node, field, machine.m_numbers[i]);
  }
  if (const auto pipeline = root.find(k_latencies)) read_latencies(*pipeline, machine);
}

void MachineReader::read_number(const YamlNode& node, const MachineField& field, MachineNumber& number) {
  const auto assign = [&](const YamlNode& value) {
    if (field.is_list())
      read_units(value, field);
    else if (value.is_null() || !value.is_scalar() || (value.is_quoted() && !field.is_text()))
      value.as_number();  // complains
    else
      complain(value, field.assign(value.as_string()));
  };
  const std::string before = number.value;
  override_value(number, before, !m_complete);
  number.source = set_in_file(before);
  if (node.is_mapping()) {
    assign(node.require("value"));
    read_facts(node, m_complete, number);
  } else if (m_complete && (node.is_scalar() || node.is_sequence())) {
    const std::string found = node.is_scalar() ? "'" + node.as_string() + "'" : "a list";
    node.complain("expected {value, unit, source, from, range}, found " + found,
                  "a machine that extends no other says where each number comes from");
  } else {
    assign(node);
  }
  number.value = field.value();
}

void MachineReader::read_latencies(const YamlNode& section, Machine& machine) {
  auto& pipeline = machine.m_config.pipeline;
  for (const auto& key : section.keys()) {
    if (const auto problem = check_latency_key(key)) {
      section.complain_about_key(key, problem->message, problem->suggestion);
      if (const auto node = section.find(key); node->is_mapping()) node->keys();  // one complaint is enough
      continue;
    }
    const auto node = *section.find(key);
    auto& number = latency_number(machine.m_numbers, key);
    const std::string before = std::to_string(latency(pipeline, key));
    override_value(number, before, !m_complete);
    number.source = set_in_file(before);
    const auto value = node.is_mapping() ? node.require("value") : node;
    if (!value.is_scalar() || value.is_quoted())
      value.as_integer();  // complains
    else
      complain(value, assign_latency(pipeline, key, value.as_string()));
    if (node.is_mapping()) read_facts(node, false, number);
    number.value = std::to_string(latency(pipeline, key));
  }
}

void MachineReader::read_facts(const YamlNode& node, bool required, MachineNumber& number) {
  const bool is_text = number.unit.empty();  // or a list
  if (const auto unit = is_text ? std::nullopt : take(node, "unit", required)) {
    const std::string text = unit->as_string();
    if (unit->is_scalar() && text != number.unit)
      unit->complain("expected " + number.unit + ", found '" + text + "'", "give the value in " + number.unit);
  }
  if (const auto source = take(node, "source", required)) read_provenance(*source, number);
  if (const auto from = take(node, "from", required)) {
    number.source = from->as_string();
    if (from->is_scalar() && number.source.empty())
      from->complain("expected a source, found ''", "say where the number comes from");
  }
  if (const auto range = is_text ? std::nullopt : take(node, "range", required)) read_range(*range, number);
}

std::string MachineReader::set_in_file(const std::string& value_before) const {
  return "set in " + m_file + (m_base.empty() ? "" : " (" + m_base + ": " + value_before + ")");
}

std::optional<Problem> MachineReader::set(Machine& machine, std::string_view key, std::string_view value,
                                          std::string_view by) {
  const auto record = [&](MachineNumber& number, const std::string& before, std::string after) {
    number.source = std::string(by) + " (" + machine.m_config.name + ": " + before + ")";
    override_value(number, before, true);
    number.value = std::move(after);
  };
  const std::string prefix = std::string(k_latencies) + ".";
  if (key.substr(0, prefix.size()) == prefix) {
    const auto mnemonic = key.substr(prefix.size());
    if (auto problem = check_latency_key(mnemonic)) return problem;
    auto& pipeline = machine.m_config.pipeline;
    const auto before = std::to_string(latency(pipeline, mnemonic));
    if (auto problem = assign_latency(pipeline, mnemonic, value)) return problem;
    record(latency_number(machine.m_numbers, mnemonic), before, std::to_string(latency(pipeline, mnemonic)));
    return std::nullopt;
  }
  const auto fields = machine_fields(machine.m_config);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].key != key) continue;
    const auto before = fields[i].value();
    if (auto problem = fields[i].assign(value)) return problem;
    record(machine.m_numbers[i], before, fields[i].value());
    return std::nullopt;
  }
  return unknown_machine_key(key);
}

}  // namespace mtsim::sim
