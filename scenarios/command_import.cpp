// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "isa/importer.h"
#include "scenarios/cli.h"
#include "scenarios/error.h"
#include "scenarios/files.h"
#include "sim/config/output_file.h"

namespace mtsim::scenarios {

namespace {

struct ImportOptions {
  std::string source;
  std::string folder;
};

int import_command(const ImportOptions& options, const CommonOptions& common) {
  const auto [bodies, diagnostics] = isa::import_c(read_text(options.source), options.source);
  if (bodies.empty() && !diagnostics.empty()) throw isa::IsaError(diagnostics);
  if (bodies.empty())
    throw UsageError(fmt::format("{}: has no asm body; give a C file with GCC extended asm", options.source));
  std::vector<std::string> paths;
  const auto writer = [](const isa::ImportedBody& body) { return fmt::format("{}: the body", body.place.str()); };
  for (const auto& body : bodies) {
    paths.push_back((std::filesystem::path(options.folder) / (body.name + ".s")).string());
    isa::FileUse::writes(paths.back(), writer(body));  // all, before the first is written
  }
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (error) throw UsageError(fmt::format("{}: cannot make this folder: {}", options.folder, error.message()));
  Json json = {{"source", options.source}, {"files", Json::array()}};
  std::string text;
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const auto& body = bodies[i];
    const std::string& path = paths[i];
    sim::write_file(path, writer(body), body.text);
    json["files"].push_back({{"name", body.name}, {"file", path}, {"place", body.place.str()}});
    text += fmt::format("{}: {}\n", body.place.str(), path);
  }
  json["diagnostics"] = diagnostics_json(diagnostics);
  emit(common, json, text);
  for (const auto& diagnostic : diagnostics) fmt::print(stderr, "{}\n", diagnostic.str());
  return diagnostics.empty() ? k_exit_done : k_exit_usage;
}

}  // namespace

Command add_import(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* sub = app.add_subcommand("import", "Write DIR/FUNCTION.s for each asm body of a C file");
  sub->add_option("FILE", options->source, "C file with GCC extended asm")->required();
  sub->add_option("-o,--output", options->folder, "Folder of the .s files; made if absent")
      ->required()
      ->type_name("DIR");
  add_json_option(*sub, common);
  sub->footer(R"(
A second body of a function goes to FUNCTION_2.s. %n stays and is declared as .param, outputs before inputs.
  mtsim import blas.c -o imported && mtsim check imported/*.s)");
  return {sub, [options, &common] { return import_command(*options, common); }};
}

}  // namespace mtsim::scenarios
