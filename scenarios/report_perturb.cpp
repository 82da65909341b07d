// SPDX-License-Identifier: Apache-2.0
// Bands of results on machines drawn from plausible ranges, and why a result may lie outside its own.
#include <fmt/format.h>

#include <cstdlib>
#include <map>

#include "scenarios/report.h"
#include "scenarios/table.h"

namespace mtsim::scenarios {

namespace {

// A value in the outer fifth of its range is at one side of it.
constexpr double k_side = 0.2;

/// Where the value in use lies in its plausible range, 0 to 1.
double place_in_range(const sim::MachineNumber& n) {
  return (std::strtod(n.value.c_str(), nullptr) - n.range_low) / (n.range_high - n.range_low);
}

/// "12 numbers: 9 assumed, 2 fitted, 1 published".
std::string provenance_text(const Perturbation& perturbation) {
  std::map<std::string, int> counts;
  for (const auto& n : perturbation.drawn) ++counts[std::string(to_string(n.provenance))];
  std::vector<std::string> words;
  for (const auto& [provenance, count] : counts) words.push_back(fmt::format("{} {}", count, provenance));
  return fmt::format("{} numbers: {}", perturbation.drawn.size(), joined(words));
}

std::string_view side_of(double value, const Band& band) {
  return value < band.low ? "below" : value > band.high ? "above" : "inside";
}

}  // namespace

Json band_json(const CellResult& cell, const std::map<std::string, Band>& bands) {
  Json json = Json::object();
  for (const auto& [metric, band] : bands) {
    json[metric] = {{"low", band.low}, {"median", band.median}, {"high", band.high}};
    if (const auto value = cell.metrics.find(metric); value != cell.metrics.end())
      json[metric]["value_is"] = side_of(value->second, band);
  }
  return json;
}

Json perturbation_json(const Perturbation& perturbation) {
  Json drawn = Json::object();
  for (const auto& n : perturbation.drawn) {
    drawn[n.key] = {{"value", n.value}, {"range", {n.range_low, n.range_high}},  {"place_in_range", place_in_range(n)},
                    {"unit", n.unit},   {"provenance", to_string(n.provenance)}, {"source", n.source}};
  }
  return {{"samples", perturbation.samples},
          {"seed", perturbation.seed},
          {"percentiles", {5, 95}},
          {"provenance", "plausible ranges of " + provenance_text(perturbation)},
          {"drawn", drawn}};
}

std::string perturbation_text(const Scenario& scenario, const ScenarioResult& result) {
  const Perturbation& perturbation = *result.perturbation;
  std::vector<std::string> words, aside;
  for (const auto& n : perturbation.drawn) {
    words.push_back(
        fmt::format("{} {:g}-{:g} {} ({})", n.key, n.range_low, n.range_high, n.unit, to_string(n.provenance)));
    if (const double place = place_in_range(n); place < k_side || place > 1 - k_side)
      aside.push_back(fmt::format("{} {} of {:g}-{:g}", n.key, n.value, n.range_low, n.range_high));
  }
  std::string text = fmt::format(
      "band: 5th to 95th percentile of {} machines with all these drawn at once, each evenly from its "
      "plausible range (seed {}): {}\n",
      perturbation.samples, perturbation.seed, joined(words));
  text += fmt::format("provenance of the band: plausible ranges of {}\n", provenance_text(perturbation));
  std::vector<std::string> outside;
  for (std::size_t i = 0; i < result.cells.size(); ++i) {
    const CellResult& cell = result.cells[i];
    if (cell.misfit) continue;
    const double value = cell.metrics.at("latency_ms");
    const auto side = side_of(value, perturbation.bands[i].at("latency_ms"));
    if (side != "inside") outside.push_back(fmt::format("{} ({})", scenario.text(cell.cell.at), side));
  }
  if (outside.empty()) return text;
  text += fmt::format("outside their own band: {}\n", joined(outside));
  text += aside.empty() ? "the samples differ from the machine in all these numbers at once\n"
                        : fmt::format(
                              "a band is not centred on the value where ranges reach to one side of the number in "
                              "use: {}\n",
                              joined(aside));
  return text;
}

}  // namespace mtsim::scenarios
