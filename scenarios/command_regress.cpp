// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "scenarios/cli.h"
#include "scenarios/error.h"
#include "scenarios/progress.h"
#include "scenarios/regress.h"
#include "scenarios/table.h"
#include "scenarios/workers.h"
#include "sim/config/output_file.h"

namespace mtsim::scenarios {

namespace {

struct RegressOptions {
  std::vector<std::string> paths = {"tests/regress"};
  bool update = false;
};

Json case_json(const RegressResult& result) {
  Json json;
  json["name"] = result.name;
  json["passed"] = result.passed();
  json["measures"] = result.measures;
  json["changes"] = Json::array();
  for (const Change& change : result.changes) {
    Json entry = {{"measure", change.measure}, {"golden", nullptr}, {"now", nullptr}, {"allowed", change.allowed}};
    if (change.golden) entry["golden"] = *change.golden;
    if (change.now) entry["now"] = *change.now;
    if (change.golden && change.now) {
      entry["delta"] = *change.now - *change.golden;
      if (*change.golden != 0)
        entry["percent"] =
            100.0 * static_cast<double>(*change.now - *change.golden) / static_cast<double>(*change.golden);
    }
    json["changes"].push_back(std::move(entry));
  }
  json["failures"] = result.failures;
  return json;
}

/// One file, in a worker: its JSON; the golden file is rewritten here when asked.
std::string run_file(const std::string& path, bool update) {
  const RegressFile file = load_regress_file(path, update);
  const auto results = run_regress_file(file);
  if (update) {
    sim::write_file(file.golden_path, "regress --update", golden_text(results), isa::FileUse::Purpose::update);
  }
  Json json;
  json["file"] = path;
  json["golden"] = file.golden_path;
  json["cases"] = Json::array();
  for (const auto& result : results) json["cases"].push_back(case_json(result));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// "cycles 1,000 -> 1,100 (+100, +10.0 %)".
std::string change_text(const Json& change) {
  const auto value = [](const Json& number) {
    return number.is_null() ? std::string("none") : grouped(number.get<std::int64_t>());
  };
  std::string out = fmt::format("{} {} -> {}", change.at("measure").get<std::string>(), value(change.at("golden")),
                                value(change.at("now")));
  if (!change.contains("delta")) return out;
  const auto delta = change.at("delta").get<std::int64_t>();
  out += fmt::format(" ({}{}", delta < 0 ? "" : "+", grouped(delta));
  if (change.contains("percent")) out += fmt::format(", {:+.1f} %", change.at("percent").get<double>());
  return out + (change.at("allowed").get<bool>() ? "; within tolerance)" : ")");
}

std::string file_text(const Json& file) {
  std::string details;
  std::size_t moved = 0;
  for (const auto& each : file.at("cases")) {
    if (each.at("changes").empty() && each.at("failures").empty()) continue;
    ++moved;
    details += fmt::format("  {}\n", each.at("name").get<std::string>());
    for (const auto& failure : each.at("failures"))
      details += fmt::format("    FAILED: {}\n", failure.get<std::string>());
    for (const auto& change : each.at("changes")) details += fmt::format("    {}\n", change_text(change));
  }
  const std::size_t all = file.at("cases").size();
  return fmt::format("{}: {} {}, {}\n", file.at("file").get<std::string>(), all, all == 1 ? "case" : "cases",
                     moved == 0 ? std::string("all as recorded") : fmt::format("{} not as recorded", moved)) +
         details;
}

int regress_command(const RegressOptions& options, const CommonOptions& common) {
  const auto paths = regress_paths(options.paths);
  for (const std::string& path : paths) {  // before a worker rewrites the first golden file
    for (const std::string& file : {path, golden_path(path)}) isa::FileUse::reads(file);
  }
  std::vector<std::string> texts;
  {
    Progress progress("regress", static_cast<std::int64_t>(paths.size()));
    texts = in_workers(
        paths.size(), [&](std::size_t i) { return run_file(paths[i], options.update); }, [&] { progress.step(); });
  }
  Json json;
  json["files"] = Json::array();
  std::string text;
  bool passed = true, failed_limits = false, moved = false;
  for (const std::string& each : texts) {
    json["files"].push_back(Json::parse(each));
    const Json& file = json["files"].back();
    text += file_text(file);
    for (const auto& the_case : file.at("cases")) {
      passed &= the_case.at("passed").get<bool>();
      failed_limits |= !the_case.at("failures").empty();
      for (const auto& change : the_case.at("changes")) moved |= !change.at("allowed").get<bool>();
    }
  }
  json["passed"] = passed;
  json["updated"] = options.update;
  if (options.update) {
    text += "golden files rewritten; review the diff\n";
  } else if (moved) {  // no golden file lifts a limit
    text += "if the new numbers are right: mtsim regress --update, and review the diff\n";
  }
  emit(common, json, text);
  return (options.update ? !failed_limits : passed) ? k_exit_done : k_exit_failed;
}

}  // namespace

Command add_regress(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<RegressOptions>();
  CLI::App* sub = app.add_subcommand("regress", "Compare what kernels and operators take with their golden files");
  sub->add_option("PATH", options->paths, "Case files, or folders of them (default tests/regress)");
  sub->add_flag("--update", options->update, "Rewrite the golden files; limits must still hold");
  add_json_option(*sub, common);
  sub->footer(R"(
Each file runs in a process of its own. Exit status 1 when a number moved beyond its tolerance, a limit is broken, a value
is wrong or the DMA was misused; docs/kernel-writers.md describes the files.
  mtsim regress
  mtsim regress tests/regress/gemm.yaml --json -)");
  return {sub, [options, &common] { return regress_command(*options, common); }};
}

}  // namespace mtsim::scenarios
