// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "scenarios/cli.h"
#include "scenarios/error.h"
#include "scenarios/files.h"
#include "scenarios/serving/explain.h"

namespace mtsim::scenarios {

namespace {

struct ExplainOptions {
  std::string run;
  std::int64_t request = 0;
  std::int64_t cell = -1;
};

int explain_command(const ExplainOptions& options, const CommonOptions& common) {
  Json run;
  try {
    run = Json::parse(read_text(options.run));
  } catch (const Json::parse_error& error) {
    throw UsageError(fmt::format("{}: is no JSON: {}", options.run, error.what()));
  }
  const auto cell = options.cell >= 0 ? std::optional(options.cell) : std::nullopt;
  const ExplainedRequest request = explain_request(run, options.run, options.request, cell);
  const sim::Machine machine = machine_of(run);
  const auto operators = layer_operators(request, machine);
  emit(common, explained_json(request, operators, machine), explained_text(request, operators, machine));
  return k_exit_done;
}

}  // namespace

Command add_explain(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* sub = app.add_subcommand(
      "explain", "Where the time of a request went: queue, stages, and the kernel and DMA path or unit that bound it");
  sub->add_option("RUN", options->run, "JSON of `mtsim run SCENARIO --events --json FILE`, of kind serving")
      ->required();
  sub->add_option("--request", options->request, "Its number, from 0")->required()->check(whole_number(0));
  sub->add_option("--case", options->cell, "Which case of the run, from 0; the only one if absent")
      ->check(whole_number(0));
  add_json_option(*sub, common);
  sub->footer(R"(
  mtsim run scenarios/paper/table_v.yaml --set model=7b --set devices=8 --set prompt=512 --events --json run.json
  mtsim explain run.json --request 17)");
  return {sub, [options, &common] { return explain_command(*options, common); }};
}

}  // namespace mtsim::scenarios
