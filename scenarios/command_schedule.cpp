// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "isa/assembler.h"
#include "isa/printer.h"
#include "isa/reschedule.h"
#include "isa/schedule_view.h"
#include "scenarios/cli.h"
#include "scenarios/error.h"
#include "sim/config/output_file.h"

namespace mtsim::scenarios {

namespace {

constexpr const char* k_output_writer = "-o";

struct Options {
  std::string file;
  std::string part;
  ProgramOptions program;
  bool reschedule = false;
  bool independent = false;
  std::string output;
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
                    {"busiest_slot", loop.busiest_slot},
                    {"units", units}});
  }
  return json;
}

Json report_json(const isa::LoopReport& report) {
  Json resources = Json::array(), blocked = Json::array(), registers = Json::object();
  for (const isa::ResourceBound& bound : report.resources) {
    resources.push_back(
        {{"name", bound.name}, {"cycles", bound.cycles}, {"instructions", bound.instructions}, {"slots", bound.slots}});
  }
  for (const isa::BlockedInterval& one : report.blocked) {
    blocked.push_back({{"interval", one.interval}, {"reason", one.reason}});
  }
  for (std::size_t f = 0; f < isa::k_register_files; ++f) {
    registers[std::string(isa::k_register_file_names[f])] = report.registers[f];
  }
  return {{"label", report.label},
          {"line", report.place.line},
          {"instructions", report.instructions},
          {"pipelined", report.pipelined},
          {"why_not", report.why_not},
          {"resource_bound", report.resource_bound},
          {"resources", resources},
          {"recurrence_bound", report.recurrence.cycles},
          {"recurrence", report.recurrence.edges},
          {"lifetime_bound", report.lifetime.cycles},
          {"lifetime", report.lifetime.edges},
          {"bound_with_copies", report.copied_bound},
          {"initiation_interval", report.interval},
          {"proved", report.is_proved()},
          {"proved_for_registers", report.is_proved() || report.refuted_here},
          {"blocked", blocked},
          {"copies", report.copies},
          {"stages", report.stages},
          {"prologue_cycles", report.prologue_cycles},
          {"epilogue_cycles", report.epilogue_cycles},
          {"not_pipelined_cycles", report.simple_cycles},
          {"trip_minimum", report.trip_minimum},
          {"guarded", report.guarded},
          {"live_registers", registers}};
}

// The scheduler on the inner loops of hand packets: what it finds, and the program with them replaced.
int run_doctor(const Options& options, const CommonOptions& common, const isa::Program& program,
               const isa::Pipeline& pipeline) {
  const isa::Rescheduled result =
      isa::reschedule(program, pipeline, {options.program.allow == "assumed", options.independent});
  Json loops = Json::array();
  std::string text;
  for (const isa::RescheduledLoop& loop : result.loops) {
    Json json = report_json(loop.report);
    json["hand_interval"] = loop.hand_interval;
    json["replaced"] = loop.replaced;
    json["why_kept"] = loop.why_kept;
    if (loop.call_iterations > 0) {
      json["call"] = {
          {"iterations", loop.call_iterations}, {"hand_cycles", loop.hand_call_cycles}, {"cycles", loop.call_cycles}};
    }
    loops.push_back(std::move(json));
    text += isa::print(loop);
  }
  if (result.loops.empty()) text = "no loop of one block in hand packets\n";
  if (!options.output.empty()) sim::write_file(options.output, k_output_writer, isa::print(result.program));
  emit(common, {{"file", options.file}, {"rescheduled", loops}}, text);
  return k_exit_done;
}

int run(const Options& options, const CommonOptions& common) {
  if ((!options.output.empty() || options.independent) && !options.reschedule) {
    throw UsageError("schedule: -o and --independent go with --reschedule");
  }
  if (!options.output.empty()) sim::require_writable(options.output, k_output_writer);
  const sim::Machine machine = load_machine(common);
  const isa::Pipeline& pipeline = machine.config().pipeline;
  isa::AssembleOptions assembling = assemble_options(options.program, pipeline);
  assembling.prove_loops = !options.reschedule;
  const isa::Program program = isa::assemble_file(options.file, assembling);
  if (options.reschedule) return run_doctor(options, common, program, pipeline);
  Json linear = Json::array();
  std::string text;
  for (const isa::LoopReport& report : program.linear_loops) {
    linear.push_back(report_json(report));
    text += isa::print(report) + "\n";
  }
  text += isa::schedule_text(program, pipeline, options.part);
  emit(common, {{"file", options.file}, {"loops", loops_json(isa::loops(program, pipeline))}, {"linear", linear}},
       text);
  return k_exit_done;
}

}  // namespace

Command add_schedule(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("schedule", "Show a schedule: a row a cycle, a column a unit, results in flight");
  sub->add_option("FILE", options->file, "Assembly file")->required();
  sub->add_option("PART", options->part, "Label of a loop, or a region; the whole program if absent");
  add_program_options(*sub, options->program);
  sub->add_flag("--reschedule", options->reschedule,
                "Schedule the inner loops of hand packets anew and say whether they can be shorter");
  sub->add_flag("--independent", options->independent,
                "With --reschedule: loads and stores through different address registers never overlap");
  sub->add_option("-o,--output", options->output,
                  "With --reschedule: the program, its loops replaced where that makes them shorter")
      ->type_name("FILE");
  add_json_option(*sub, common);
  add_machine_options(*sub, common);
  sub->footer(R"(
For .linear code also what bounds each loop, the interval found and what stands in the way of a shorter one.
  mtsim schedule kernels/gemm/gemm_f32_6x128.s          Table I of the paper as a picture
  mtsim schedule k.s loop --json -                      initiation interval and unit use as JSON
  mtsim schedule --reschedule k.s -o faster.s           can the hand schedule be beaten?)");
  return {sub, [options, &common] { return run(*options, common); }};
}

}  // namespace mtsim::scenarios
