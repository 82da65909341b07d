// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "scenarios/report.h"
#include "scenarios/table.h"

namespace mtsim::scenarios {

namespace {

std::string axis_name(Axis axis) { return std::string(k_axis_names[static_cast<std::size_t>(axis)]); }
const std::vector<std::int64_t>& values(const Scenario& scenario, Axis axis) {
  return scenario.grid[static_cast<std::size_t>(axis)];
}

Json shape_json(const kernels::GemmShape& shape) { return {{"m", shape.m}, {"n", shape.n}, {"k", shape.k}}; }
std::string shape_text(const kernels::GemmShape& shape) {
  return fmt::format("m={} n={} k={}", shape.m, shape.n, shape.k);
}

std::vector<std::string> collect(const ScenarioResult& result, std::vector<std::string> GemmOutcome::*list) {
  std::vector<std::string> all;
  for (const auto& cell : result.cells) {
    for (const auto& word : cell.outcome.*list) {
      if (std::find(all.begin(), all.end(), word) == all.end()) all.push_back(word);
    }
  }
  return all;
}

Json cell_json(const CellResult& cell) {
  const GemmOutcome& outcome = cell.outcome;
  Json json;
  json["case"] = shape_json(cell.cell.shape);
  json["metrics"] = Json::object();
  for (const auto& [metric, value] : cell.metrics) json["metrics"][metric] = value;
  json["metrics"]["cycles"] = outcome.launch.cycles;
  json["metrics"]["utilisation"] = outcome.utilisation;
  json["paper"] = Json::object();
  for (const auto& [metric, value] : cell.cell.paper) json["paper"][metric] = value;
  json["error_percent"] = Json::object();
  for (const auto& [metric, value] : cell.error_percent) json["error_percent"][metric] = value;
  if (cell.beside) {
    json["beside"] = {{"variant", to_string(cell.beside->plan.variant)},
                      {"latency_ms", cell.beside->latency_ms},
                      {"gmac_s", cell.beside->gmac_s},
                      {"cycles", cell.beside->launch.cycles}};
  }
  json["status"] = outcome.launch.fault ? "fault" : "done";
  json["findings"] = outcome.launch.findings.size();
  json["notes"] = cell.cell.notes;
  return json;
}

/// Lines about what went wrong in a run; empty when nothing did.
std::string trouble(const GemmOutcome& outcome) {
  const std::string where = shape_text(outcome.plan.shape);
  std::string out;
  if (outcome.launch.fault) out += fmt::format("{}: fault: {}\n", where, outcome.launch.fault->str());
  for (const auto& f : outcome.launch.findings) {
    out += fmt::format("{}: finding: {} (core {}, cycle {}): {}\n", where, f.kind, f.core, f.cycle, f.message);
  }
  return out;
}

/// The lines of one row of the paper's table: what the paper says, what is simulated, the signed error, the rate, and
/// the variant beside it.
class RowLines {
 public:
  void add(const CellResult& cell) {
    const auto reported = cell.cell.paper.find("latency_ms");
    const auto miss = cell.error_percent.find("latency_ms");
    m_has_paper |= reported != cell.cell.paper.end();
    m_paper.push_back(reported == cell.cell.paper.end() ? "-" : fmt::format("{:.2f}", reported->second));
    m_simulated.push_back(fmt::format("{:.2f}", cell.metrics.at("latency_ms")));
    m_error.push_back(miss == cell.error_percent.end() ? "-" : fmt::format("{:+.1f}", miss->second));
    m_rate.push_back(fmt::format("{:.0f}", cell.metrics.at("gmac_s")));
    if (!cell.beside) return;
    m_beside_name = to_string(cell.beside->plan.variant);
    m_beside.push_back(fmt::format("{:.2f}", cell.beside->latency_ms));
  }

  void add_to(Table& table, std::int64_t row) const {
    std::string label = std::to_string(row);
    auto line = [&](const std::string& name, std::vector<std::string> cells) {
      cells.insert(cells.begin(), {std::exchange(label, ""), name});
      table.add(std::move(cells));
    };
    if (m_has_paper) line("paper", m_paper);
    line("simulated", m_simulated);
    if (m_has_paper) line("error %", m_error);
    line("GMAC/s", m_rate);
    if (!m_beside.empty()) line(m_beside_name, m_beside);
  }

 private:
  std::vector<std::string> m_paper, m_simulated, m_error, m_rate, m_beside;
  std::string m_beside_name;
  bool m_has_paper = false;
};

/// " (m=1024, n=256|512)", or "" for a note about all cells.
std::string cells_text(const ScenarioNote& note) {
  std::vector<std::string> words;
  for (std::size_t a = 0; a < k_axes; ++a) {
    if (!note.where[a].empty()) words.push_back(fmt::format("{}={}", k_axis_names[a], fmt::join(note.where[a], "|")));
  }
  return words.empty() ? "" : " (" + joined(words) + ")";
}

/// "two numbers fitted: ddr.bandwidth_gb_s = 31.4 GB/s, ...".
std::string fitted_numbers(const sim::Machine& machine) {
  std::vector<std::string> fitted;
  for (const auto& n : machine.numbers()) {
    if (n.provenance == sim::Provenance::fitted) fitted.push_back(fmt::format("{} = {} {}", n.key, n.value, n.unit));
  }
  if (fitted.empty()) return "no number fitted";
  constexpr std::array k_words = {"one number", "two numbers", "three numbers"};
  const std::string count =
      fitted.size() <= k_words.size() ? k_words[fitted.size() - 1] : fmt::format("{} numbers", fitted.size());
  return fmt::format("{} fitted: {}", count, joined(fitted));
}

}  // namespace

Json scenario_json(const Scenario& scenario, const ScenarioResult& result, const sim::Machine& machine) {
  Json json;
  json["name"] = scenario.name;
  json["title"] = scenario.title;
  json["scenario"] = scenario.path;
  json["operator"] = "gemm";
  json["dtype"] = scenario.dtype;
  json["variant"] = to_string(scenario.sequence.variant);
  json["depth"] = to_string(scenario.depth);
  json["rows"] = axis_name(scenario.rows);
  json["columns"] = axis_name(scenario.columns);
  json["paper_source"] = scenario.paper_source;
  json["cases"] = Json::array();
  for (const auto& cell : result.cells) json["cases"].push_back(cell_json(cell));
  json["summary"] = Json::object();
  for (const auto& [metric, summary] : result.summary) {
    json["summary"][metric] = {{"mape_percent", summary.mape_percent},
                               {"worst_percent", summary.worst_percent},
                               {"worst_case", shape_json(result.cells[summary.worst_cell].cell.shape)},
                               {"cases", summary.cells}};
  }
  json["machine"] = machine_json(machine);
  json["assumed"] = {{"instructions", collect(result, &GemmOutcome::assumed_instructions)},
                     {"packet_rules", collect(result, &GemmOutcome::assumed_packet_rules)},
                     {"machine", assumed_machine_keys(machine)}};
  json["notes"] = Json::array({k_not_modelled});
  for (const auto& note : scenario.notes) json["notes"].push_back(note.text);
  json["host"] = {{"wall_s", result.wall_s}};
  return json;
}

std::string scenario_text(const Scenario& scenario, const ScenarioResult& result, const sim::Machine& machine) {
  const auto& columns = values(scenario, scenario.columns);
  const auto third =
      static_cast<std::size_t>(k_axes - static_cast<int>(scenario.rows) - static_cast<int>(scenario.columns));
  std::string out = fmt::format("{}\n{} = {}, {}, variant {}, {} depth; latency in ms, launch included\n\n",
                                scenario.title, k_axis_names[third], scenario.grid[third].front(), scenario.dtype,
                                to_string(scenario.sequence.variant), to_string(scenario.depth));
  std::vector<Align> align(columns.size() + 2, Align::right);
  align[0] = align[1] = Align::left;
  std::vector<std::string> header = {axis_name(scenario.rows), axis_name(scenario.columns)};
  for (const std::int64_t column : columns) header.push_back(std::to_string(column));
  Table table(align, header);
  std::size_t at = 0;
  for (const std::int64_t row : values(scenario, scenario.rows)) {
    RowLines lines;
    for (std::size_t c = 0; c < columns.size(); ++c) lines.add(result.cells[at++]);
    lines.add_to(table, row);
  }
  out += table.text() + "\n";
  for (const auto& [metric, summary] : result.summary) {
    out += fmt::format("{}: mean absolute error {:.1f} % over {} cells, worst {:+.1f} % at {}\n", metric,
                       summary.mape_percent, summary.cells, summary.worst_percent,
                       shape_text(result.cells[summary.worst_cell].cell.shape));
  }
  const bool as_shipped = !has_overrides(machine);  // the scenario's notes speak of that machine
  const bool reads_paper =
      as_shipped && scenario.sequence.variant == kernels::GemmVariant::paper && !scenario.notes.empty();
  out += fmt::format("machine {}; {}{}\n", machine_name(machine), fitted_numbers(machine),
                     reads_paper ? "; the sequence of the paper is one reading of its text (see notes)" : "");
  out += fmt::format("note: {}\n", k_not_modelled);
  for (const auto& note : as_shipped ? scenario.notes : decltype(scenario.notes){})
    out += fmt::format("note{}: {}\n", cells_text(note), note.text);
  for (const auto& cell : result.cells) {
    out += trouble(cell.outcome);
    if (cell.beside) out += trouble(*cell.beside);
  }
  out += fmt::format("host: {:.1f} s\n", result.wall_s);
  return out;
}

std::string fit_step_text(const std::vector<FitParameter>& parameters, const FitStep& step) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    words.push_back(fmt::format("{} = {}", parameters[i].key, step.values[i]));
  return fmt::format("  {}: {:.2f} %{}", joined(words), step.mape_percent, step.best ? "  best so far" : "");
}

Json fit_json(const Scenario& scenario, const FitResult& result) {
  Json json;
  json["fit"] = scenario.name;
  json["title"] = scenario.title;
  json["scenario"] = scenario.path;
  json["metric"] = k_fit_metric;
  json["parameters"] = Json::object();
  for (const auto& p : result.parameters) {
    json["parameters"][p.key] = {{"value", p.value},
                                 {"unit", p.unit},
                                 {"range", {p.plausible_low, p.plausible_high}},
                                 {"searched", {p.low, p.high}},
                                 {"sensitivity", {p.sensitivity_low, p.sensitivity_high}}};
  }
  json["mape_percent"] = result.mape_percent;
  json["sensitivity_tolerance_percent"] = k_fit_tolerance_percent;
  json["evaluations"] = result.evaluations;
  json["residuals"] = Json::array();
  for (const auto& cell : result.residuals.cells) {
    const auto error = cell.error_percent.find(std::string(k_fit_metric));
    if (error == cell.error_percent.end()) continue;
    json["residuals"].push_back({{"case", shape_json(cell.cell.shape)},
                                 {"paper", cell.cell.paper.at(std::string(k_fit_metric))},
                                 {"fitted", cell.metrics.at(std::string(k_fit_metric))},
                                 {"error_percent", error->second}});
  }
  return json;
}

std::string fit_text(const Scenario& scenario, const FitResult& result) {
  Table table(
      {Align::left, Align::right, Align::right, Align::left, Align::left, Align::left},
      {"parameter", "before", "fitted", "unit", fmt::format("within +{:g} %", k_fit_tolerance_percent), "plausible"});
  std::string warnings;
  for (const auto& p : result.parameters) {
    table.add({p.key, fmt::format("{:g}", p.start), fmt::format("{:g}", p.value), p.unit,
               fmt::format("{:.3g} - {:.3g}", p.sensitivity_low, p.sensitivity_high),
               fmt::format("{:g} - {:g}", p.plausible_low, p.plausible_high)});
    if (p.value < p.plausible_low || p.value > p.plausible_high) {
      warnings += fmt::format("note: {} lies outside its plausible range{}\n", p.key,
                              p.value <= p.low || p.value >= p.high ? ", at the end of what was searched" : "");
    }
  }
  Table cells({Align::left, Align::right, Align::right, Align::right}, {"cell", "paper", "fitted", "error %"});
  const std::string metric(k_fit_metric);
  for (const auto& cell : result.residuals.cells) {
    if (!cell.error_percent.contains(metric)) continue;
    cells.add({shape_text(cell.cell.shape), fmt::format("{:.2f}", cell.cell.paper.at(metric)),
               fmt::format("{:.2f}", cell.metrics.at(metric)), fmt::format("{:+.1f}", cell.error_percent.at(metric))});
  }
  return fmt::format("{}: mean absolute error of {} {:.2f} % (before {:.2f} %), {} evaluations\n\n{}\n{}{}",
                     scenario.name, k_fit_metric, result.mape_percent, result.start_mape_percent, result.evaluations,
                     table.text(2), warnings, cells.text(2));
}

}  // namespace mtsim::scenarios
