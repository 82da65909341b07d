// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "scenarios/report.h"
#include "scenarios/table.h"

namespace mtsim::scenarios {

namespace {

/// The dimensions of a cell, and its dtype where that varies.
Json case_json(const Scenario& scenario, const Point& at) {
  Json json;
  for (std::size_t a = 0; a < scenario.axes.size(); ++a) {
    const Axis& axis = scenario.axes[a];
    if (!axis.is_named() && at[a] != 0) json[axis.name] = at[a];  // 0: as the dimension's help says
    if (!axis.words.empty()) json[axis.name] = axis.text(at[a]);
    if (axis.is_dtype && axis.values.size() > 1) json[axis.name] = axis.text(at[a]);
  }
  return json;
}

/// "f32", or all of them.
Json dtype_json(const Scenario& scenario) {
  const Axis& axis = scenario.axes.back();
  if (axis.values.size() == 1) return axis.text(axis.values.front());
  Json json = Json::array();
  for (const std::int64_t value : axis.values) json.push_back(axis.text(value));
  return json;
}

Json summary_json(const Scenario& scenario, const ScenarioResult& result,
                  const std::map<std::string, MetricSummary>& summaries) {
  Json json = Json::object();
  for (const auto& [metric, summary] : summaries) {
    json[metric] = {{"mape_percent", summary.mape_percent},
                    {"worst_percent", summary.worst_percent},
                    {"worst_case", case_json(scenario, result.cells[summary.worst_cell].cell.at)},
                    {"cases", summary.cells}};
  }
  return json;
}

std::vector<std::string> collect(const ScenarioResult& result, std::vector<std::string> OperatorOutcome::*list) {
  std::vector<std::string> all;
  for (const auto& cell : result.cells) {
    for (const auto& word : cell.outcome.*list) {
      if (std::find(all.begin(), all.end(), word) == all.end()) all.push_back(word);
    }
  }
  return all;
}

/// The word of a variant that another one does not have.
std::string difference(const OperatorOutcome& outcome, const OperatorOutcome& other) {
  const auto &words = outcome.request.spec.variant, &others = other.request.spec.variant;
  const auto found = std::mismatch(words.begin(), words.end(), others.begin(), others.end()).first;
  return found == words.end() ? outcome.variant() : *found;
}

Json cell_json(const Scenario& scenario, const CellResult& cell) {
  const OperatorOutcome& outcome = cell.outcome;
  Json json;
  json["case"] = case_json(scenario, cell.cell.at);
  json["metrics"] = Json::object();
  for (const auto& [metric, value] : cell.metrics) json["metrics"][metric] = value;
  if (scenario.sweeps_tiles()) json["memory"] = memory_json(cell);
  if (cell.misfit) {
    json["status"] = "does_not_fit";
    json["why_not"] = cell.misfit->message;
    return json;
  }
  json["metrics"]["cycles"] = outcome.launch.cycles;
  json["metrics"]["utilisation"] = outcome.utilisation;
  if (const auto reported = cell.paper_utilisation()) json["paper_utilisation"] = *reported;  // eq. (23)
  json["paper"] = Json::object();
  for (const auto& [metric, value] : cell.cell.paper) json["paper"][metric] = value;
  json["error_percent"] = Json::object();
  for (const auto& [metric, value] : cell.error_percent) json["error_percent"][metric] = value;
  if (cell.beside) {
    json["beside"] = {{"variant", difference(*cell.beside, outcome)},
                      {"latency_ms", cell.beside->latency_ms},
                      {"cycles", cell.beside->launch.cycles}};
    if (cell.beside->gmac_s > 0) json["beside"]["gmac_s"] = cell.beside->gmac_s;
  }
  json["status"] = outcome.launch.fault ? "fault" : "done";
  json["findings"] = findings_json(outcome.launch.findings);
  json["suppressed"] = findings_json(outcome.launch.suppressed);
  json["notes"] = cell.cell.notes;
  return json;
}

/// Lines about what went wrong in a run; empty when nothing did.
std::string trouble(const OperatorOutcome& outcome) {
  std::string out;
  if (outcome.passed()) return out;
  const std::string where = outcome.shape();
  if (outcome.launch.fault) out += fmt::format("{}: fault: {}\n", where, outcome.launch.fault->str());
  for (const auto& f : outcome.launch.findings) {
    out += fmt::format("{}: finding: {} (core {}, cycle {}): {}\n", where, f.kind, f.core, f.cycle, f.message);
  }
  return out;
}

/// What the scenario says of its variant beyond the axis of one.
std::string variant_of(const Scenario& scenario) {
  const bool axis =
      std::any_of(scenario.axes.begin(), scenario.axes.end(), [](const Axis& a) { return !a.words.empty(); });
  const std::size_t first = axis ? 1 : 0;
  return scenario.variant.size() > first ? scenario.variant[first] : "";
}

/// The lines of one row of the paper's table: what the paper says, what is simulated, the signed error, the rate, and
/// the variant beside it.
class RowLines {
 public:
  void add(const CellResult& cell, const std::map<std::string, Band>* bands, bool has_beside) {
    if (cell.misfit) return add_nothing(bands != nullptr, has_beside);
    if (bands != nullptr) {
      const Band& band = bands->at("latency_ms");
      m_band.push_back(fmt::format("{:.2f}-{:.2f}", band.low, band.high));
    }
    const auto reported = cell.cell.paper.find("latency_ms");
    const auto miss = cell.error_percent.find("latency_ms");
    m_has_paper |= reported != cell.cell.paper.end();
    m_paper.push_back(reported == cell.cell.paper.end() ? "-" : fmt::format("{:.2f}", reported->second));
    m_simulated.push_back(fmt::format("{:.2f}", cell.metrics.at("latency_ms")));
    m_error.push_back(miss == cell.error_percent.end() ? "-" : fmt::format("{:+.1f}", miss->second));
    const auto macs = cell.metrics.find("gmac_s");
    m_rate_name = macs != cell.metrics.end() ? "GMAC/s" : "GB/s";
    m_rate.push_back(macs != cell.metrics.end() ? fmt::format("{:.0f}", macs->second)
                                                : fmt::format("{:.1f}", cell.metrics.at("ddr_gb_s")));
    if (!has_beside) return;
    if (cell.beside) m_beside_name = difference(*cell.beside, cell.outcome);
    m_beside.push_back(cell.beside ? fmt::format("{:.2f}", cell.beside->latency_ms) : "-");
  }

  void add_to(Table& table, std::string label) const {
    auto line = [&](const std::string& name, std::vector<std::string> cells) {
      cells.insert(cells.begin(), {std::exchange(label, ""), name});
      table.add(std::move(cells));
    };
    if (m_has_paper) line("paper", m_paper);
    line("simulated", m_simulated);
    if (!m_band.empty()) line("band", m_band);
    if (m_has_paper) line("error %", m_error);
    if (!m_rate_name.empty()) line(m_rate_name, m_rate);
    if (!m_beside.empty()) line(m_beside_name, m_beside);
  }

 private:
  void add_nothing(bool has_band, bool has_beside) {
    for (auto* cells : {&m_paper, &m_simulated, &m_error, &m_rate}) cells->emplace_back("-");
    if (has_band) m_band.emplace_back("-");
    if (has_beside) m_beside.emplace_back("-");
  }

  std::vector<std::string> m_paper, m_simulated, m_band, m_error, m_rate, m_beside;
  std::string m_beside_name, m_rate_name;
  bool m_has_paper = false;
};

/// "k = 4096, f32": the axes that do not vary in the tables.
std::string fixed_text(const Scenario& scenario) {
  std::vector<std::string> words;
  for (const std::size_t a : scenario.fixed_axes()) {
    const Axis& axis = scenario.axes[a];
    if (!axis.is_named() && axis.values.front() == 0) continue;  // as the dimension's help says
    const std::string value = axis.text(axis.values.front());
    words.push_back(axis.is_dtype ? value : fmt::format("{} = {}", axis.name, value));
  }
  return joined(words);
}

std::string summary_text(const Scenario& scenario, const ScenarioResult& result,
                         const std::map<std::string, MetricSummary>& summaries) {
  std::string out;
  for (const auto& [metric, summary] : summaries) {
    out += fmt::format("{}: mean absolute error {:.1f} % over {} cells, worst {:+.1f} % at {}\n", metric,
                       summary.mape_percent, summary.cells, summary.worst_percent,
                       scenario.text(result.cells[summary.worst_cell].cell.at));
  }
  return out;
}

/// One table in the paper's layout, of the cells from `at` on, which moves behind them.
std::string table_text(const Scenario& scenario, const ScenarioResult& result, std::size_t& at) {
  const Axis &rows = scenario.axes[scenario.rows], &columns = scenario.axes[scenario.columns];
  std::vector<Align> align(columns.values.size() + 2, Align::right);
  align[0] = align[1] = Align::left;
  std::vector<std::string> header = {rows.name, columns.name};
  for (const std::int64_t column : columns.values) header.push_back(columns.text(column));
  Table table(align, header);
  for (const std::int64_t row : rows.values) {
    RowLines lines;
    for (std::size_t c = 0; c < columns.values.size(); ++c, ++at)
      lines.add(result.cells[at], result.perturbation ? &result.perturbation->bands[at] : nullptr,
                scenario.beside.has_value());
    lines.add_to(table, rows.text(row));
  }
  return table.text();
}

/// The figure that shows the table's latencies as percent of the peak: the paper's by its eq. (23), and ours.
std::string utilisation_text(const Scenario& scenario, const ScenarioResult& result, std::size_t first) {
  const Axis &rows = scenario.axes[scenario.rows], &columns = scenario.axes[scenario.columns];
  std::vector<Align> align(columns.values.size() + 1, Align::right);
  align[0] = Align::left;
  std::vector<std::string> header = {rows.name};
  for (const std::int64_t column : columns.values) header.push_back(columns.text(column));
  Table table(align, header);
  std::size_t at = first;
  for (const std::int64_t row : rows.values) {
    std::vector<std::string> line = {rows.text(row)};
    for (std::size_t c = 0; c < columns.values.size(); ++c) {
      const CellResult& cell = result.cells[at++];
      const auto reported = cell.paper_utilisation();
      line.push_back(fmt::format("{} / {:.0f}", reported ? fmt::format("{:.0f}", 100 * *reported) : "-",
                                 100 * cell.outcome.utilisation));
    }
    table.add(std::move(line));
  }
  return fmt::format("{}: percent of the peak of {:.0f} GMAC/s, paper (eq. 23) / simulated\n{}",
                     scenario.utilisation_figure, result.cells[first].outcome.peak_gmac_s, table.text());
}

/// What one table gains over another in the same cell.
struct Speedup {
  std::size_t cell = 0;  // of the slower one
  double simulated = 0;
  std::optional<double> paper, beside;
};

/// Of the scenario's `speedup_of` over every other table, cell by cell.
std::vector<Speedup> speedups(const Scenario& scenario, const ScenarioResult& result) {
  std::vector<Speedup> all;
  if (!scenario.speedup_of) return all;
  const std::size_t axis = *scenario.tables;
  for (std::size_t i = 0; i < result.cells.size(); ++i) {
    const CellResult& slower = result.cells[i];
    if (slower.cell.at[axis] == *scenario.speedup_of) continue;
    Point at = slower.cell.at;
    at[axis] = *scenario.speedup_of;
    const auto faster = std::find_if(result.cells.begin(), result.cells.end(),
                                     [&](const CellResult& cell) { return cell.cell.at == at; });
    if (faster == result.cells.end() || slower.misfit || faster->misfit) continue;  // --set left that table out
    Speedup speedup{i, slower.metrics.at("latency_ms") / faster->metrics.at("latency_ms"), {}, {}};
    const auto paper = slower.cell.paper.find("latency_ms"), base = faster->cell.paper.find("latency_ms");
    if (paper != slower.cell.paper.end() && base != faster->cell.paper.end())
      speedup.paper = paper->second / base->second;
    if (slower.beside && faster->beside) speedup.beside = slower.beside->latency_ms / faster->beside->latency_ms;
    all.push_back(speedup);
  }
  return all;
}

/// Mean of |simulated - paper|.
std::optional<double> mean_deviation(const std::vector<Speedup>& all) {
  double sum = 0;
  int count = 0;
  for (const Speedup& speedup : all) {
    if (!speedup.paper) continue;
    sum += std::abs(speedup.simulated - *speedup.paper);
    ++count;
  }
  return count == 0 ? std::nullopt : std::optional(sum / count);
}

Json speedups_json(const Scenario& scenario, const ScenarioResult& result) {
  const std::vector<Speedup> all = speedups(scenario, result);
  Json json = {{"figure", scenario.speedup_figure}, {"cases", Json::array()}};
  for (const Speedup& speedup : all) {
    Json one = {{"over", case_json(scenario, result.cells[speedup.cell].cell.at)}, {"simulated", speedup.simulated}};
    if (speedup.paper) one["paper"] = *speedup.paper;
    if (speedup.beside) one["beside"] = *speedup.beside;
    json["cases"].push_back(std::move(one));
  }
  if (const auto deviation = mean_deviation(all)) json["mean_deviation"] = *deviation;
  return json;
}

std::string speedups_text(const Scenario& scenario, const ScenarioResult& result) {
  const Axis &tables = scenario.axes[*scenario.tables], &rows = scenario.axes[scenario.rows],
             &columns = scenario.axes[scenario.columns];
  std::vector<std::string> header = {"over", rows.name};
  for (const std::int64_t column : columns.values) header.push_back(columns.text(column));
  std::vector<Align> align(header.size(), Align::right);
  align[0] = Align::left;
  Table table(align, header);
  const std::vector<Speedup> all = speedups(scenario, result);
  if (all.empty()) return "";
  std::vector<std::string> line;
  for (const Speedup& speedup : all) {
    const Point& at = result.cells[speedup.cell].cell.at;
    if (line.empty()) line = {tables.text(at[*scenario.tables]), rows.text(at[scenario.rows])};
    line.push_back(
        fmt::format("{} / {:.2f}", speedup.paper ? fmt::format("{:.2f}", *speedup.paper) : "-", speedup.simulated));
    if (line.size() == header.size()) table.add(std::exchange(line, {}));
  }
  const auto deviation = mean_deviation(all);
  return fmt::format("{}: times as fast is {}, paper / simulated{}\n{}", scenario.speedup_figure,
                     tables.text(*scenario.speedup_of),
                     deviation ? fmt::format("; mean deviation {:.2f}", *deviation) : "", table.text());
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
  json["operator"] = scenario.op->info().name;
  json["dtype"] = dtype_json(scenario);
  if (const std::string variant = variant_of(scenario); !variant.empty()) json["variant"] = variant;
  json["depth"] = to_string(scenario.depth);
  json["rows"] = scenario.axes[scenario.rows].name;
  json["columns"] = scenario.axes[scenario.columns].name;
  if (scenario.tables) json["tables"] = scenario.axes[*scenario.tables].name;
  json["paper_source"] = scenario.paper_source;
  json["cases"] = Json::array();
  for (std::size_t i = 0; i < result.cells.size(); ++i) {
    json["cases"].push_back(cell_json(scenario, result.cells[i]));
    if (!result.perturbation) continue;
    json["cases"].back()["band"] = band_json(result.cells[i], result.perturbation->bands[i]);
  }
  if (result.perturbation) json["perturbation"] = perturbation_json(*result.perturbation);
  json["summary"] = summary_json(scenario, result, result.summary);
  for (const auto& [table, summaries] : result.table_summary)
    json["table_summary"][scenario.axes[*scenario.tables].text(table)] = summary_json(scenario, result, summaries);
  if (scenario.speedup_of) json["speedups"] = speedups_json(scenario, result);
  json["machine"] = machine_json(machine);
  json["assumed"] = {{"instructions", collect(result, &OperatorOutcome::assumed_instructions)},
                     {"packet_rules", collect(result, &OperatorOutcome::assumed_packet_rules)},
                     {"machine", assumed_machine_keys(machine)}};
  json["notes"] = Json::array({k_not_modelled});
  for (const auto& note : scenario.notes) json["notes"].push_back(note.text);
  json["host"] = {{"wall_s", result.wall_s}};
  return json;
}

std::string scenario_text(const Scenario& scenario, const ScenarioResult& result, const sim::Machine& machine) {
  const std::string word = variant_of(scenario), variant = word.empty() ? "" : fmt::format("variant {}, ", word);
  const std::string fixed = fixed_text(scenario);
  std::string out = fmt::format("{}\n{}{}{} depth; latency in ms, launch included\n\n", scenario.title,
                                fixed.empty() ? "" : fixed + ", ", variant, to_string(scenario.depth));
  std::size_t at = 0;
  if (scenario.tables) {
    const Axis& tables = scenario.axes[*scenario.tables];
    for (const std::int64_t value : tables.values) {
      const std::size_t first = at;
      out += fmt::format("{} = {}\n{}", tables.name, tables.text(value), table_text(scenario, result, at));
      const auto summaries = result.table_summary.find(value);
      if (summaries != result.table_summary.end()) out += summary_text(scenario, result, summaries->second);
      if (!scenario.utilisation_figure.empty()) out += "\n" + utilisation_text(scenario, result, first);
      out += "\n";
    }
  } else {
    out += table_text(scenario, result, at) + "\n";
    if (!scenario.utilisation_figure.empty()) out += utilisation_text(scenario, result, 0) + "\n";
  }
  if (scenario.speedup_of) out += speedups_text(scenario, result) + "\n";
  out += summary_text(scenario, result, result.summary);
  const bool as_shipped = !has_overrides(machine);  // the scenario's notes speak of that machine
  const bool reads_paper = as_shipped && word == "paper" && !scenario.notes.empty();
  out += fmt::format("machine {}; {}{}\n", machine_name(machine), fitted_numbers(machine),
                     reads_paper ? "; the sequence of the paper is one reading of its text (see notes)" : "");
  if (scenario.sweeps_tiles()) out += memory_text(scenario, result, machine) + "\n";
  if (result.perturbation) out += perturbation_text(scenario, result);
  out += fmt::format("note: {}\n", k_not_modelled);
  for (const auto& note : as_shipped ? scenario.notes : decltype(scenario.notes){})
    out += fmt::format("note{}: {}\n", scenario.cells_text(note), note.text);
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
    json["residuals"].push_back({{"case", case_json(scenario, cell.cell.at)},
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
    cells.add({scenario.text(cell.cell.at), fmt::format("{:.2f}", cell.cell.paper.at(metric)),
               fmt::format("{:.2f}", cell.metrics.at(metric)), fmt::format("{:+.1f}", cell.error_percent.at(metric))});
  }
  return fmt::format("{}: mean absolute error of {} {:.2f} % (before {:.2f} %), {} evaluations\n\n{}\n{}{}",
                     scenario.name, k_fit_metric, result.mape_percent, result.start_mape_percent, result.evaluations,
                     table.text(2), warnings, cells.text(2));
}

}  // namespace mtsim::scenarios
