// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "isa/assembler.h"
#include "isa/checker.h"
#include "scenarios/cli.h"

namespace mtsim::scenarios {

namespace {

struct CheckOptions {
  std::vector<std::string> files;
  std::string entry;
  ProgramOptions program;
};

struct Checked {
  std::vector<isa::Diagnostic> diagnostics;
  int exit_code = k_exit_done;
};

Checked check_file(const std::string& file, const CheckOptions& options, const isa::Pipeline& pipeline) {
  try {
    const isa::Program program = isa::assemble_file(file, assemble_options(options.program, pipeline));
    program.entry(options.entry);
    Checked checked{isa::check(program, pipeline, options.entry)};
    if (count(checked.diagnostics).errors > 0) checked.exit_code = k_exit_failed;
    return checked;
  } catch (const isa::IsaError& error) {
    return {error.diagnostics(), k_exit_usage};
  }
}

int check_command(const CheckOptions& options, const CommonOptions& common) {
  const sim::Machine machine = load_machine(common);
  int exit_code = k_exit_done;
  std::string text;
  Json results = Json::array();
  for (const std::string& file : options.files) {
    const Checked checked = check_file(file, options, machine.config().pipeline);
    exit_code = std::max(exit_code, checked.exit_code);
    text += check_text(file, checked.diagnostics);
    results.push_back(check_json(file, checked.diagnostics));
  }
  emit(common, results.size() == 1 ? results.front() : results, text);
  return exit_code;
}

}  // namespace

Command add_check(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* sub = app.add_subcommand("check", "Find wrong schedules before they run");
  sub->add_option("FILE", options->files, "Assembly files")->required();
  sub->add_option("--entry", options->entry, "Check what is reachable from this label only")->type_name("LABEL");
  add_program_options(*sub, options->program);
  add_json_option(*sub, common);
  add_machine_options(*sub, common);
  sub->footer(R"(
Exit status: 0 no errors (warnings and notes are printed), 1 errors, 2 the text does not assemble.
  mtsim check kernels/gemm/gemm_f32_6x128.s
  mtsim check k.s --set latencies.VLDW=11           does the schedule hold on a slower memory?)");
  return {sub, [options, &common] { return check_command(*options, common); }};
}

}  // namespace mtsim::scenarios
