// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "isa/assembler.h"
#include "isa/schedule_view.h"
#include "scenarios/cli.h"

namespace mtsim::scenarios {

namespace {

struct Options {
  std::string file;
  std::string part;
  std::string operands;
};

Json loops_json(const std::vector<isa::LoopSchedule>& loops) {
  Json json = Json::array();
  for (const auto& loop : loops) {
    Json units = Json::object();
    for (std::size_t u = 0; u < isa::k_units; ++u) units[std::string(isa::k_unit_names[u])] = loop.issues[u];
    json.push_back({{"label", loop.label},
                    {"first_packet", loop.first},
                    {"packets", loop.last - loop.first},
                    {"initiation_interval", loop.initiation_interval},
                    {"resource_bound", loop.resource_bound},
                    {"units", units}});
  }
  return json;
}

int run(const Options& options, const CommonOptions& common) {
  const sim::Machine machine = load_machine(common);
  protect_from_json(common, {options.file});
  const isa::Pipeline& pipeline = machine.config().pipeline;
  const isa::Program program = isa::assemble_file(options.file, {.operands = parse_operands(options.operands)});
  const std::string text = isa::schedule_text(program, pipeline, options.part);
  emit(common, {{"file", options.file}, {"loops", loops_json(isa::loops(program, pipeline))}}, text);
  return k_exit_done;
}

}  // namespace

Command add_schedule(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("schedule", "Show a schedule: a row a cycle, a column a unit, results in flight");
  sub->add_option("FILE", options->file, "Assembly file")->required();
  sub->add_option("PART", options->part, "Label of a loop, or a region; the whole program if absent");
  sub->add_option("--operands", options->operands, "Registers of %0,%1,... (default R10,R12,R14,...)")
      ->type_name("R,R");
  add_json_option(*sub, common);
  add_machine_options(*sub, common);
  sub->footer(R"(
  mtsim schedule kernels/gemm/gemm_f32_6x128.s          Table I of the paper as a picture
  mtsim schedule k.s loop --json -                      initiation interval and unit use as JSON)");
  return {sub, [options, &common] { return run(*options, common); }};
}

}  // namespace mtsim::scenarios
