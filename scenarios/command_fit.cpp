// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "scenarios/cli.h"
#include "scenarios/error.h"
#include "scenarios/fit.h"
#include "scenarios/progress.h"
#include "scenarios/serving/serving_report.h"
#include "scenarios/serving/simulated_costs.h"
#include "sim/config/output_file.h"

namespace mtsim::scenarios {

namespace {

constexpr const char* k_residuals_writer = "the residuals of --write";

struct FitOptions {
  std::vector<std::string> scenarios;
  std::string parameters = "ddr.bandwidth_gb_s,dma.broadcast_rendezvous_us";
  std::string file;  // --write
  CLI::App* app = nullptr;
};

std::string residuals_path(const FitOptions& options) {
  return std::filesystem::path(options.file).replace_extension(".fit.json").string();
}

/// What --write needs, asked before the work: a file that can take the numbers, and is the machine that is fitted.
void require_fit_target(const FitOptions& options, const std::vector<std::string>& keys, const CommonOptions& common) {
  sim::require_writable(options.file, sim::k_fit_writer, isa::FileUse::Purpose::update);
  sim::require_writable(residuals_path(options), k_residuals_writer);
  if (!common.sets.empty()) {
    throw UsageError(fmt::format(
        "fit --write {}: with --set another machine would be fitted than the file describes; put the number into the "
        "file, or leave --write out",
        options.file));
  }
  if (!common.machine.empty()) {
    const std::string fitted = sim::Machine::load(common.machine).path();
    if (!isa::same_file(fitted, options.file)) {
      throw UsageError(
          fmt::format("fit --write {}: --machine is another file, {}; name one of the two", options.file, fitted));
    }
  }
  sim::require_fittable(options.file, keys);
}

void write_fit(const FitOptions& options, const Scenario& scenario, const FitResult& result, const Json& json) {
  const auto cells = result.residuals.summary.at(std::string(k_fit_metric)).cells;
  std::vector<sim::FittedNumber> numbers;
  for (const auto& p : result.parameters) {
    numbers.push_back(
        {p.key, p.value,
         fmt::format("{} ({} cells, mean error {:.1f} %)", scenario.paper_source, cells, result.mape_percent)});
  }
  const std::string residuals = residuals_path(options);
  sim::OutputFile staged(residuals, k_residuals_writer);
  staged.write(dump(json));
  staged.complete();  // a full disk is noticed before the machine file changes
  sim::write_fitted(options.file, numbers);
  staged.commit();
  fmt::print(stderr, "wrote {} and {}\n", options.file, residuals);
}

/// One batch size a model, of scenarios of kind serving.
int fit_serving_command(const FitOptions& options, const CommonOptions& common) {
  if (options.app->get_option("--parameters")->count() > 0)
    throw UsageError("fit: a serving scenario has one number a model to fit, its batch size; leave --parameters out");
  std::vector<ServingScenario> scenarios;
  for (const std::string& path : options.scenarios) scenarios.push_back(load_serving_scenario(path).for_fit());
  if (!options.file.empty()) {
    sim::require_writable(options.file, sim::k_fit_writer, isa::FileUse::Purpose::update);
    sim::require_writable(residuals_path(options), k_residuals_writer);
    if (!common.sets.empty() || !common.machine.empty())
      throw UsageError(
          fmt::format("fit --write {}: with --set or --machine another machine would be fitted than the "
                      "scenario's; leave --write out",
                      options.file));
    const std::string& plans = scenarios.front().plans_path;
    if (!plans.empty() && !isa::same_file(plans, options.file))
      throw UsageError(fmt::format("fit --write {}: the scenario's plans are in {}", options.file, plans));
  }
  const sim::Machine machine = load_machine(common, scenarios.front().machine);
  ServingFit fit;
  {
    Progress progress("batch sizes", std::ssize(scenarios.front().models));
    fit = fit_batches(scenarios, machine, simulated_costs, true, [&progress] { progress.step(); });
  }
  const Json json = serving_fit_json(fit);
  emit(common, json, serving_fit_text(fit));
  if (options.file.empty()) return k_exit_done;
  sim::OutputFile staged(residuals_path(options), k_residuals_writer);
  staged.write(dump(json));
  staged.complete();
  write_batches(fit);
  staged.commit();
  fmt::print(stderr, "wrote {} and {}\n", options.file, residuals_path(options));
  return k_exit_done;
}

int fit_command(const FitOptions& options, const CommonOptions& common) {
  if (is_serving_scenario(options.scenarios.front())) return fit_serving_command(options, common);
  if (options.scenarios.size() > 1)
    throw UsageError("fit: of an operator there is one scenario; several are for those of kind serving");
  const Scenario scenario = load_scenario(options.scenarios.front()).for_fit();
  const auto keys = split_list(options.parameters, "--parameters");
  const std::string fallback = options.file.empty() ? scenario.machine : options.file;
  OperatorRunner runner(load_machine(common, fallback));
  const auto parameters = fit_parameters(runner.machine(), keys);
  if (!options.file.empty()) require_fit_target(options, keys, common);
  fmt::print(stderr, "fitting {} cells of {}; mean absolute error of {}:\n", scenario.cells().size(), scenario.name,
             k_fit_metric);
  const FitResult result = fit(scenario, runner, parameters, [&parameters](const FitStep& step) {
    fmt::print(stderr, "{}\n", fit_step_text(parameters, step));
  });
  const Json json = fit_json(scenario, result);
  emit(common, json, fit_text(scenario, result));
  if (!options.file.empty()) write_fit(options, scenario, result, json);
  return k_exit_done;
}

}  // namespace

Command add_fit(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<FitOptions>();
  CLI::App* sub = app.add_subcommand(
      "fit", "Fit the fitted numbers of the machine, or of serving plans, to a scenario's paper values");
  options->app = sub;
  sub->add_option("SCENARIO", options->scenarios, "YAML file with paper values; several of kind serving")->required();
  sub->add_option("--parameters", options->parameters,
                  "Numbers to fit (default ddr.bandwidth_gb_s,dma.broadcast_rendezvous_us)")
      ->type_name("KEY,KEY");
  sub->add_option("--write", options->file, "Write the values into FILE and the residuals beside it (.fit.json)")
      ->type_name("FILE");
  add_json_option(*sub, common);
  add_machine_options(*sub, common);
  sub->footer(R"(
A coarse grid over 2.5 times the plausible ranges, then a pattern search from the best point known; the machine's own
values are tried first, so the result is never worse. Each step is printed on stderr. --write changes the file once, after
the fit, and takes the machine from it: no --set, no other --machine. Of serving scenarios the requests of a decode
micro-batch are fitted, one number a model; the file is that of their plans.
  mtsim fit scenarios/paper/table_viii.yaml
  mtsim fit scenarios/paper/table_viii.yaml --write sim/machines/mt3000.yaml
  mtsim fit scenarios/paper/table_v.yaml scenarios/paper/table_vi.yaml --write scenarios/paper/serving_plans.yaml)");
  return {sub, [options, &common] { return fit_command(*options, common); }};
}

}  // namespace mtsim::scenarios
