// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "scenarios/report.h"
#include "scenarios/table.h"

#include <charconv>

namespace mtsim::scenarios {

namespace {

/// A number stays one in JSON; "bandwidth" is text.
Json value_json(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  return text;
}

}  // namespace

std::string dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

Json fault_json(const sim::Fault& fault) {
  return {{"kind", to_string(fault.kind)}, {"core", fault.core},         {"cycle", fault.cycle},    {"pc", fault.pc},
          {"packet", fault.packet},        {"place", fault.place.str()}, {"message", fault.message}};
}

Json diagnostics_json(const std::vector<isa::Diagnostic>& diagnostics) {
  Json json = Json::array();
  for (const auto& d : diagnostics) {
    json.push_back({{"severity", to_string(d.severity)},
                    {"place", {{"file", d.place.file}, {"line", d.place.line}, {"column", d.place.column}}},
                    {"message", d.message},
                    {"suggestion", d.suggestion},
                    {"code", d.code}});
  }
  return json;
}

Json machine_json(const sim::Machine& machine) {
  Json numbers = Json::object();
  for (const auto& n : machine.numbers()) {
    numbers[n.key] = {{"value", value_json(n.value)},          {"unit", n.unit},
                      {"provenance", to_string(n.provenance)}, {"source", n.source},
                      {"range", {n.range_low, n.range_high}},  {"overridden", n.overridden}};
  }
  return {{"name", machine.config().name}, {"file", machine.path()}, {"numbers", numbers}};
}

std::string machine_text(const sim::Machine& machine) {
  Table table({Align::left, Align::right, Align::left, Align::left, Align::left, Align::left},
              {"key", "value", "unit", "provenance", "plausible", "source"});
  for (const auto& n : machine.numbers()) {
    const bool has_range = n.range_low != n.range_high;
    table.add({n.key, n.value, n.unit, std::string(to_string(n.provenance)) + (n.overridden ? " (overridden)" : ""),
               has_range ? fmt::format("{:g} - {:g}", n.range_low, n.range_high) : "", n.source});
  }
  return fmt::format("machine {} ({})\n\n{}", machine.config().name, machine.path(), table.text());
}

std::vector<std::string> assumed_machine_keys(const sim::Machine& machine) {
  std::vector<std::string> keys;
  for (const auto& n : machine.numbers()) {
    if (n.provenance == sim::Provenance::assumed) keys.push_back(n.key);
  }
  return keys;
}

CheckCounts count(const std::vector<isa::Diagnostic>& diagnostics) {
  CheckCounts counts;
  for (const auto& d : diagnostics) {
    switch (d.severity) {
      case isa::Severity::note: ++counts.notes; break;
      case isa::Severity::warning: ++counts.warnings; break;
      case isa::Severity::error:
      case isa::Severity::fatal: ++counts.errors; break;
    }
  }
  return counts;
}

Json check_json(const std::string& file, const std::vector<isa::Diagnostic>& diagnostics) {
  const CheckCounts counts = count(diagnostics);
  return {{"file", file},
          {"errors", counts.errors},
          {"warnings", counts.warnings},
          {"notes", counts.notes},
          {"diagnostics", diagnostics_json(diagnostics)}};
}

std::string check_text(const std::string& file, const std::vector<isa::Diagnostic>& diagnostics) {
  std::string out;
  for (const auto& d : diagnostics) out += d.str() + "\n";
  const CheckCounts c = count(diagnostics);
  auto plural = [](int n, const char* word) { return fmt::format("{} {}{}", n, word, n == 1 ? "" : "s"); };
  return out + fmt::format("{}: {}, {}, {}\n", file, plural(c.errors, "error"), plural(c.warnings, "warning"),
                           plural(c.notes, "note"));
}

}  // namespace mtsim::scenarios
