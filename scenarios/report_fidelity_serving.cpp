// SPDX-License-Identifier: Apache-2.0
#include "scenarios/report_fidelity_serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "scenarios/table.h"

namespace mtsim::scenarios {
namespace {

std::string axis_text(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

std::string rate_text(double tokens_s) {
  const int digits = tokens_s >= 100 ? 0 : tokens_s >= 10 ? 1 : 2;
  return fmt::format("{:.{}f}", tokens_s, digits);
}

/// The different values of an axis, in the order of the cases.
std::vector<std::string> values_of(const Json& run, const std::string& axis) {
  std::vector<std::string> values;
  for (const Json& cell : run.at("cases")) {
    const std::string value = axis_text(cell.at("case").at(axis));
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  return values;
}

/// "781 / 802 (+2.7 %), 795..804".
std::string cell_text(const Json& cell) {
  const Json& paper = cell.at("paper");
  const std::string reported =
      paper.contains("tokens_s") ? rate_text(paper.at("tokens_s").get<double>()) : std::string("-");
  if (cell.at("status") != "done") return reported + " / no room";
  std::string text = fmt::format("{} / {}", reported, rate_text(cell.at("metrics").at("tokens_s").get<double>()));
  if (cell.at("error_percent").contains("tokens_s"))
    text += fmt::format(" ({:+.1f} %)", cell.at("error_percent").at("tokens_s").get<double>());
  if (cell.contains("band")) {
    const Json& band = cell.at("band").at("tokens_s");
    text += fmt::format(", {}..{}", rate_text(band.at("low").get<double>()), rate_text(band.at("high").get<double>()));
  }
  return text;
}

std::string beside_text(const Json& cell, const std::string& name) {
  if (!cell.at("beside").contains(name)) return "-";
  const Json& outcome = cell.at("beside").at(name);
  return outcome.at("status") == "done" ? rate_text(outcome.at("metrics").at("tokens_s").get<double>()) : "no room";
}

/// Cells of one table, a line a row, then what stands beside.
std::string cells_table(const Json& run, const std::string& table_axis, const std::string& of) {
  const std::string rows = run.at("rows"), columns = run.at("columns");
  std::vector<std::string> header = {rows, "tokens/s"};
  for (const std::string& column : values_of(run, columns)) header.push_back(fmt::format("{} {}", columns, column));
  Table table(std::vector<Align>(header.size(), Align::right), header);
  for (const std::string& row : values_of(run, rows)) {
    std::vector<const Json*> cells;
    for (const Json& cell : run.at("cases")) {
      const Json& at = cell.at("case");
      if (axis_text(at.at(rows)) == row && (table_axis.empty() || axis_text(at.at(table_axis)) == of))
        cells.push_back(&cell);
    }
    std::vector<std::string> line = {row, "paper / simulated"};
    for (const Json* cell : cells) line.push_back(cell_text(*cell));
    table.add(std::move(line));
    for (const auto& [name, unused] : cells.front()->at("beside").items()) {
      std::vector<std::string> other = {"", name == "search" ? "the planner's own pools" : name};
      for (const Json* cell : cells) other.push_back(beside_text(*cell, name));
      table.add(std::move(other));
    }
  }
  return table.markdown() + "\n";
}

std::string summary_line(const std::string& what, const Json& summary) {
  if (!summary.contains("tokens_s")) return "";
  const Json& s = summary.at("tokens_s");
  std::vector<std::string> words;
  for (const auto& [key, value] : s.at("worst_case").items())
    words.push_back(fmt::format("{}={}", key, axis_text(value)));
  return fmt::format("- {}: mean absolute error **{:.1f} %** over {} cells, worst {:+.1f} % at {}\n", what,
                     s.at("mape_percent").get<double>(), s.at("cases").get<int>(), s.at("worst_percent").get<double>(),
                     joined(words, " "));
}

std::string plans_table(const Json& run) {
  Table table({Align::left, Align::left, Align::left, Align::right},
              {"plan of", "pools and requests of a decode micro-batch", "source", "clusters"});
  std::set<std::string> seen;
  for (const Json& cell : run.at("cases")) {
    const Json &at = cell.at("case"), &plan = cell.at("plan");
    std::string where = axis_text(at.at("model"));
    if (at.contains("plan")) where += " " + axis_text(at.at("plan"));
    if (at.contains("prompt")) where += " " + axis_text(at.at("prompt"));
    if (!seen.insert(where + plan.at("text").get<std::string>()).second) continue;
    std::string source = plan.at("source");
    if (plan.contains("batch_source") && plan.at("batch_source") != plan.at("source"))
      source += fmt::format(", batch {}", plan.at("batch_source").get<std::string>());
    table.add({where, plan.at("text"), source, std::to_string(plan.value("clusters", 0))});
  }
  return table.markdown() + "\n";
}

std::string steps_table(const Json& run) {
  if (!run.contains("steps")) return "";
  const std::string rows = run.at("rows"), columns = run.at("columns");
  std::vector<std::string> header = {"step"};
  for (const std::string& column : values_of(run, columns)) header.push_back(column);
  Table table(std::vector<Align>(header.size(), Align::right), header);
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> lines;
  for (const Json& step : run.at("steps").at("cases")) {
    const std::string name =
        fmt::format("{} to {}", axis_text(step.at("from").at(rows)), axis_text(step.at("to").at(rows)));
    if (!lines.contains(name)) order.push_back(name);
    lines[name].push_back(fmt::format("{:.2f} / {:.2f} ({:+.0f} %)", step.at("paper").get<double>(),
                                      step.at("simulated").get<double>(), step.at("error_percent").get<double>()));
  }
  for (const std::string& name : order) {
    std::vector<std::string> line = {name};
    line.insert(line.end(), lines[name].begin(), lines[name].end());
    table.add(std::move(line));
  }
  const Json& steps = run.at("steps");
  return fmt::format(
      "What each step brings, paper / simulated:\n\n{}\n- steps: mean absolute error **{:.1f} %**, worst {:+.1f} %\n",
      table.markdown(), steps.at("mape_percent").get<double>(), steps.at("worst_percent").get<double>());
}

std::string reported_table(const Json& run) {
  if (run.at("reported").empty()) return "";
  const std::string rows = run.at("rows"), columns = run.at("columns");
  std::vector<std::string> header = {rows, "system"};
  for (const std::string& column : values_of(run, columns)) header.push_back(fmt::format("{} {}", columns, column));
  Table table(std::vector<Align>(header.size(), Align::right), header);
  for (const Json& system : run.at("reported")) {
    for (const std::string& row : values_of(run, rows)) {
      const Json& values = system.at("tokens_s").at(row);
      std::vector<std::string> line = {row, system.at("system")};
      for (const std::string& column : values_of(run, columns))
        line.push_back(values.at(column).is_null() ? "out of memory" : rate_text(values.at(column).get<double>()));
      table.add(std::move(line));
    }
  }
  return fmt::format("Reported by the paper, not simulated:\n\n{}\n", table.markdown());
}

/// Every note once, with the cells it stands at.
std::string notes_section(const Json& run) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> cells;
  for (const Json& cell : run.at("cases")) {
    std::vector<std::string> words;
    for (const auto& [key, value] : cell.at("case").items()) {
      if (values_of(run, key).size() > 1) words.push_back(axis_text(value));
    }
    for (const Json& note : cell.at("notes")) {
      const auto text = note.get<std::string>();
      if (!cells.contains(text)) order.push_back(text);
      cells[text].push_back(joined(words, " "));
    }
  }
  std::string out;
  for (const std::string& note : order) {
    const bool all = cells[note].size() == run.at("cases").size();
    out += fmt::format("- {}: {}\n", all ? "all cells" : joined(cells[note]), note);
  }
  return out;
}

}  // namespace

std::string serving_fidelity_section(const Json& run) {
  std::string out = fmt::format(
      "## {}\n\nGenerated tokens a second: paper / simulated (signed error), then the band over the ranges of links "
      "and "
      "hosts.\n\n",
      run.at("title").get<std::string>());
  if (run.contains("tables")) {
    const std::string tables = run.at("tables");
    for (const std::string& value : values_of(run, tables))
      out += fmt::format("{} = {}\n\n{}", tables, value, cells_table(run, tables, value));
  } else {
    out += cells_table(run, "", "");
  }
  out += reported_table(run) + summary_line("all cells", run.at("summary"));
  const std::string columns = run.at("columns");
  if (run.at("column_summary").size() > 1) {
    for (const auto& [column, summary] : run.at("column_summary").items())
      out += summary_line(fmt::format("{} {}", columns, column), summary);
  }
  for (const auto& [name, its] : run.at("beside_summary").items()) {
    if (name == "search") continue;
    for (const auto& [column, summary] : its.items())
      out += summary_line(fmt::format("{} {}, {}", columns, column, name), summary);
  }
  return out + "\n" + steps_table(run) + "\n" + plans_table(run) + notes_section(run) + "\n";
}

std::string batches_section(const Json& fit) {
  Table table({Align::left, Align::right, Align::right, Align::right},
              {"model", "requests of a decode micro-batch", "at prompts of", "mean error of its cells"});
  for (const auto& [model, batch] : fit.at("batches").items()) {
    table.add({model, std::to_string(batch.at("value").get<std::int64_t>()),
               std::to_string(batch.at("prompt").get<std::int64_t>()),
               fmt::format("{:.1f} %", batch.at("mape_percent").get<double>())});
  }
  return fmt::format("The fit on {}, one number a model:\n\n{}\n", fit.at("title").get<std::string>(),
                     table.markdown());
}

std::string assumed_plans_section(const std::vector<Json>& runs) {
  std::set<std::string> plans;
  for (const Json& run : runs) {
    for (const Json& plan : run.at("assumed").value("plans", Json::array())) plans.insert(plan.get<std::string>());
  }
  std::string out;
  for (const std::string& plan : plans) out += fmt::format("- pools: {}\n", plan);
  return out;
}

}  // namespace mtsim::scenarios
