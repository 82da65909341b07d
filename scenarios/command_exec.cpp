// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "scenarios/cli.h"
#include "scenarios/error.h"
#include "scenarios/exec.h"
#include "scenarios/files.h"

namespace mtsim::scenarios {

namespace {

struct ExecOptions {
  std::string spec;
  bool annotate = false;
};

int exec_command(const ExecOptions& options, const CommonOptions& common) {
  const sim::Machine machine = load_machine(common);
  const ExecSpec spec = load_exec_spec(options.spec, machine.config());
  const ExecOutcome outcome = run_exec(spec, machine);
  Json json = exec_json(spec, outcome);
  std::string text = exec_text(spec, outcome);
  if (options.annotate) {
    const auto lines = annotate(spec.program, read_text(spec.program.file), outcome.packet_counts);
    json["lines"] = annotation_json(lines);
    text += "\n" + annotation_text(lines);
  }
  emit(common, json, text);
  return outcome.result.status == sim::RunStatus::done ? k_exit_done : k_exit_failed;
}

}  // namespace

Command add_exec(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<ExecOptions>();
  CLI::App* sub =
      app.add_subcommand("exec", "Run one microkernel on one core: SPEC names program, registers and memory");
  sub->add_option("SPEC", options->spec, "YAML file, see docs/scenarios.md")->required();
  sub->add_flag("--annotate", options->annotate, "List the source with issues and empty slots per packet");
  add_json_option(*sub, common);
  add_machine_options(*sub, common);
  sub->footer(R"(
Example of a SPEC:
  program: k.s
  registers: {R10: 0, R12: 0x1000, R14: 256, R16: "f32:1.5"}
  memory:
    - {space: sm, address: 0, file: a.bin}
  dump:
    - {space: am, address: 0x8000, bytes: 3072, file: c.bin}

Paths are relative to the SPEC. Exit status 1 when the program faults or reaches max_cycles; dumps and JSON are written in any case.
  mtsim exec scenarios/examples/axpy.yaml --annotate
  mtsim exec k.yaml --json - --set latencies.VLDW=8)");
  return {sub, [options, &common] { return exec_command(*options, common); }};
}

}  // namespace mtsim::scenarios
