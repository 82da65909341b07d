// SPDX-License-Identifier: Apache-2.0
// Reads regress files and their golden files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "isa/assembler.h"
#include "isa/checker.h"
#include "isa/diagnostic.h"
#include "scenarios/error.h"
#include "scenarios/files.h"
#include "scenarios/regress.h"
#include "sim/config/yaml.h"

namespace mtsim::scenarios {

namespace fs = std::filesystem;

namespace {

using sim::YamlNode;

constexpr std::string_view k_golden = ".golden.yaml";

/// Runs what throws on a wrong word and makes that a complaint at the node's place.
template <class Action>
void complaining(const YamlNode& node, const Action& action) {
  try {
    action();
  } catch (const UsageError& error) {
    node.complain(error.what());
  } catch (const kernels::KernelError& error) {
    node.complain(error.what());
  } catch (const isa::IsaError& error) {
    node.complain(error.what());
  }
}

/// A microkernel outside the library.
bool is_file(const std::string& program) { return program.ends_with(".s"); }

std::string text_of(const YamlNode& node, std::string_view key) {
  const auto value = node.find(key);
  return value ? value->as_string() : "";
}

Measures read_numbers(const YamlNode& node, const std::string& prefix = "") {
  Measures numbers;
  for (const std::string& key : node.keys()) numbers[prefix + key] = node.find(key)->as_integer();
  return numbers;
}

void read_microkernel(const YamlNode& node, const YamlNode& program, RegressCase& the_case) {
  RegressCase::Microkernel& call = the_case.microkernel.emplace();
  call.program = program.as_string();
  call.entry = text_of(node, "entry");
  if (const auto defines = node.find("defines")) call.defines = read_numbers(*defines);
  const auto arguments = node.find("arguments");
  if (arguments) call.arguments = read_numbers(*arguments);
  complaining(program, [&] {
    if (is_file(call.program)) call.program = relative_to(node.place().file, call.program);
    const isa::Program found = program_of(call, {});
    found.entry(call.entry);
    std::vector<std::string_view> names;
    for (const isa::Parameter& parameter : found.parameters) names.push_back(parameter.name);
    for (const auto& [name, unused_value] : call.arguments) {
      if (std::find(names.begin(), names.end(), name) == names.end())
        arguments->complain_about_key(name, fmt::format("{} has no .param '{}'", call.program, name),
                                      fmt::format("it has {}", fmt::join(names, ", ")));
    }
    std::string why;
    if (!isa::timing_is_static(found, &why))
      program.complain(fmt::format("the cycles of {} depend on data: {}", call.program, why));
  });
}

void read_operator(const YamlNode& node, const YamlNode& name, RegressCase& the_case) {
  const Operator* op = nullptr;
  complaining(name, [&] { op = &require_operator(name.as_string()); });
  const YamlNode shape = node.require("shape");
  if (op == nullptr || shape.is_null()) {
    if (!shape.is_null()) shape.keys();
    for (const char* key : {"dtype", "variant", "tile", "verify"}) (void)node.find(key);
    return;
  }
  OperatorRequest& request = the_case.request.emplace();
  request.op = op;
  for (const Dimension& dimension : op->info().dimensions) {
    const auto value = dimension.value ? shape.find(dimension.name) : shape.require(dimension.name);
    request.spec.shape.push_back(value && !value->is_null() ? value->as_integer() : dimension.value.value_or(0));
    if (value && !value->is_null() && request.spec.shape.back() < 1)
      value->complain(fmt::format("{} is no size", request.spec.shape.back()), "at least 1");
  }
  request.spec.dtype = op->info().dtypes.front();
  const auto dtype = node.find("dtype"), variant = node.find("variant"), tile = node.find("tile");
  if (dtype) complaining(*dtype, [&] { request.spec.dtype = parse_dtype(*op, dtype->as_string()); });
  complaining(variant.value_or(name),
              [&] { request.spec.variant = parse_variant(*op, variant ? variant->as_string() : ""); });
  if (tile) {
    request.spec.tile = tile->as_string();
    complaining(*tile, [&] { op->check_tile(request.spec.tile, request.spec.dtype); });
  }
  if (const auto verify = node.find("verify")) the_case.verify = verify->as_boolean();
}

RegressCase read_case(const YamlNode& node) {
  RegressCase the_case;
  the_case.place = node.place();
  the_case.name = node.require("name").as_string();
  const auto program = node.find("program"), op = node.find("operator");
  if (program && !op) {
    read_microkernel(node, *program, the_case);
  } else if (op && !program) {
    read_operator(node, *op, the_case);
  } else {
    node.keys();
    node.complain("a case is about a microkernel or an operator", "give it either 'program' or 'operator'");
    return the_case;
  }
  if (const auto tolerance = node.find("tolerance_percent")) {
    the_case.tolerance_percent = tolerance->as_number();
    if (!(the_case.tolerance_percent >= 0 && the_case.tolerance_percent <= 100))
      tolerance->complain("no tolerance", "0 to 100");
  }
  if (const auto limits = node.find("at_most")) the_case.at_most = read_numbers(*limits);
  if (const auto limits = node.find("exactly")) the_case.exactly = read_numbers(*limits);
  return the_case;
}

void read_golden(const std::string& path, bool updating, RegressFile& file) {
  if (!fs::exists(path)) return;
  const auto document = [&] {
    try {
      return sim::YamlDocument::load(path);
    } catch (const sim::ConfigError& error) {
      throw UsageError(fmt::format("{}; delete it and write it anew with --update", error.what()));
    }
  }();
  const YamlNode root = document.root();
  for (const std::string& key : root.keys()) {
    file.golden[key] = read_numbers(*root.find(key));
    const bool known =
        std::any_of(file.cases.begin(), file.cases.end(), [&key](const RegressCase& c) { return c.name == key; });
    if (!known && !updating) {
      root.complain_about_key(key, fmt::format("{} has no case '{}'", file.path, key),
                              "mtsim regress --update drops it");
    }
  }
  document.finish();
}

}  // namespace

isa::Program program_of(const RegressCase::Microkernel& call, const isa::Pipeline& pipeline) {
  if (is_file(call.program)) return isa::assemble_file(call.program, {.defines = call.defines, .pipeline = pipeline});
  return kernels::program(call.program, pipeline, call.defines);
}

std::vector<std::string> regress_paths(const std::vector<std::string>& arguments) {
  std::vector<std::string> paths;
  for (const std::string& argument : arguments) {
    if (!fs::is_directory(argument)) {
      paths.push_back(argument);
      continue;
    }
    for (const auto& entry : fs::directory_iterator(argument)) {
      const std::string path = entry.path().string();
      if (path.ends_with(".yaml") && !path.ends_with(k_golden)) paths.push_back(path);
    }
  }
  if (paths.empty())
    throw UsageError(fmt::format("regress: no .yaml files in {}; name files or folders", fmt::join(arguments, ", ")));
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string golden_path(const std::string& path) {
  return fs::path(path).replace_extension().string() + std::string(k_golden);
}

RegressFile load_regress_file(const std::string& path, bool updating) {
  const auto document = sim::YamlDocument::load(path);
  const YamlNode root = document.root();
  RegressFile file;
  file.path = path;
  file.golden_path = golden_path(path);
  std::vector<std::string> sets;
  if (const auto numbers = root.find("set")) {
    for (const std::string& key : numbers->keys())
      sets.push_back(fmt::format("{}={}", key, numbers->find(key)->as_string()));
  }
  const YamlNode machine = root.require("machine");
  try {
    if (!machine.is_null()) file.machine = sim::Machine::load(machine.as_string(), sets);
  } catch (const sim::ConfigError& error) {
    machine.complain(error.what());
  }
  const YamlNode cases = root.require("cases");
  if (cases.size() == 0) cases.complain("no case", "one '- name: ...' entry per case");
  for (std::size_t i = 0; i < cases.size(); ++i) {
    file.cases.push_back(read_case(cases.at(i)));
    const std::string& name = file.cases.back().name;
    if (std::any_of(file.cases.begin(), file.cases.end() - 1, [&](const RegressCase& c) { return c.name == name; }))
      cases.at(i).complain(fmt::format("two cases are called '{}'", name), "rename one");
  }
  document.finish();
  read_golden(file.golden_path, updating, file);
  return file;
}

}  // namespace mtsim::scenarios
