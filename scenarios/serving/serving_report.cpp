// SPDX-License-Identifier: Apache-2.0
#include "scenarios/serving/serving_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "scenarios/report.h"
#include "scenarios/table.h"

namespace mtsim::scenarios {
namespace {

const std::string k_metric(k_serving_metric);

/// "781", "26.4", "1.02": three digits.
std::string rate_text(double tokens_s) {
  const int digits = tokens_s >= 100 ? 0 : tokens_s >= 10 ? 1 : 2;
  return fmt::format("{:.{}f}", tokens_s, digits);
}

Json case_json(const ServingScenario& scenario, const Point& at) {
  Json json;
  for (std::size_t a = 0; a < scenario.axes.size(); ++a) {
    const Axis& axis = scenario.axes[a];
    if (axis.is_named()) {
      if (a != ServingScenario::k_plan || axis.words.size() > 1) json[axis.name] = axis.text(at[a]);
    } else if (at[a] != 0) {
      json[axis.name] = at[a];
    }
  }
  return json;
}

Json summary_json(const ServingScenario& scenario, const ServingRun& run, const MetricSummary& summary) {
  if (summary.cells == 0) return Json::object();
  return {{k_metric,
           {{"mape_percent", summary.mape_percent},
            {"worst_percent", summary.worst_percent},
            {"worst_case", case_json(scenario, run.cells[summary.worst_cell].cell.at)},
            {"cases", summary.cells}}}};
}

Json columns_json(const ServingScenario& scenario, const ServingRun& run,
                  const std::map<std::int64_t, MetricSummary>& columns) {
  Json json = Json::object();
  for (const auto& [column, summary] : columns)
    json[scenario.axes[scenario.columns].text(column)] = summary_json(scenario, run, summary);
  return json;
}

Json cell_json(const ServingScenario& scenario, const ServingCell& cell) {
  Json json = {{"case", case_json(scenario, cell.cell.at)}};
  json.update(cell.outcome.json);
  json["model"] = scenario.model_names[static_cast<std::size_t>(cell.cell.at[ServingScenario::k_model])];
  json["paper"] = Json::object();
  for (const auto& [metric, value] : cell.cell.paper) json["paper"][metric] = value;
  json["error_percent"] = Json::object();
  for (const auto& [metric, value] : cell.error_percent) json["error_percent"][metric] = value;
  json["beside"] = Json::object();
  for (const auto& [name, outcome] : cell.beside) json["beside"][name] = outcome.json;
  if (cell.band)
    json["band"] = {{k_metric, {{"low", cell.band->low}, {"median", cell.band->median}, {"high", cell.band->high}}}};
  json["notes"] = cell.cell.notes;
  return json;
}

Json reported_json(const ServingScenario& scenario) {
  Json json = Json::array();
  const Axis &rows = scenario.axes[scenario.rows], &columns = scenario.axes[scenario.columns];
  for (const ReportedRow& row : scenario.reported) {
    Json values = Json::object();
    for (const std::int64_t r : rows.values) {
      for (const std::int64_t c : columns.values) {
        const auto value = row.values.find({r, c});
        values[rows.text(r)][columns.text(c)] = value == row.values.end() ? Json(nullptr) : Json(value->second);
      }
    }
    json.push_back({{"system", row.system}, {"source", "reported"}, {k_metric, std::move(values)}});
  }
  return json;
}

/// What the plans of the scenario rest on that nobody has printed.
std::vector<std::string> assumed_plans(const ServingRun& run) {
  std::set<std::string> plans;
  for (const ServingCell& cell : run.cells) {
    const Json& plan = cell.outcome.json.at("plan");
    if (plan.at("source") == "assumed") plans.insert(plan.at("text").get<std::string>());
  }
  return {plans.begin(), plans.end()};
}

/// The lines of one row of the paper's table.
class RowLines {
 public:
  RowLines(const ServingScenario& scenario, const ServingRun& run) : m_scenario(scenario), m_run(run) {}

  void add(const ServingCell& cell) {
    const auto paper = cell.cell.paper.find(k_metric);
    const auto error = cell.error_percent.find(k_metric);
    put("paper", paper == cell.cell.paper.end() ? "-" : rate_text(paper->second));
    put("simulated", value_text(cell.outcome));
    if (!m_run.drawn.empty())
      put("band", cell.band ? fmt::format("{}..{}", rate_text(cell.band->low), rate_text(cell.band->high)) : "-");
    put("error %", error == cell.error_percent.end() ? "-" : fmt::format("{:+.1f}", error->second));
    for (const BatchRule rule : m_scenario.beside) beside(cell, std::string(to_string(rule)));
    if (m_scenario.search_beside) beside(cell, std::string(k_search));
  }

  void add_to(Table& table, std::string label) const {
    for (const auto& [name, cells] : m_lines) {
      const bool nothing = std::all_of(cells.begin(), cells.end(), [](const std::string& c) { return c == "-"; });
      if (nothing && name != "simulated") continue;
      std::vector<std::string> line = {std::exchange(label, ""), name};
      line.insert(line.end(), cells.begin(), cells.end());
      table.add(std::move(line));
    }
  }

 private:
  static std::string value_text(const ServingOutcome& outcome) {
    return outcome.fits() ? rate_text(outcome.metric(k_metric)) : "no room";
  }
  void beside(const ServingCell& cell, const std::string& name) {
    const auto outcome = cell.beside.find(name);
    put(name == k_search ? "planner" : name, outcome == cell.beside.end() ? "-" : value_text(outcome->second));
  }
  void put(const std::string& name, std::string text) {
    auto line = std::find_if(m_lines.begin(), m_lines.end(), [&](const auto& l) { return l.first == name; });
    if (line == m_lines.end()) line = m_lines.insert(line, {name, {}});
    line->second.push_back(std::move(text));
  }

  const ServingScenario& m_scenario;
  const ServingRun& m_run;
  std::vector<std::pair<std::string, std::vector<std::string>>> m_lines;
};

Table table_of(const ServingScenario& scenario, const std::string& second) {
  const Axis &rows = scenario.axes[scenario.rows], &columns = scenario.axes[scenario.columns];
  std::vector<Align> align(columns.values.size() + 2, Align::right);
  align[0] = align[1] = Align::left;
  std::vector<std::string> header = {rows.name, second};
  for (const std::int64_t column : columns.values)
    header.push_back(columns.is_named() ? columns.text(column)
                                        : fmt::format("{} {}", columns.name, columns.text(column)));
  return {align, header};
}

/// One table in the paper's layout, of the cells from `at` on, which moves behind them.
std::string table_text(const ServingScenario& scenario, const ServingRun& run, std::size_t& at) {
  const Axis &rows = scenario.axes[scenario.rows], &columns = scenario.axes[scenario.columns];
  Table table = table_of(scenario, "tokens/s");
  for (const std::int64_t row : rows.values) {
    RowLines lines(scenario, run);
    for (std::size_t c = 0; c < columns.values.size(); ++c, ++at) lines.add(run.cells[at]);
    lines.add_to(table, rows.text(row));
  }
  return table.text();
}

std::string reported_text(const ServingScenario& scenario) {
  if (scenario.reported.empty()) return "";
  const Axis &rows = scenario.axes[scenario.rows], &columns = scenario.axes[scenario.columns];
  Table table = table_of(scenario, "system");
  for (const ReportedRow& row : scenario.reported) {
    for (const std::int64_t r : rows.values) {
      std::vector<std::string> line = {rows.text(r), row.system};
      for (const std::int64_t c : columns.values) {
        const auto value = row.values.find({r, c});
        line.push_back(value == row.values.end() ? "none" : rate_text(value->second));
      }
      table.add(std::move(line));
    }
  }
  return fmt::format("reported by the paper, not simulated, tokens/s:\n{}\n", table.text());
}

/// Each plan of the cells once: pools, micro-batch, where they come from, and what of them was busy.
std::string plans_text(const ServingScenario& scenario, const ServingRun& run) {
  Table table({Align::left, Align::left, Align::left, Align::right, Align::left},
              {"cell", "plan", "source", "clusters", "busy"});
  std::set<std::string> seen;
  const auto add = [&](const ServingCell& cell, const ServingOutcome& outcome, bool planned) {
    Point at = cell.cell.at;
    std::string where = scenario.label(at);
    if (scenario.axes[ServingScenario::k_plan].words.size() > 1)
      where += " " + scenario.axes[ServingScenario::k_plan].text(at[ServingScenario::k_plan]);
    if (at[ServingScenario::k_prompt] > 0) where += fmt::format(" {}", at[ServingScenario::k_prompt]);
    if (planned) where += fmt::format(" on {}", outcome.json.value("clusters", std::int64_t{0}));
    const Json& plan = outcome.json.at("plan");
    if (!seen.insert(where + outcome.plan_text()).second) return;
    std::string source = plan.at("source").get<std::string>();
    if (plan.contains("batch_source") && plan.at("batch_source") != source)
      source += fmt::format(", batch {}", plan.at("batch_source").get<std::string>());
    std::vector<std::string> busy;
    if (outcome.fits()) {
      for (const Json& pool : outcome.json.at("pools"))
        busy.push_back(
            fmt::format("{} {:.0f} %", pool.at("name").get<std::string>(), 100 * pool.at("utilisation").get<double>()));
    } else {
      busy.push_back(outcome.json.at("why_not").get<std::string>());
    }
    table.add(
        {where, outcome.plan_text(), source, std::to_string(plan.value("clusters", std::int64_t{0})), joined(busy)});
  };
  for (const ServingCell& cell : run.cells)
    add(cell, cell.outcome, cell.outcome.json.at("plan").at("source") == "planned");
  for (const ServingCell& cell : run.cells) {
    if (const auto search = cell.beside.find(std::string(k_search)); search != cell.beside.end())
      add(cell, search->second, true);
  }
  return table.text();
}

/// What users of each cell see, for workloads that arrive one by one.
std::string latencies_text(const ServingScenario& scenario, const ServingRun& run) {
  if (scenario.workload.kind == WorkloadKind::uniform) return "";
  Table table(
      {Align::left, Align::right, Align::right, Align::right, Align::right, Align::right, Align::right},
      {"cell", "requests/s", "TTFT p50", "p99", "TPOT p50 ms", "p99", scenario.slo.is_bound() ? "SLO kept" : ""});
  for (const ServingCell& cell : run.cells) {
    if (!cell.outcome.fits()) continue;
    const Json& m = cell.outcome.json.at("metrics");
    const auto of = [&](const char* what, const char* p) { return m.at(what).at(p).get<double>(); };
    table.add({scenario.text(cell.cell.at), fmt::format("{:.3f}", m.at("requests_s").get<double>()),
               fmt::format("{:.2f} s", of("ttft_s", "p50")), fmt::format("{:.2f} s", of("ttft_s", "p99")),
               fmt::format("{:.1f}", 1e3 * of("tpot_s", "p50")), fmt::format("{:.1f}", 1e3 * of("tpot_s", "p99")),
               scenario.slo.is_bound() ? fmt::format("{:.0f} %", 100 * m.at("attainment").get<double>()) : ""});
  }
  return table.text() + "\n";
}

std::string summary_line(const ServingScenario& scenario, const ServingRun& run, const std::string& what,
                         const MetricSummary& summary) {
  if (summary.cells == 0) return "";
  return fmt::format("{}: mean absolute error {:.1f} % over {} cells, worst {:+.1f} % at {}\n", what,
                     summary.mape_percent, summary.cells, summary.worst_percent,
                     scenario.text(run.cells[summary.worst_cell].cell.at));
}

std::string summaries_text(const ServingScenario& scenario, const ServingRun& run) {
  const Axis& columns = scenario.axes[scenario.columns];
  std::string text = summary_line(scenario, run, "tokens/s", run.summary);
  if (run.by_column.size() > 1) {
    for (const auto& [column, summary] : run.by_column)
      text += summary_line(scenario, run, fmt::format("  {} {}", columns.name, columns.text(column)), summary);
  }
  for (const auto& [name, columns_of] : run.beside_by_column) {
    if (name == k_search) continue;  // not meant to be the paper's
    for (const auto& [column, summary] : columns_of)
      text +=
          summary_line(scenario, run, fmt::format("  {} {}, {}", columns.name, columns.text(column), name), summary);
  }
  return text;
}

std::string steps_text(const ServingScenario& scenario, const ServingRun& run) {
  if (run.steps.empty()) return "";
  const Axis &rows = scenario.axes[scenario.rows], &columns = scenario.axes[scenario.columns];
  std::map<std::string, std::vector<std::string>> lines;
  std::vector<std::string> order;
  for (const ServingStep& step : run.steps) {
    const Point &from = run.cells[step.from].cell.at, &to = run.cells[step.to].cell.at;
    const std::string name = fmt::format("{} -> {}", rows.text(from[scenario.rows]), rows.text(to[scenario.rows]));
    if (!lines.contains(name)) order.push_back(name);
    lines[name].push_back(fmt::format("{:.2f} / {:.2f} ({:+.0f} %)", step.paper, step.simulated, step.error_percent()));
  }
  std::vector<Align> align(columns.values.size() + 1, Align::right);
  align[0] = Align::left;
  std::vector<std::string> header = {"step"};
  for (const std::int64_t column : columns.values) header.push_back(columns.text(column));
  Table table(align, header);
  // Column by column in `steps`: the k-th entry of a line belongs to the k-th column with numbers.
  for (const std::string& name : order) {
    std::vector<std::string> line = {name};
    line.insert(line.end(), lines[name].begin(), lines[name].end());
    table.add(std::move(line));
  }
  const MetricSummary& summary = run.step_summary;
  return fmt::format(
      "what each step brings, paper / simulated:\n{}steps: mean absolute error {:.1f} % over {}, worst {:+.1f} %\n\n",
      table.text(), summary.mape_percent, summary.cells, summary.worst_percent);
}

std::string machine_what_ifs(const ServingScenario& scenario) {
  std::vector<std::string> words;
  for (const auto& [key, value] : scenario.machine_sets) words.push_back(fmt::format("{}={}", key, value));
  return words.empty() ? "" : fmt::format("what-if of the scenario: {}\n", joined(words));
}

std::string interpolation_text(const ServingRun& run) {
  const runtime::InterpolationError& error = run.interpolation;
  if (error.sampled == 0) return "";
  return fmt::format(
      "times of a layer: {} of {} interpolated ones simulated as they are, mean error {:.2f} %, worst {:.2f} % ({})\n",
      error.sampled, error.interpolated, error.mean_percent, error.worst_percent, error.worst_batch);
}

std::string band_text(const ServingRun& run) {
  if (run.drawn.empty()) return "";
  std::vector<std::string> words;
  for (const auto& n : run.drawn)
    words.push_back(fmt::format("{} {:g}-{:g} {}", n.key, n.range_low, n.range_high, n.unit));
  return fmt::format("band: 5th to 95th percentile over the plausible ranges of links and hosts: {}\n", joined(words));
}

}  // namespace

Json serving_json(const ServingScenario& scenario, const ServingRun& run, const sim::Machine& machine) {
  Json json = {{"name", scenario.name},
               {"title", scenario.title},
               {"kind", "serving"},
               {"scenario", scenario.path},
               {"workload", {{"kind", to_string(scenario.workload.kind)}}},
               {"batch_rule", to_string(scenario.batch_rule)},
               {"rows", scenario.axes[scenario.rows].name},
               {"columns", scenario.axes[scenario.columns].name},
               {"paper_source", scenario.paper_source},
               {"cases", Json::array()}};
  if (scenario.tables) json["tables"] = scenario.axes[*scenario.tables].name;
  if (!scenario.workload.trace.empty()) json["workload"]["trace"] = scenario.workload.trace;
  for (const ServingCell& cell : run.cells) json["cases"].push_back(cell_json(scenario, cell));
  json["summary"] = summary_json(scenario, run, run.summary);
  json["column_summary"] = columns_json(scenario, run, run.by_column);
  json["beside_summary"] = Json::object();
  for (const auto& [name, columns] : run.beside_by_column)
    json["beside_summary"][name] = columns_json(scenario, run, columns);
  if (!run.steps.empty()) {
    Json steps = Json::array();
    for (const ServingStep& step : run.steps) {
      steps.push_back({{"from", case_json(scenario, run.cells[step.from].cell.at)},
                       {"to", case_json(scenario, run.cells[step.to].cell.at)},
                       {"paper", step.paper},
                       {"simulated", step.simulated},
                       {"error_percent", step.error_percent()}});
    }
    json["steps"] = {{"cases", std::move(steps)},
                     {"mape_percent", run.step_summary.mape_percent},
                     {"worst_percent", run.step_summary.worst_percent}};
  }
  json["interpolation"] = {{"interpolated", run.interpolation.interpolated},
                           {"sampled", run.interpolation.sampled},
                           {"mean_percent", run.interpolation.mean_percent},
                           {"worst_percent", run.interpolation.worst_percent},
                           {"worst_batch", run.interpolation.worst_batch}};
  json["reported"] = reported_json(scenario);
  json["machine"] = machine_json(machine);
  json["assumed"] = {{"plans", assumed_plans(run)}, {"machine", assumed_machine_keys(machine)}};
  json["notes"] = Json::array({k_not_modelled});
  for (const auto& note : scenario.notes) json["notes"].push_back(note.text);
  json["host"] = {{"wall_s", run.wall_s}};
  return json;
}

std::string serving_text(const ServingScenario& scenario, const ServingRun& run, const sim::Machine& machine) {
  std::string out =
      fmt::format("{}\n{} workload; generated tokens a second\n\n", scenario.title, to_string(scenario.workload.kind));
  std::size_t at = 0;
  if (scenario.tables) {
    const Axis& tables = scenario.axes[*scenario.tables];
    for (const std::int64_t value : tables.values)
      out += fmt::format("{} = {}\n{}\n", tables.name, tables.text(value), table_text(scenario, run, at));
  } else {
    out += table_text(scenario, run, at) + "\n";
  }
  out += latencies_text(scenario, run) + steps_text(scenario, run) + reported_text(scenario);
  out += summaries_text(scenario, run);
  out += fmt::format("\n{}", plans_text(scenario, run));
  out += fmt::format("\nmachine {}\n{}{}", machine_name(machine), machine_what_ifs(scenario), band_text(run));
  out += interpolation_text(run);
  out += fmt::format("note: {}\n", k_not_modelled);
  for (const auto& note : has_overrides(machine) ? decltype(scenario.notes){} : scenario.notes)
    out += fmt::format("note{}: {}\n", scenario.cells_text(note), note.text);
  out += fmt::format("host: {:.1f} s\n", run.wall_s);
  return out;
}

}  // namespace mtsim::scenarios
