// SPDX-License-Identifier: Apache-2.0
#include "sim/config/machine.h"

#include <bit>

#include "isa/hash.h"
#include "sim/config/machine_fields.h"
#include "sim/config/machine_files.h"
#include "sim/config/machine_reader.h"

namespace mtsim::sim {

namespace {

constexpr std::string_view k_latency_prefix = "latencies.";

isa::Diagnostic error(std::string message, std::string suggestion) {
  return {isa::Severity::error, {}, std::move(message), std::move(suggestion), {}};
}

/// Applies every "key=value"; the mistakes of all of them are thrown together.
void apply(Machine& machine, const std::vector<std::string>& sets) {
  std::vector<isa::Diagnostic> problems;
  for (const auto& text : sets) {
    const auto equals = text.find('=');
    if (equals == std::string::npos) {
      problems.push_back(error("--set " + text + ": no '='", "write key=value, as in ddr.bandwidth_gb_s=60"));
      continue;
    }
    const auto problem = MachineReader::set(machine, text.substr(0, equals), text.substr(equals + 1), "--set");
    if (problem) problems.push_back(error("--set " + text + ": " + problem->message, problem->suggestion));
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

}  // namespace

const char* to_string(Provenance provenance) {
  switch (provenance) {
    case Provenance::paper: return "paper";
    case Provenance::published: return "published";
    case Provenance::assumed: return "assumed";
    case Provenance::fitted: return "fitted";
  }
  return "?";
}

double MachineConfig::peak_gmac_s(int lanes_per_word) const {
  const int multipliers = std::popcount(static_cast<unsigned>(pipeline.units() & isa::units::VMAC));
  return static_cast<double>(cluster.cores) * isa::k_vector_lanes * multipliers * lanes_per_word * core.clock_ghz;
}

Machine Machine::load(const std::string& name_or_path, const std::vector<std::string>& sets) {
  std::string path = name_or_path;
  if (is_machine_name(name_or_path)) {
    const auto found = find_machine(name_or_path);
    if (!found)
      throw ConfigError({error("unknown machine '" + name_or_path + "'", machine_name_suggestion(name_or_path))});
    path = found->string();
  }
  return parse(read_text_file(path), path, sets);
}

Machine Machine::parse(std::string_view text, const std::string& file, const std::vector<std::string>& sets) {
  auto machine = MachineReader().read(text, file);
  apply(machine, sets);
  return machine;
}

void Machine::set(const std::string& key, const std::string& value) { apply(*this, {key + "=" + value}); }

double Machine::get(const std::string& key) const {
  if (key.compare(0, k_latency_prefix.size(), k_latency_prefix) == 0) {
    const auto mnemonic = std::string_view(key).substr(k_latency_prefix.size());
    if (const auto problem = check_latency_key(mnemonic))
      throw ConfigError({error(problem->message, problem->suggestion)});
    return latency(m_config.pipeline, mnemonic);
  }
  auto config = m_config;
  for (const auto& field : machine_fields(config)) {
    if (field.key != key) continue;
    if (!field.is_number()) throw ConfigError("'" + key + "' is not a number but '" + field.value() + "'");
    return field.number();
  }
  const auto problem = unknown_machine_key(key);
  throw ConfigError({error(problem.message, problem.suggestion)});
}

std::uint64_t Machine::fingerprint() const {
  isa::Hash hash;
  auto config = m_config;
  for (const auto& field : machine_fields(config)) {
    hash.add(field.key);
    hash.add(field.value());
  }
  for (const auto key : latency_keys()) {
    hash.add(key);
    hash.add(std::to_string(latency(m_config.pipeline, key)));
  }
  return hash.value();
}

}  // namespace mtsim::sim
