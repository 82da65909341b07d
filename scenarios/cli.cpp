// SPDX-License-Identifier: Apache-2.0
#include "scenarios/cli.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "isa/assembler.h"
#include "scenarios/error.h"
#include "sim/config/output_file.h"
#include "sim/config/scalar.h"
#include "sim/memory_model.h"

namespace mtsim::scenarios {

void add_json_option(CLI::App& app, CommonOptions& common) {
  app.add_option("--json", common.json, "Write the result as JSON to FILE; - is stdout")->type_name("FILE");
}

void add_set_option(CLI::App& app, CommonOptions& common, const std::string& help) {
  app.add_option("--set", common.sets, help)->type_name("KEY=VALUE")->allow_extra_args(false);
}

void add_machine_options(CLI::App& app, CommonOptions& common) {
  app.add_option("--machine", common.machine, "Machine file, or the name of one that ships (default mt3000)")
      ->type_name("NAME|FILE");
  add_set_option(app, common, "Change one number of the machine, e.g. ddr.bandwidth_gb_s=60 (repeatable)");
}

std::string shell_quoted(const std::string& word) {
  constexpr const char* k_plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=,:@%+-";
  if (!word.empty() && word.find_first_not_of(k_plain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

/// "--head_dim,--head-dim": either spelling.
static std::string option_names(std::string_view dimension) {
  std::string hyphens(dimension);
  std::replace(hyphens.begin(), hyphens.end(), '_', '-');
  return hyphens == dimension ? fmt::format("--{}", dimension) : fmt::format("--{},--{}", dimension, hyphens);
}

void add_dimension_options(CLI::App& app, const OperatorInfo& info, Shape& shape) {
  shape.resize(info.dimensions.size());
  for (std::size_t i = 0; i < info.dimensions.size(); ++i) {
    const Dimension& dimension = info.dimensions[i];
    shape[i] = dimension.value.value_or(0);
    const std::string help = dimension.value ? fmt::format("{} (default {})", dimension.help, *dimension.value)
                                             : std::string(dimension.help);
    app.add_option(option_names(dimension.name), shape[i], help)
        ->check(whole_number(dimension.least))
        ->required(!dimension.value);
  }
}

/// "f32" or "f32 (default) or f16".
std::string dtype_help(const OperatorInfo& info) {
  std::vector<std::string> words;
  for (const DType dtype : info.dtypes) words.emplace_back(to_string(dtype));
  if (words.size() > 1) words.front() += " (default)";
  return fmt::format("Element type ({})", fmt::join(words, ", "));
}

CLI::Validator whole_number(std::int64_t low) {
  return CLI::Validator(
      [low](const std::string& text) -> std::string {
        const auto number = sim::scan_integer(text);
        if (!number.value)
          return fmt::format("{}{}{}", number.problem.message, number.problem.suggestion.empty() ? "" : "; ",
                             number.problem.suggestion);
        if (text.find_first_of("xX") != std::string::npos)
          return fmt::format("'{}': write it in decimal, {}", text, *number.value);
        if (*number.value < low) return fmt::format("{} is too small; at least {}", text, low);
        return "";
      },
      "");
}

void require_memory_model(const sim::Machine& machine) {
  const auto names = sim::memory_model_names();
  const std::string& name = machine.config().ddr.memory_model;
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  const std::vector<std::string_view> known(names.begin(), names.end());
  throw UsageError(fmt::format("{}: unknown DDR model '{}' (ddr.memory_model){}; known: {}", machine.path(), name,
                               isa::did_you_mean(name, known), fmt::join(names, ", ")));
}

sim::Machine load_machine(const CommonOptions& common, const std::string& fallback) {
  sim::Machine machine = sim::Machine::load(common.machine.empty() ? fallback : common.machine, common.sets);
  require_memory_model(machine);
  return machine;
}

std::pair<std::string, std::string> split_set(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw UsageError(fmt::format("--set {}: expected key=value, e.g. --set ddr.bandwidth_gb_s=60", text));
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::vector<std::string> split_list(const std::string& text, const std::string& option) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    words.push_back(text.substr(at, comma - at));
    if (words.back().empty())
      throw UsageError(fmt::format("{} '{}': an empty word; separate words by one comma", option, text));
    at = comma + 1;
  }
  return words;
}

std::vector<isa::Register> parse_operands(const std::string& text) {
  std::vector<isa::Register> registers;
  if (text.empty()) return registers;
  for (const std::string& word : split_list(text, "--operands")) {
    const auto reg = isa::parse_register(word);
    if (!reg) throw UsageError(fmt::format("--operands: '{}' is not a register; name registers, e.g. R10,R12", word));
    registers.push_back(*reg);
  }
  return registers;
}

void add_program_options(CLI::App& app, ProgramOptions& options) {
  app.add_option("--operands", options.operands, "Registers of %0,%1,... (default R10,R12,R14,...)")->type_name("R,R");
  app.add_option("--define", options.defines, "Parameter of a template; wins over its .equ")->type_name("NAME=VALUE");
  app.add_option("--allow", options.allow, "Packet shapes the scheduler of .linear may use beyond those known to run")
      ->check(CLI::IsMember({"assumed"}));
}

isa::AssembleOptions assemble_options(const ProgramOptions& options, const isa::Pipeline& pipeline) {
  isa::AssembleOptions assemble{.operands = parse_operands(options.operands), .defines = {}, .pipeline = pipeline};
  assemble.allow_assumed = options.allow == "assumed";
  for (const std::string& text : options.defines) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals), value = equals == std::string::npos ? "" : text.substr(equals + 1);
    std::size_t end = 0;
    std::int64_t number = 0;
    try {
      number = std::stoll(value, &end, 0);
    } catch (const std::exception&) {
      end = 0;
    }
    if (name.empty() || end == 0 || end != value.size()) {
      throw UsageError(fmt::format("--define: '{}' is not NAME=VALUE with a whole number, e.g. K=64", text));
    }
    if (!assemble.defines.try_emplace(name, number).second)
      throw UsageError(fmt::format("--define: '{}' is given twice; keep one", name));
  }
  return assemble;
}

void emit(const CommonOptions& common, const Json& json, const std::string& text) {
  if (common.json == "-") {
    fmt::print("{}", dump(json));
    return;
  }
  fmt::print("{}", text);
  if (!common.json.empty()) sim::write_file(common.json, k_json_writer, dump(json));
}

}  // namespace mtsim::scenarios
