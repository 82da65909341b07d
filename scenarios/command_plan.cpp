// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "models/config.h"
#include "runtime/planner/planner.h"
#include "scenarios/cli.h"
#include "scenarios/error.h"
#include "scenarios/plan/graph_view.h"
#include "scenarios/plan/plan_report.h"
#include "scenarios/progress.h"
#include "scenarios/serving/simulated_costs.h"
#include "sim/config/output_file.h"

namespace mtsim::scenarios {

namespace {

constexpr const char* k_yaml_writer = "--yaml";
constexpr std::int64_t k_default_prompt = 512, k_default_tokens = 128;

struct PlanOptions {
  GraphRequest graph;
  bool show_graph = false;
  std::int64_t tokens = 0;  // generated; of --show-graph, new ones
  std::int64_t prompt = k_default_prompt, devices = 0, clusters = 0;
  std::string objective, slo;
  std::int64_t top = 10, requests = 0, most_tp = 0;
  bool all = false;
  std::string yaml;
  CLI::App* app = nullptr;
};

void refuse(const CLI::App& app, std::initializer_list<const char*> names, const char* what) {
  for (const char* name : names) {
    if (app.get_option(name)->count() > 0) throw UsageError(fmt::format("plan: {} is {}", name, what));
  }
}

runtime::PlannerOptions planner_options(const PlanOptions& options, const sim::Machine& machine) {
  runtime::PlannerOptions planner;
  const std::int64_t per_device = machine.config().device.clusters;
  planner.clusters = options.clusters > 0 ? options.clusters : options.devices * per_device;
  planner.clusters_per_device = per_device;
  planner.prompt_tokens = options.prompt;
  planner.output_tokens = options.tokens > 0 ? options.tokens : k_default_tokens;
  planner.execution = options.graph.plan;
  planner.requests = options.requests;
  if (options.most_tp > 0) planner.most_tp = options.most_tp;
  if (!options.slo.empty()) planner.slo = runtime::ServiceLevel::parse(options.slo);
  planner.objective = !options.objective.empty() ? runtime::parse_objective(options.objective)
                      : planner.slo.is_bound()   ? runtime::Objective::goodput
                                                 : runtime::Objective::throughput;
  if (planner.objective == runtime::Objective::goodput && !planner.slo.is_bound())
    throw UsageError("plan: --objective goodput is tokens within an SLO; give --slo ttft=SECONDS,tpot=SECONDS");
  return planner;
}

int search_command(const PlanOptions& options, const CommonOptions& common) {
  refuse(*options.app, {"--context", "--batch", "--layer"}, "for --show-graph");
  if ((options.devices > 0) == (options.clusters > 0))
    throw UsageError("plan: give --devices or --clusters to search pools for, or --show-graph");
  if (!options.yaml.empty()) sim::require_writable(options.yaml, k_yaml_writer);
  const sim::Machine machine = load_machine(common);
  const models::LlamaConfig config = models::load_config(options.graph.model);
  PlanReport report{options.graph.model, config, planner_options(options, machine), {}, options.top, options.all};
  const auto costs = simulated_costs(machine);
  runtime::IterationCost& cost = costs->of(config, runtime::ExecutionPlan::named(report.options.execution));
  {
    Progress progress("plans of " + config.name, 1 + options.top);
    report.search = runtime::search_plans(config, cost, report.options);
    progress.step();
    runtime::rank_by_serving(report.search, options.top, config, cost, report.options,
                             [&progress] { progress.step(); });
  }
  emit(common, plan_report_json(report, machine), plan_report_text(report, machine));
  if (report.search.alive() == 0) return k_exit_failed;
  if (!options.yaml.empty()) sim::write_file(options.yaml, k_yaml_writer, plan_report_yaml(report, machine));
  return k_exit_done;
}

int plan_command(PlanOptions options, const CommonOptions& common) {
  if (!options.show_graph) return search_command(options, common);
  refuse(*options.app,
         {"--prompt", "--devices", "--clusters", "--objective", "--slo", "--requests", "--most-tp", "--top", "--all",
          "--yaml"},
         "for a search of pools, --show-graph is another question");
  if (options.tokens > 0) options.graph.tokens = options.tokens;
  const GraphView view = show_graph(options.graph, load_machine(common));
  emit(common, view.json, view.text);
  return k_exit_done;
}

}  // namespace

Command add_plan(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* sub = app.add_subcommand(
      "plan", "Which pools of clusters serve a model best; or how its graph is cut into units for a cluster");
  options->app = sub;
  sub->add_option("--model", options->graph.model, "A model's folder or file, or the name of a shipped configuration")
      ->required();
  sub->add_option("--devices", options->devices, "Search pools over so many devices")->check(whole_number(1));
  sub->add_option("--clusters", options->clusters, "Over so many clusters instead")->check(whole_number(1));
  sub->add_option("--prompt", options->prompt, "Tokens of a prompt (default 512)")->check(whole_number(1));
  sub->add_option("--tokens", options->tokens,
                  "To generate (default 128); with --show-graph, new tokens of each sequence (default 512: a prefill)")
      ->check(whole_number(1));
  sub->add_option("--objective", options->objective, "throughput (default), or goodput (default with --slo)");
  sub->add_option("--slo", options->slo, "Seconds a request may take: ttft=2,tpot=0.15, or one of the two")
      ->type_name("ttft=S,tpot=S");
  sub->add_option("--requests", options->requests, "A pool has at a time (default: the best for each plan)")
      ->check(whole_number(1));
  sub->add_option("--most-tp", options->most_tp, "Largest tensor-parallel group (default 16); 4 stays inside a device")
      ->check(whole_number(1));
  sub->add_option("--top", options->top, "Best rows to serve, rank and print (default 10)")->check(whole_number(1));
  sub->add_flag("--all", options->all, "Print every row that was searched, the dead ones too");
  sub->add_option("--yaml", options->yaml, "Write the best as a scenario for `mtsim run` and `mtsim generate --plan`")
      ->type_name("FILE");
  sub->add_flag("--show-graph", options->show_graph,
                "The units of one layer: operators, arithmetic density, bytes on chip, why each ends where it does");
  sub->add_option("--context", options->graph.context, "Graph: tokens each sequence has in the cache (default 0)")
      ->check(whole_number(0));
  sub->add_option("--batch", options->graph.batch, "Graph: sequences (default 1)")->check(whole_number(1));
  sub->add_option("--layer", options->graph.layer, "Graph: which (default 0)")->check(whole_number(0));
  sub->add_option("--dtype", options->graph.dtype, "Graph: f16 (default) or f32");
  sub->add_option("--plan", options->graph.plan, "a0, a1 or a2 (default): of Table VII");
  add_json_option(*sub, common);
  add_machine_options(*sub, common);
  sub->footer(R"(
Exit status 1 when no plan is possible; the table says why.
  mtsim plan --model Llama-2-13B --devices 9
  mtsim plan --model Llama-2-13B --clusters 12 --requests 34 --most-tp 4
  mtsim plan --model LLaMA-30B --devices 16 --slo ttft=20,tpot=0.4 --yaml plan.yaml
  mtsim plan --model Llama-2-7B --show-graph --tokens 1 --context 512 --batch 16)");
  return {sub, [options, &common] { return plan_command(*options, common); }};
}

}  // namespace mtsim::scenarios
