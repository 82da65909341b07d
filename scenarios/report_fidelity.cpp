// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "scenarios/error.h"
#include "scenarios/report.h"
#include "scenarios/report_fidelity_serving.h"
#include "scenarios/table.h"

namespace mtsim::scenarios {

namespace {

constexpr std::string_view k_run_command = "mtsim run SCENARIO --json FILE";
constexpr std::string_view k_fit_command = "mtsim fit SCENARIO --json FILE";

/// A value of an axis: 4096, f16.
std::string axis_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : std::to_string(value.get<std::int64_t>());
}

std::string shape_text(const Json& shape) {
  std::vector<std::string> words;
  for (const auto& [key, value] : shape.items()) words.push_back(fmt::format("{}={}", key, axis_text(value)));
  return joined(words, " ");
}

/// The cells a note stands at, as "m=1024, n=512|768" in the order of the table.
std::string note_cells(const Json& run, const Json& note, const std::vector<std::string>& axes) {
  std::vector<std::string> words;
  std::size_t matched = 0;
  for (const auto& axis : axes) {
    std::vector<std::string> values;
    matched = 0;
    for (const auto& cell : run.at("cases")) {
      const auto& notes = cell.at("notes");
      if (std::find(notes.begin(), notes.end(), note) == notes.end()) continue;
      ++matched;
      const std::string value = axis_text(cell.at("case").at(axis));
      if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    }
    words.push_back(fmt::format("{}={}", axis, fmt::join(values, "|")));
  }
  return matched == run.at("cases").size() ? "all cells" : joined(words);
}

/// Every note of the cells once, in the order of the table.
std::string notes_section(const Json& run, const std::vector<std::string>& axes) {
  std::string out;
  std::set<std::string> seen;
  for (const auto& cell : run.at("cases")) {
    for (const auto& note : cell.at("notes")) {
      const auto text = note.get<std::string>();
      if (seen.insert(text).second) out += fmt::format("- {}: {}\n", note_cells(run, note, axes), text);
    }
  }
  return out;
}

/// The cells where `axis` has the value `of`; all of them without an axis. In the paper's layout.
std::string cells_table(const Json& run, const std::string& axis, const std::string& of) {
  const std::string rows = run.at("rows"), columns = run.at("columns");
  std::vector<const Json*> cells;
  std::vector<std::string> header = {rows + " \\ " + columns};
  for (const auto& cell : run.at("cases")) {
    if (!axis.empty() && axis_text(cell.at("case").at(axis)) != of) continue;
    cells.push_back(&cell);
    const std::string value = axis_text(cell.at("case").at(columns));
    if (std::find(header.begin() + 1, header.end(), value) == header.end()) header.push_back(value);
  }
  Table table(std::vector<Align>(header.size(), Align::right), header);
  std::vector<std::string> line;
  for (const Json* cell : cells) {
    if (line.empty()) line.push_back(axis_text(cell->at("case").at(rows)));
    const double simulated = cell->at("metrics").at("latency_ms");
    const Json& paper = cell->at("paper");
    line.push_back(paper.contains("latency_ms")
                       ? fmt::format("{:.2f} / {:.2f} ({:+.1f} %)", paper.at("latency_ms").get<double>(), simulated,
                                     cell->at("error_percent").at("latency_ms").get<double>())
                       : fmt::format("- / {:.2f}", simulated));
    if (line.size() == header.size()) {
      table.add(std::move(line));
      line.clear();
    }
  }
  return table.markdown();
}

std::string summary_lines(const Json& summaries) {
  std::string out;
  for (const auto& [metric, summary] : summaries.items()) {
    out += fmt::format("- {}: mean absolute error **{:.1f} %** over {} cells, worst {:+.1f} % at {}\n", metric,
                       summary.at("mape_percent").get<double>(), summary.at("cases").get<int>(),
                       summary.at("worst_percent").get<double>(), shape_text(summary.at("worst_case")));
  }
  return out;
}

/// One scenario's section: a table in the paper's layout for each value of its tables' axis, summary, explained cells.
std::string scenario_section(const Json& run) {
  std::vector<std::string> axes = {run.at("rows"), run.at("columns")};
  std::vector<std::string> dtypes;
  for (const auto& dtype : run.at("dtype").is_array() ? run.at("dtype") : Json::array({run.at("dtype")}))
    dtypes.push_back(dtype);
  std::string out = fmt::format("## {}\n\nLatency in ms: paper / simulated (signed error). {} depth, {}.\n\n",
                                run.at("title").get<std::string>(), run.at("depth").get<std::string>(), joined(dtypes));
  if (!run.contains("tables")) {
    out += cells_table(run, "", "") + "\n" + summary_lines(run.at("summary"));
    return out + notes_section(run, axes) + "\n";
  }
  const std::string tables = run.at("tables");
  axes.insert(axes.begin(), tables);
  std::vector<std::string> seen;
  for (const auto& cell : run.at("cases")) {
    const std::string value = axis_text(cell.at("case").at(tables));
    if (std::find(seen.begin(), seen.end(), value) != seen.end()) continue;
    seen.push_back(value);
    out += fmt::format("{} = {}\n\n{}\n", tables, value, cells_table(run, tables, value));
    if (run.contains("table_summary") && run.at("table_summary").contains(value))
      out += summary_lines(run.at("table_summary").at(value)) + "\n";
  }
  return out + "All tables:\n\n" + summary_lines(run.at("summary")) + notes_section(run, axes) + "\n";
}

bool is_serving(const Json& result) { return result.value("kind", "") == "serving"; }

std::string number_text(const Json& value) {
  return value.is_number() ? fmt::format("{:g}", value.get<double>()) : value.get<std::string>();
}

/// The machine's numbers of one provenance.
std::string numbers_section(const Json& machine, const std::string& provenance) {
  Table table({Align::left, Align::right, Align::left, Align::left, Align::left},
              {"number", "value", "unit", "plausible", "source"});
  for (const auto& [key, number] : machine.at("numbers").items()) {
    if (number.at("provenance") != provenance) continue;
    const auto& range = number.at("range");
    table.add({fmt::format("`{}`", key), number_text(number.at("value")), number.at("unit").get<std::string>(),
               range.at(0) == range.at(1)
                   ? ""
                   : fmt::format("{:g} - {:g}", range.at(0).get<double>(), range.at(1).get<double>()),
               number.at("source").get<std::string>()});
  }
  return table.empty() ? "none\n" : table.markdown();
}

std::string fit_section(const Json& fit) {
  Table table({Align::left, Align::right, Align::left, Align::left},
              {"number", "fitted", "unit", "error within tolerance"});
  for (const auto& [key, p] : fit.at("parameters").items()) {
    table.add({fmt::format("`{}`", key), fmt::format("{:g}", p.at("value").get<double>()),
               p.at("unit").get<std::string>(),
               fmt::format("{:.3g} - {:.3g}", p.at("sensitivity").at(0).get<double>(),
                           p.at("sensitivity").at(1).get<double>())});
  }
  return fmt::format(
      "The fit on {}: mean absolute error {:.2f} %, {} evaluations, tolerance +{:g} percent points.\n\n{}\n",
      fit.at("title").get<std::string>(), fit.at("mape_percent").get<double>(), fit.at("evaluations").get<int>(),
      fit.at("sensitivity_tolerance_percent").get<double>(), table.markdown());
}

std::string assumed_section(const std::vector<std::pair<std::string, Json>>& runs) {
  std::string out;
  for (const std::string kind : {"instructions", "packet_rules"}) {
    std::set<std::string> all;
    for (const auto& [file, run] : runs) {
      for (const auto& word : run.at("assumed").value(kind, Json::array())) all.insert(word.get<std::string>());
    }
    out += fmt::format("- {}: {}\n", kind == "instructions" ? "instructions" : "packet rules",
                       all.empty() ? "none" : joined({all.begin(), all.end()}));
  }
  std::vector<Json> jsons;
  for (const auto& [file, run] : runs) jsons.push_back(run);
  return out + assumed_plans_section(jsons);
}

}  // namespace

std::string fidelity_page(const std::vector<std::pair<std::string, Json>>& files) {
  std::vector<std::pair<std::string, Json>> runs, fits;
  for (const auto& [file, json] : files) {
    if (json.is_object() && json.contains("cases")) {
      runs.emplace_back(file, json);
    } else if (json.is_object() && json.contains("fit")) {
      fits.emplace_back(file, json);
    } else {
      throw UsageError(
          fmt::format("{}: is no result of `mtsim run` (it has no 'cases') or `mtsim fit` (no 'fit'); write one: {}, "
                      "or {}; see mtsim report fidelity --help",
                      file, k_run_command, k_fit_command));
    }
  }
  if (runs.empty())
    throw UsageError("report fidelity: no result of `mtsim run --json` among the files; give at least one");
  std::string file;
  std::string_view command = k_run_command;
  try {
    std::string page =
        "<!-- Generated by `mtsim report fidelity`; `make docs` rewrites it. -->\n# Fidelity\n\n"
        "The paper's tables beside the simulated ones. One machine file serves all of them and errors are signed. The "
        "numbers under\n"
        "\"Fitted\" were chosen to match; the sequence of the paper is one reading of its text, see the notes below "
        "each table.\n\n";
    for (const auto& [name, run] : runs) {
      file = name;
      page += is_serving(run) ? serving_fidelity_section(run) : scenario_section(run);
    }
    const Json& machine = runs.front().second.at("machine");
    page += fmt::format("## Fitted\n\n{}\n", numbers_section(machine, "fitted"));
    for (const auto& [name, fit] : fits) {
      file = name;
      command = k_fit_command;
      page += is_serving(fit) ? batches_section(fit) : fit_section(fit);
    }
    file = runs.front().first;
    command = k_run_command;
    page += fmt::format("## Assumed\n\nWhat the runs above rest on that nobody has published.\n\n{}\n{}",
                        assumed_section(runs), numbers_section(machine, "assumed"));
    return page;
  } catch (const Json::exception& error) {
    const std::string_view reason = error.what();  // "[json.exception.out_of_range.403] key 'rows' not found"
    throw UsageError(fmt::format("{}: is no complete result: {}; write it again: {}", file,
                                 reason.substr(std::min(reason.find("] ") + 2, reason.size())), command));
  }
}

}  // namespace mtsim::scenarios
