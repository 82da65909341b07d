// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "scenarios/cli.h"
#include "scenarios/error.h"
#include "scenarios/files.h"

namespace mtsim::scenarios {

namespace {

Json read_json(const std::string& path) {
  try {
    return Json::parse(read_text(path));
  } catch (const Json::parse_error& error) {
    throw UsageError(fmt::format("{}: is no JSON: {}", path, error.what()));
  }
}

int run_fidelity(const std::vector<std::string>& files) {
  std::vector<std::pair<std::string, Json>> results;
  for (const auto& file : files) results.emplace_back(file, read_json(file));
  fmt::print("{}", fidelity_page(results));
  return k_exit_done;
}

}  // namespace

Command add_report(CLI::App& app, CommonOptions&) {
  auto files = std::make_shared<std::vector<std::string>>();
  CLI::App* report = app.add_subcommand("report", "Write generated documentation pages (markdown on stdout)");
  report->require_subcommand(1);
  CLI::App* isa = report->add_subcommand("isa", "The instruction reference, docs/isa.md");
  CLI::App* fidelity = report->add_subcommand("fidelity", "The paper's tables beside ours, docs/fidelity.md");
  fidelity->add_option("RESULT", *files, "JSON files of `mtsim run --json` and `mtsim fit --json`")->required();
  report->footer(R"(
  mtsim report isa > docs/isa.md
  mtsim report fidelity table_viii.json sim/machines/mt3000.fit.json > docs/fidelity.md)");
  return {report, [files, isa] {
            if (!isa->parsed()) return run_fidelity(*files);
            fmt::print("{}", isa_page());
            return k_exit_done;
          }};
}

}  // namespace mtsim::scenarios
