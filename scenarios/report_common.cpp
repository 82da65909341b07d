// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "scenarios/report.h"
#include "scenarios/table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

namespace mtsim::scenarios {

namespace {

/// A number stays one in JSON; "bandwidth" is text.
Json value_json(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  return text;
}

/// A bound of a range; whole numbers without an exponent.
std::string bound_text(double bound) {
  constexpr double k_exact = 1e15;
  return bound == std::floor(bound) && std::abs(bound) < k_exact ? fmt::format("{:.0f}", bound)
                                                                 : fmt::format("{:g}", bound);
}

}  // namespace

std::string dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

Json fault_json(const sim::Fault& fault) {
  return {{"kind", to_string(fault.kind)}, {"core", fault.core},         {"cycle", fault.cycle},    {"pc", fault.pc},
          {"packet", fault.packet},        {"place", fault.place.str()}, {"message", fault.message}};
}

Json findings_json(const std::vector<sim::Finding>& findings) {
  Json json = Json::array();
  for (const sim::Finding& finding : findings) {
    Json ends = Json::array();
    for (const sim::FindingEnd& end : finding.ends) {
      ends.push_back({{"what", end.what},
                      {"core", end.core},
                      {"channel", end.channel < 0 ? Json(nullptr) : Json(end.channel)},
                      {"iteration", end.iteration},
                      {"cycle", end.cycle},
                      {"buffer", end.buffer},
                      {"file", end.file},
                      {"line", end.line},
                      {"function", end.function}});
    }
    Json one = {{"kind", finding.kind},
                {"severity", sim::name(finding.severity)},
                {"core", finding.core},
                {"cycle", finding.cycle},
                {"count", finding.count},
                {"message", finding.message},
                {"missing_edge", finding.missing_edge},
                {"ends", std::move(ends)}};
    if (!finding.reason.empty()) one["reason"] = finding.reason;
    json.push_back(std::move(one));
  }
  return json;
}

std::string findings_text(const sim::LaunchResult& launch) {
  std::string out;
  const auto add = [&out](std::string_view word, const sim::Finding& f, const std::string& text) {
    out += fmt::format("{}: {} (core {}, cycle {}): {}\n", word, f.kind, f.core, grouped(f.cycle), text);
  };
  for (const auto& f : launch.findings) add("finding", f, f.message);
  for (const auto& f : launch.notes) add("note", f, f.message);
  for (const auto& f : launch.suppressed) add("suppressed", f, f.reason);
  return out;
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

bool has_overrides(const sim::Machine& machine) {
  const auto& numbers = machine.numbers();
  return std::any_of(numbers.begin(), numbers.end(), [](const auto& n) { return n.overridden; });
}

std::string machine_name(const sim::Machine& machine) {
  std::vector<std::string> words;
  for (const auto& n : machine.numbers()) {
    if (n.overridden) words.push_back(fmt::format("{}={} ({})", n.key, n.value, n.before));
  }
  return machine.config().name + (words.empty() ? "" : " with " + joined(words));
}

std::string machine_text(const sim::Machine& machine) {
  Table table({Align::left, Align::right, Align::left, Align::left, Align::left, Align::left},
              {"key", "value", "unit", "provenance", "plausible", "source"});
  bool any_latency = false;
  for (const auto& n : machine.numbers()) {
    const bool has_range = n.range_low != n.range_high;
    any_latency |= n.key.starts_with("latencies.");
    table.add({n.key, n.value, n.unit, std::string(to_string(n.provenance)) + (n.overridden ? " (overridden)" : ""),
               has_range ? fmt::format("{} - {}", bound_text(n.range_low), bound_text(n.range_high)) : "", n.source});
  }
  return fmt::format("machine {} ({})\n\n{}\n{}\n", machine.config().name, machine.path(), table.text(),
                     any_latency ? "other latencies: the instruction table's (docs/isa.md)"
                                 : "latencies: the instruction table's (docs/isa.md)");
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

std::string CheckCounts::str() const {
  const auto plural = [](int n, const char* word) { return fmt::format("{} {}{}", n, word, n == 1 ? "" : "s"); };
  return fmt::format("{}, {}, {}", plural(errors, "error"), plural(warnings, "warning"), plural(notes, "note"));
}

std::string listing(const std::vector<isa::Diagnostic>& diagnostics, std::string_view hint) {
  constexpr int k_shown = 5;
  const auto limited = [](const isa::Diagnostic& d) {
    return !d.code.empty() && (d.severity == isa::Severity::error || d.severity == isa::Severity::warning);
  };
  std::map<std::string_view, int> left;  // by code
  for (const auto& d : diagnostics) {
    if (limited(d)) ++left[d.code];
  }
  std::map<std::string_view, int> shown;
  std::string out;
  for (const auto& d : diagnostics) {
    if (!limited(d)) {
      out += d.str() + "\n";
      continue;
    }
    const int more = --left[d.code];
    if (++shown[d.code] > k_shown) continue;
    out += d.str() + "\n";
    if (shown[d.code] == k_shown && more > 0) out += fmt::format("... and {} more of {}{}\n", more, d.code, hint);
  }
  return out;
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
  return listing(diagnostics, " (--json FILE has all)") + fmt::format("{}: {}\n", file, count(diagnostics).str());
}

}  // namespace mtsim::scenarios
