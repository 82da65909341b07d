// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "scenarios/cli.h"
#include "scenarios/error.h"

namespace mtsim::scenarios {

Command add_describe(CLI::App& app, CommonOptions& common) {
  auto name = std::make_shared<std::string>();
  CLI::App* sub =
      app.add_subcommand("describe", "Show a machine: every number with unit, provenance, plausible range and source");
  sub->add_option("MACHINE", *name, "Machine file or name (default mt3000)");
  add_json_option(*sub, common);
  add_machine_options(*sub, common);
  sub->footer(R"(
  mtsim describe
  mtsim describe my_machine.yaml --set ddr.bandwidth_gb_s=60)");
  return {sub, [name, &common] {
            if (!name->empty() && !common.machine.empty())
              throw UsageError("describe: give MACHINE or --machine, not both");
            const sim::Machine machine = load_machine(common, name->empty() ? k_default_machine : *name);
            emit(common, machine_json(machine), machine_text(machine));
            return k_exit_done;
          }};
}

}  // namespace mtsim::scenarios
