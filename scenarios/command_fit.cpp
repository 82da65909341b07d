// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "scenarios/cli.h"
#include "scenarios/error.h"
#include "scenarios/files.h"
#include "scenarios/fit.h"

namespace mtsim::scenarios {

namespace {

struct Options {
  std::string scenario;
  std::string parameters = "ddr.bandwidth_gb_s,dma.broadcast_rendezvous_us";
  std::string machine_file;  // --write
};

void write_fit(const Options& options, const Scenario& scenario, const FitResult& result, const Json& json) {
  const auto cells = result.residuals.summary.at(std::string(k_fit_metric)).cells;
  for (const auto& p : result.parameters) {
    sim::write_fitted(
        options.machine_file, p.key, p.value,
        fmt::format("{} ({} cells, mean error {:.1f} %)", scenario.paper_source, cells, result.mape_percent));
  }
  const std::string residuals = std::filesystem::path(options.machine_file).replace_extension(".fit.json").string();
  write_text(residuals, dump(json));
  fmt::print(stderr, "wrote {} and {}\n", options.machine_file, residuals);
}

int run(const Options& options, const CommonOptions& common) {
  const Scenario scenario = load_scenario(options.scenario);
  if (!options.machine_file.empty()) {
    require_writable(options.machine_file);
    sim::Machine::load(options.machine_file);  // refused now rather than after the work
  }
  const std::string fallback = options.machine_file.empty() ? scenario.machine : options.machine_file;
  GemmRunner runner(load_machine(common, fallback));
  const auto keys = split_list(options.parameters, "--parameters");
  const auto parameters = fit_parameters(runner.machine(), keys);
  fmt::print(stderr, "fitting {} cells of {}; mean absolute error of {}:\n", scenario.cells().size(), scenario.name,
             k_fit_metric);
  const FitResult result = fit(scenario, runner, parameters, [&parameters](const FitStep& step) {
    fmt::print(stderr, "{}\n", fit_step_text(parameters, step));
  });
  const Json json = fit_json(scenario, result);
  emit(common, json, fit_text(scenario, result));
  if (!options.machine_file.empty()) write_fit(options, scenario, result, json);
  return k_exit_done;
}

}  // namespace

Command add_fit(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("fit", "Fit the fitted numbers of the machine to a scenario's paper values");
  sub->add_option("SCENARIO", options->scenario, "YAML file with paper values")->required();
  sub->add_option("--parameters", options->parameters,
                  "Numbers to fit (default ddr.bandwidth_gb_s,dma.broadcast_rendezvous_us)")
      ->type_name("KEY,KEY");
  sub->add_option("--write", options->machine_file,
                  "Write the values into FILE and the residuals beside it (.fit.json)")
      ->type_name("FILE");
  add_json_option(*sub, common);
  add_machine_options(*sub, common);
  sub->footer(R"(
A coarse grid far beyond the plausible ranges, then a deterministic pattern search; each step is printed on stderr.
  mtsim fit scenarios/paper/table_viii.yaml
  mtsim fit scenarios/paper/table_viii.yaml --write sim/machines/mt3000.yaml)");
  return {sub, [options, &common] { return run(*options, common); }};
}

}  // namespace mtsim::scenarios
