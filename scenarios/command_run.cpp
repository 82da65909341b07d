// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "scenarios/cli.h"
#include "scenarios/error.h"
#include "scenarios/perturb.h"
#include "scenarios/progress.h"
#include "scenarios/scenario_runner.h"
#include "scenarios/serving/serving_report.h"
#include "scenarios/serving/simulated_costs.h"
#include "scenarios/watch.h"

namespace mtsim::scenarios {

namespace {

/// Applies scenario keys to the scenario and the rest to the machine; an unknown key names both sets. `machine_sets`:
/// what the scenario itself changes.
template <class AnyScenario>
sim::Machine apply_sets(AnyScenario& scenario, const CommonOptions& common,
                        std::vector<std::pair<std::string, std::string>> machine_sets = {}) {
  for (const std::string& text : common.sets) {
    const auto [key, value] = split_set(text);
    if (!scenario.set(key, value)) machine_sets.emplace_back(key, value);
  }
  sim::Machine machine = sim::Machine::load(common.machine.empty() ? scenario.machine : common.machine);
  std::vector<std::string_view> known;
  for (const auto& number : machine.numbers()) known.push_back(number.key);
  for (const auto& [key, value] : machine_sets) {
    if (!key.starts_with("latencies.") && std::find(known.begin(), known.end(), key) == known.end()) {
      const auto scenario_keys = scenario.keys();
      std::vector<std::string_view> all(scenario_keys.begin(), scenario_keys.end());
      all.insert(all.end(), known.begin(), known.end());
      throw UsageError(fmt::format("--set {}: unknown key{}\n  scenario keys: {}\n  machine keys: {}", key,
                                   isa::did_you_mean(key, all), fmt::join(scenario_keys, ", "),
                                   fmt::join(known, ", ")));
    }
    machine.set(key, value);
  }
  require_memory_model(machine);
  return machine;
}

struct RunOptions {
  std::string path;
  WatchOptions watch;
  std::int64_t samples = 0;
  std::uint64_t seed = 1;
  bool events = false;
  std::string trace;
  CLI::App* app = nullptr;
};

constexpr std::int64_t k_band_samples = 16;  // of links and hosts, when --perturb says nothing

int run_serving_command(const RunOptions& given, const CommonOptions& common) {
  for (const char* name : {"--no-hazards", "--suppress"}) {
    if (given.app->get_option(name)->count() > 0)
      throw UsageError(fmt::format("{} is for scenarios of an operator; {} is of kind serving", name, given.path));
  }
  ServingScenario scenario = load_serving_scenario(given.path);
  const sim::Machine machine = apply_sets(scenario, common, scenario.machine_sets);
  ServingRunOptions options;
  options.samples = given.samples > 0 ? given.samples : k_band_samples;
  options.seed = given.seed;
  options.events = given.events;
  options.trace = given.trace;
  options.in_workers = true;
  ServingRun run;
  {
    Progress progress(scenario.name);
    run = run_serving(scenario, machine, simulated_costs, options);
  }
  emit(common, serving_json(scenario, run, machine), serving_text(scenario, run, machine));
  return k_exit_done;
}

int run_command(const RunOptions& given, const CommonOptions& common) {
  if (is_serving_scenario(given.path)) return run_serving_command(given, common);
  if (given.events || !given.trace.empty()) {
    throw UsageError(fmt::format("{} is for scenarios of kind serving; {} has no kind",
                                 given.events ? "--events" : "--trace", given.path));
  }
  const WatchOptions& options = given.watch;
  Scenario scenario = load_scenario(given.path);
  OperatorRunner runner(apply_sets(scenario, common));
  Watch watch(options, runner.machine().config());
  runner.set_watch(watch);
  std::optional<Perturbation> perturbation;
  if (given.samples > 0) {  // first: its processes start before this one elaborates a cluster
    Progress progress(scenario.name + ", samples", given.samples);
    perturbation = perturb(scenario, runner.machine(), given.samples, given.seed, [&progress] { progress.step(); });
  }
  ScenarioResult result;
  {
    Progress progress(scenario.name, static_cast<std::int64_t>(scenario.cells().size()));
    result = run_scenario(scenario, runner, [&progress] { progress.step(); });
  }
  result.perturbation = std::move(perturbation);
  emit(common, scenario_json(scenario, result, runner.machine()), scenario_text(scenario, result, runner.machine()));
  watch.finish();  // a trace that cannot be written loses no result
  return result.passed() ? k_exit_done : k_exit_failed;
}

}  // namespace

Command add_run(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* sub = app.add_subcommand(
      "run", "Run a scenario: an operator over shapes, or models on many clusters, beside the paper's numbers");
  options->app = sub;
  sub->add_option("SCENARIO", options->path, "YAML file, see docs/scenarios.md")->required();
  add_json_option(*sub, common);
  sub->add_option("--machine", common.machine, "Machine file or name, instead of the scenario's")
      ->type_name("NAME|FILE");
  add_hazard_options(*sub, options->watch);
  add_set_option(
      *sub, common,
      "Change a number of the machine, or a key of the scenario: its axes, depth, variant, tile (repeatable)");
  CLI::Option* perturb =
      sub->add_option(
             "--perturb", options->samples,
             "Run it on this many machines drawn from the plausible ranges of all uncertain numbers at once; each "
             "result gets the band that holds nine tenths of them. Serving: of links and hosts alone (default 16)")
          ->check(whole_number(2));
  sub->add_option("--seed", options->seed, "Of --perturb (default 1)")->check(whole_number(0))->needs(perturb);
  sub->add_flag("--events", options->events,
                "Serving: keep in the JSON what each stage did and when, for `mtsim explain`");
  sub->add_option("--trace", options->trace, "Serving: write what the pools of the only cell did, for ui.perfetto.dev")
      ->type_name("FILE");
  sub->footer(R"(
Exit status 1 when a cell faults or has DMA findings; a large error against the paper is a result, not a failure.
  mtsim run scenarios/paper/table_viii.yaml
  mtsim run scenarios/paper/table_viii.yaml --perturb 32
  mtsim run scenarios/paper/table_v.yaml --set model=7b --set link.network_bandwidth_gb_s=10
  mtsim run scenarios/paper/table_viii.yaml --set ddr.bandwidth_gb_s=60 --set "m=[1024, 8192]")");
  return {sub, [options, &common] { return run_command(*options, common); }};
}

}  // namespace mtsim::scenarios
