// SPDX-License-Identifier: Apache-2.0
// An exploration as text, JSON and CSV.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "scenarios/explore/exploration.h"
#include "scenarios/report.h"
#include "scenarios/table.h"

namespace mtsim::scenarios {

namespace {

constexpr std::size_t k_shown = 10;

std::vector<std::string> row_of(const Query& query, std::string first, const Explored& e) {
  std::vector<std::string> row{std::move(first)};
  row.push_back(fmt::format("{:.3f}", e.measured.latency_ms));
  row.push_back(fmt::format("{:.0f}", e.measured.gmac_s));
  row.push_back(fmt::format("{:.1f}", 100 * e.measured.utilisation));
  row.push_back(e.point.bound_ms > 0 ? fmt::format("{:.3f}", e.point.bound_ms) : "");
  for (std::string& cell : query.cells(e.point)) row.push_back(std::move(cell));
  for (const std::int64_t bytes : {e.point.sm_bytes, e.point.am_bytes, e.point.gsm_bytes})
    row.push_back(kilobytes(bytes));
  row.push_back(megabytes(e.measured.ddr_bytes));
  return row;
}
Table point_table(const Query& query, const std::string& first) {
  std::vector<std::string> header{first, "latency ms", "GMAC/s", "% peak", "bound ms"};
  for (std::string& column : query.columns()) header.push_back(std::move(column));
  for (const char* name : {"SM KB", "AM KB", "GSM KB", "DDR MB"}) header.emplace_back(name);
  std::vector<Align> align(header.size(), Align::right);
  align.front() = Align::left;
  return {align, header};
}

/// "f16 promoted", "f32 causal".
std::vector<std::string> type_words(const Query& query) {
  std::vector<std::string> words{std::string(to_string(query.dtype))};
  words.insert(words.end(), query.words.begin(), query.words.end());
  return words;
}
Json shape_json(const Query& query) {
  Json json = Json::object();
  for (std::size_t d = 0; d < query.shape.size(); ++d)
    json[std::string(query.op.info().dimensions[d].name)] = query.shape[d];
  return json;
}

struct BoundQuality {
  double least = 0, median = 0, most = 0;  // simulated / bound
  std::int64_t faster = 0;                 // than the bound
};
BoundQuality quality_of(const Exploration& exploration) {
  std::vector<double> ratios;
  BoundQuality quality;
  for (const Explored& e : exploration.points) {
    if (e.measured.cut || e.point.bound_ms <= 0) continue;
    ratios.push_back(e.measured.latency_ms / e.point.bound_ms);
    if (ratios.back() < 1) ++quality.faster;
  }
  if (ratios.empty()) return quality;
  std::sort(ratios.begin(), ratios.end());
  quality.least = ratios.front();
  quality.median = ratios[ratios.size() / 2];
  quality.most = ratios.back();
  return quality;
}

std::int64_t cut_points(const Exploration& exploration) {
  return std::count_if(exploration.points.begin(), exploration.points.end(),
                       [](const Explored& e) { return e.measured.cut; });
}

std::string change_text(const Query& query, const Neighbour& n) {
  return fmt::format("{} {} -> {}", query.dimensions()[n.dimension].name, query.cell(n.dimension, n.from),
                     query.cell(n.dimension, n.to));
}

std::string neighbours_text(const ExploreRequest& request, const Exploration& exploration) {
  Table table({Align::left, Align::right, Align::right, Align::left}, {"neighbour", "latency ms", "%", "why"});
  const Explored& best = exploration.best();
  for (const auto& [neighbour, measured] : exploration.neighbours) {
    if (!measured) {
      table.add({change_text(*request.query, neighbour), "-", "-", "does not fit: " + neighbour.why_not});
      continue;
    }
    table.add({change_text(*request.query, neighbour), fmt::format("{:.3f}", measured->latency_ms),
               fmt::format("{:+.1f}", 100 * (measured->latency_ms / best.measured.latency_ms - 1)),
               reason(best, {neighbour.point, *measured}, request.machines.front().config())});
  }
  return table.text(2);
}

std::string compared_text(const ExploreRequest& request, const Exploration& exploration) {
  std::vector<Align> align{Align::left};
  std::vector<std::string> header{"point"};
  for (const sim::Machine& m : request.machines) {
    header.push_back(m.config().name + " ms");
    header.emplace_back("rank");
  }
  header.emplace_back("regret %");
  header.emplace_back("");
  align.resize(header.size() - 1, Align::right);
  align.push_back(Align::left);
  Table table(align, header);
  for (std::size_t i = 0; i < exploration.compared.size(); ++i) {
    const Compared& c = exploration.compared[i];
    if (i >= k_shown && c.note.empty()) continue;
    std::vector<std::string> row{fmt::format("{}", fmt::join(request.query->cells(c.point), " "))};
    for (std::size_t m = 0; m < c.latency_ms.size(); ++m) {
      row.push_back(fmt::format("{:.3f}", c.latency_ms[m]));
      row.push_back(std::to_string(c.rank[m]));
    }
    row.push_back(fmt::format("{:.1f}", 100 * c.regret));
    row.push_back(i == 0 ? (c.note.empty() ? "least regret" : "least regret; " + c.note) : c.note);
    table.add(std::move(row));
  }
  std::string text =
      fmt::format("on {} calibrated machines ({}), points as {}\n", request.machines.size(),
                  "each fitted to the same cells by another mechanism", fmt::join(request.query->columns(), " "));
  text += table.text(2);
  const Compared& least = exploration.compared.front();
  if (exploration.is_decided()) {
    text += "decided: the same point is best on all of them\n";
  } else {
    text += fmt::format(
        "undecided: the best point depends on the machine; least regret, at most {:.1f} % behind the best "
        "of each:\n  {}\n",
        100 * least.regret, command_of(request, least.point, request.machines.front()));
  }
  return text;
}

}  // namespace

std::string command_of(const ExploreRequest& request, const Candidate& point, const sim::Machine& machine) {
  const std::string command = request.query->command(point);
  if (!request.machine_arguments.empty()) return command + request.machine_arguments;
  return machine.config().name == request.machines.front().config().name
             ? command
             : command + " --machine " + machine.config().name;
}

Json exploration_json(const ExploreRequest& request, const Exploration& exploration) {
  const Query& query = *request.query;
  const auto name_json = [&](const Candidate& point) {
    return Json{{"variant", query.kinds()[point.kind].variant}, {"tile", query.tile(point)}};
  };
  const auto command = [&](const Candidate& point) { return command_of(request, point, request.machines.front()); };
  const auto point_json = [&](const Explored& e) {
    Json json = name_json(e.point);
    json.update(
        Json{{"bound_ms", e.point.bound_ms},
             {"memory",
              {{"sm_bytes", e.point.sm_bytes}, {"am_bytes", e.point.am_bytes}, {"gsm_bytes", e.point.gsm_bytes}}}});
    json.update(e.measured.json());
    json["command"] = command(e.point);
    return json;
  };
  Json points = Json::array(), killed = Json::array(), pareto = Json::array(), beside = Json::array(),
       compared = Json::array(), named = Json::object();
  for (const Explored& e : exploration.points) points.push_back(point_json(e));
  for (const auto& [condition, k] : exploration.killed) {
    Json json = Json::object();
    if (!condition.first.empty()) json["equation"] = condition.first;
    json.update(Json{{"memory", condition.second},
                     {"points", k.points},
                     {"nearest", query.tile(k.example)},
                     {"variant", query.kinds()[k.example.kind].variant},
                     {"needed_bytes", k.needed},
                     {"available_bytes", k.available}});
    killed.push_back(std::move(json));
  }
  for (const std::size_t i : exploration.pareto) pareto.push_back(i);
  for (const auto& [name, e] : exploration.named) named[name] = point_json(e);
  for (const auto& [n, measured] : exploration.neighbours) {
    Json json = {{"dimension", query.dimensions()[n.dimension].name}, {"from", n.from}, {"to", n.to}};
    json.update(name_json(n.point));
    if (measured) {
      json.update(Json{{"latency_ms", measured->latency_ms},
                       {"why", reason(exploration.best(), {n.point, *measured}, request.machines.front().config())},
                       {"command", command(n.point)}});
    } else {
      json["why_not"] = n.why_not;
    }
    beside.push_back(std::move(json));
  }
  for (const Compared& c : exploration.compared) {
    Json json = name_json(c.point);
    json.update(Json{{"note", c.note},
                     {"latency_ms", c.latency_ms},
                     {"rank", c.rank},
                     {"regret", c.regret},
                     {"command", command(c.point)}});
    compared.push_back(std::move(json));
  }
  Json machines = Json::array();
  for (const sim::Machine& m : request.machines) machines.push_back(m.config().name);
  const BoundQuality quality = quality_of(exploration);
  return {
      {"op", query.op.info().name},
      {"shape", shape_json(query)},
      {"dtype", to_string(query.dtype)},
      {"skip_pieces", query.skip_pieces},
      {"legal_points", exploration.legal},
      {"killed", killed},
      {"simulated_points", exploration.points.size()},
      {"cut_points", cut_points(exploration)},
      {"computed_points", exploration.computed},
      {"bound",
       {{"least_ratio", quality.least},
        {"median_ratio", quality.median},
        {"most_ratio", quality.most},
        {"faster_than_bound", quality.faster}}},
      {"points", points},
      {"named", named},
      {"pareto", pareto},
      {"neighbours", beside},
      {"machines", machines},
      {"compared", compared},
      {"decided", exploration.is_decided()},
      {"machine", machine_json(request.machines.front())},
      {"host",
       {{"rank_s", exploration.rank_s}, {"simulate_s", exploration.simulate_s}, {"processes", exploration.processes}}}};
}

std::string exploration_text(const ExploreRequest& request, const Exploration& exploration) {
  const Query& query = *request.query;
  std::string text = fmt::format("{} {} {}, machine {}\n", query.op.info().name, shape_text(query.op, query.shape),
                                 joined(type_words(query), " "), machine_name(request.machines.front()));
  std::int64_t dead = 0;
  for (const auto& [condition, k] : exploration.killed) dead += k.points;
  text += fmt::format("space: {} points, {} fit", grouped(exploration.legal + dead), grouped(exploration.legal));
  text += exploration.killed.empty() ? "\n" : "; the others break\n";
  Table killed({Align::left, Align::right, Align::left});
  for (const auto& [condition, k] : exploration.killed) {
    const std::string equation = condition.first.empty() ? "" : fmt::format("eq. {} of ", condition.first);
    killed.add(
        {equation + condition.second, grouped(k.points),
         fmt::format("nearest {} of {} bytes: {}", grouped(k.needed), grouped(k.available), query.tile(k.example))});
  }
  text += killed.text(2);
  if (exploration.points.empty())
    return text + "nothing fits: use smaller blocks (--only) or a machine with more memory\n";
  const BoundQuality quality = quality_of(exploration);
  text += fmt::format(
      "all ranked by their bound, {} simulated, the best by it and what is compared with them ({} given up at {:.0f} "
      "times the best of the batches before)\n"
      "simulated / bound: {:.2f} to {:.2f}, median {:.2f}; {} faster than their bound\n\n",
      grouped(static_cast<std::int64_t>(exploration.points.size())), grouped(cut_points(exploration)), k_cut,
      quality.least, quality.most, quality.median, grouped(quality.faster));
  Table top = point_table(query, "rank");
  for (std::size_t i = 0; i < std::min(k_shown, exploration.points.size()); ++i) {
    if (!exploration.points[i].measured.cut) top.add(row_of(query, std::to_string(i + 1), exploration.points[i]));
  }
  for (const auto& [name, e] : exploration.named) top.add(row_of(query, name, e));
  text += top.text();
  for (const auto& [name, e] : exploration.named) {
    if (e.measured.latency_ms >= exploration.best().measured.latency_ms) continue;
    text += fmt::format("{} is faster than every point explored: {}\n", name,
                        command_of(request, e.point, request.machines.front()));
  }
  text += "\n";
  text += "Pareto front of latency, DDR bytes and AM bytes\n";
  Table pareto = point_table(query, "rank");
  for (std::size_t i = 0; i < std::min(k_shown, exploration.pareto.size()); ++i)
    pareto.add(row_of(query, std::to_string(exploration.pareto[i] + 1), exploration.points[exploration.pareto[i]]));
  text += pareto.text();
  if (exploration.pareto.size() > k_shown)
    text += fmt::format("... and {} more (--json)\n", exploration.pareto.size() - k_shown);
  text += "\n";
  text += fmt::format("the best and its neighbours: {} {}\n", query.kinds()[exploration.best().point.kind].variant,
                      query.tile(exploration.best().point)) +
          neighbours_text(request, exploration) + "\n";
  if (!exploration.compared.empty()) text += compared_text(request, exploration) + "\n";
  text += "run the best again: " + command_of(request, exploration.best().point, request.machines.front()) + "\n";
  text += fmt::format("note: {}\n", k_not_modelled);
  text += fmt::format("host: bounds {:.1f} s, {} simulations {:.1f} s on {} process{}\n", exploration.rank_s,
                      grouped(exploration.computed), exploration.simulate_s, exploration.processes,
                      exploration.processes == 1 ? "" : "es");
  return text;
}

std::string exploration_csv(const ExploreRequest& request, const Exploration& exploration) {
  const Query& query = *request.query;
  std::string csv = "rank,variant";
  for (const SpaceDimension& dimension : query.dimensions()) csv += fmt::format(",{}", dimension.name);
  csv +=
      ",sm_bytes,am_bytes,gsm_bytes,bound_ms,status,latency_ms,gmac_s,gflop_s,utilisation,ddr_bytes,gsm_bytes_moved,"
      "calls,transfers";
  for (int c = 0; c < sim::k_cycle_classes; ++c)
    csv += fmt::format(",{}_ms", sim::name(static_cast<sim::CycleClass>(c)));
  csv += ",command\n";
  for (std::size_t i = 0; i < exploration.points.size(); ++i) {
    const auto& [point, m] = exploration.points[i];
    csv += fmt::format("{},\"{}\"", i + 1, query.kinds()[point.kind].variant);
    for (std::size_t d = 0; d < point.values.size(); ++d) csv += "," + query.cell(d, point.values[d]);
    csv += fmt::format(",{},{},{},{:.6f},{},{:.6f},", point.sm_bytes, point.am_bytes, point.gsm_bytes, point.bound_ms,
                       m.cut ? "cut" : "done", m.latency_ms);
    csv += fmt::format("{:.3f},{:.3f},{:.6f},{},{},{},{}", m.gmac_s, 2 * m.gmac_s, m.utilisation, m.ddr_bytes,
                       m.gsm_bytes, m.calls, m.transfers);
    for (const double ms : m.class_ms) csv += fmt::format(",{:.6f}", ms);
    std::string command = command_of(request, point, request.machines.front());
    for (std::size_t at = 0; (at = command.find('"', at)) != std::string::npos; at += 2) command.insert(at, 1, '"');
    csv += fmt::format(",\"{}\"\n", command);
  }
  return csv;
}

}  // namespace mtsim::scenarios
