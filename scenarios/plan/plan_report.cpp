// SPDX-License-Identifier: Apache-2.0
#include "scenarios/plan/plan_report.h"

#include <fmt/format.h>

#include <filesystem>

#include "scenarios/report.h"
#include "scenarios/serving/plan_file.h"
#include "scenarios/serving/serving_json.h"
#include "scenarios/table.h"

namespace mtsim::scenarios {
namespace {

using runtime::Death;
using runtime::Objective;
using runtime::PlanRow;

constexpr std::int64_t k_dead_examples = 3;  // of each reason, without --all

Json memory_json(const runtime::Footprint& memory) {
  return {{"params_bytes", memory.params},
          {"kv_bytes", memory.kv},
          {"overhead_bytes", memory.overhead},
          {"there_bytes", memory.there}};
}

Json row_json(const PlanRow& row) {
  Json json = {{"plan", plan_json(row.plan)},
               {"clusters", row.clusters},
               {"decode_memory", memory_json(row.decode_memory)},
               {"prefill_stage_s", row.prefill_stage_s},
               {"decode_stage_s", row.decode_stage_s},
               {"all_reduce_share", row.all_reduce_share},
               {"prefill_s", row.prefill_s},
               {"decode_s", row.decode_s}};
  if (row.plan.mode != runtime::PipelineMode::coupled) {
    json["prefill_memory"] = memory_json(row.prefill_memory);
    json["buffer_bytes"] = row.buffer_bytes;
  }
  if (row.alive()) {
    json.update({{"groups", row.groups}, {"tokens_s", row.tokens_s}, {"ttft_s", row.ttft_s}, {"tpot_s", row.tpot_s}});
  } else {
    json["death"] = {
        {"constraint", to_string(row.death)}, {"needed", row.needed}, {"there", row.there}, {"why", row.why}};
  }
  if (row.served_tokens_s) json["served_tokens_s"] = *row.served_tokens_s;
  if (row.goodput_tokens_s) {
    json["goodput_tokens_s"] = *row.goodput_tokens_s;
    json["goodput_requests_s"] = *row.goodput_requests_s;
  }
  return json;
}

std::string optional_text(const std::optional<double>& value) { return value ? fmt::format("{:.1f}", *value) : ""; }

std::string living_text(const PlanReport& report) {
  const bool goodput = report.options.objective == Objective::goodput;
  const auto count = report.all ? report.search.alive() : std::min(report.top, report.search.alive());
  std::vector<Align> align(goodput ? 11 : 10, Align::right);
  align[1] = Align::left;
  std::vector<std::string> header = {"",           "plan",   "clusters", "groups",   "T_p/DP s", "T_d s",
                                     "all-reduce", "TTFT s", "TPOT ms",  "eq. (21)", "served"};
  if (goodput) header.insert(header.end(), "goodput");
  align.resize(header.size(), Align::right);
  Table table(align, header);
  for (std::int64_t i = 0; i < count; ++i) {
    const PlanRow& row = report.search.rows[static_cast<std::size_t>(i)];
    const bool coupled = row.plan.mode == runtime::PipelineMode::coupled;
    std::vector<std::string> line = {
        std::to_string(i + 1),
        row.plan.str(),
        std::to_string(row.clusters),
        std::to_string(row.groups),
        fmt::format("{:.2f}", row.prefill_s / static_cast<double>(coupled ? 1 : row.plan.prefill.dp)),
        fmt::format("{:.2f}", row.decode_s),
        fmt::format("{:.0f} %", 100 * row.all_reduce_share),
        fmt::format("{:.2f}", row.ttft_s),
        fmt::format("{:.1f}", 1e3 * row.tpot_s),
        fmt::format("{:.1f}", row.tokens_s),
        optional_text(row.served_tokens_s)};
    if (goodput) line.push_back(optional_text(row.goodput_tokens_s));
    table.add(std::move(line));
  }
  return table.empty() ? "no plan is possible\n" : table.text();
}

/// By reason: how many, and some of them.
std::string dead_text(const PlanReport& report) {
  std::string text;
  for (const auto& [death, count] : report.search.deaths()) {
    text += fmt::format("\ndied of {}: {}\n", to_string(death), count);
    Table table({Align::left, Align::left});
    std::int64_t shown = 0;
    for (const PlanRow& row : report.search.rows) {
      if (row.death != death || (!report.all && shown == k_dead_examples)) continue;
      table.add({row.plan.str(), row.why});
      ++shown;
    }
    text += table.text(2);
    if (shown < count) text += fmt::format("  and {} more; --all prints them\n", count - shown);
  }
  return text;
}

std::string wanted_text(const PlanReport& report) {
  const runtime::PlannerOptions& o = report.options;
  std::string text = fmt::format("{}: {} clusters, prompts of {} tokens, {} generated, plan {}; {}", report.config.name,
                                 o.clusters, o.prompt_tokens, o.output_tokens, o.execution, to_string(o.objective));
  if (o.slo.is_bound()) text += fmt::format(", TTFT {:g} s, TPOT {:g} s at most", o.slo.ttft_s, o.slo.tpot_s);
  return text + "\n";
}

}  // namespace

Json plan_report_json(const PlanReport& report, const sim::Machine& machine) {
  const runtime::PlannerOptions& o = report.options;
  Json json = {{"command", "plan"},
               {"model", report.config.name},
               {"clusters", o.clusters},
               {"prompt", o.prompt_tokens},
               {"tokens", o.output_tokens},
               {"objective", to_string(o.objective)},
               {"searched", report.search.rows.size()},
               {"alive", report.search.alive()},
               {"rows", Json::array()},
               {"deaths", Json::object()}};
  if (std::isfinite(o.slo.ttft_s)) json["slo"]["ttft_s"] = o.slo.ttft_s;
  if (std::isfinite(o.slo.tpot_s)) json["slo"]["tpot_s"] = o.slo.tpot_s;
  for (const PlanRow& row : report.search.rows) json["rows"].push_back(row_json(row));
  for (const auto& [death, count] : report.search.deaths()) json["deaths"][std::string(to_string(death))] = count;
  json["machine"] = machine_json(machine);
  json["assumed"] = {{"machine", assumed_machine_keys(machine)}};
  return json;
}

std::string plan_report_text(const PlanReport& report, const sim::Machine& machine) {
  return wanted_text(report) +
         fmt::format("searched {} plans, {} possible\n\n", report.search.rows.size(), report.search.alive()) +
         living_text(report) + dead_text(report) + fmt::format("\nmachine {}\n", machine_name(machine));
}

std::string plan_report_yaml(const PlanReport& report, const sim::Machine& machine) {
  const runtime::PlannerOptions& o = report.options;
  const PlanRow& best = report.search.rows.front();
  PinnedPlan pinned;
  pinned.plan = best.plan;
  pinned.batch = {best.plan.decode.micro_batch, o.prompt_tokens, o.output_tokens, false, "planned", ""};
  pinned.source = "planned";
  pinned.from = fmt::format("mtsim plan: {} of {} plans possible", report.search.alive(), report.search.rows.size());
  const bool is_path = report.model.find('/') != std::string::npos || std::filesystem::exists(report.model);
  const std::string model = is_path ? std::filesystem::absolute(report.model).string() : report.model;
  std::string text = fmt::format(
      "# SPDX-License-Identifier: Apache-2.0\n"
      "# Written by mtsim plan: {} on {} clusters, {}. `mtsim run` serves it, `mtsim generate --plan` decodes with "
      "it.\n"
      "kind: serving\nname: plan\ntitle: \"{} on {} clusters\"\nmachine: {}\n",
      report.config.name, o.clusters, to_string(o.objective), report.config.name, o.clusters, machine.path());
  std::string sets;
  for (const auto& n : machine.numbers()) {
    if (n.overridden && !n.before.empty()) sets += fmt::format("  {}: {}\n", n.key, n.value);
  }
  if (!sets.empty()) text += "set:\n" + sets;
  text += fmt::format("models: {{model: \"{}\"}}\n", model);
  if (best.goodput_requests_s && *best.goodput_requests_s > 0) {
    text += fmt::format("workload: {{kind: poisson}}\nslo: ttft={:g},tpot={:g}\n", o.slo.ttft_s, o.slo.tpot_s);
    text += fmt::format("grid: {{clusters: {}, prompt: {}, output: {}, rate: {:.4g}}}\n", o.clusters, o.prompt_tokens,
                        o.output_tokens, *best.goodput_requests_s);
  } else {
    text +=
        fmt::format("grid: {{clusters: {}, prompt: {}, output: {}}}\n", o.clusters, o.prompt_tokens, o.output_tokens);
  }
  return text + "rows: model\ncolumns: clusters\nplans:\n  model:\n" + plan_yaml(pinned, 4);
}

}  // namespace mtsim::scenarios
