// SPDX-License-Identifier: Apache-2.0
#include "scenarios/cli.h"

#include <fmt/format.h>

#include "isa/assembler.h"
#include "scenarios/error.h"
#include "scenarios/files.h"

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

sim::Machine load_machine(const CommonOptions& common, const std::string& fallback) {
  return sim::Machine::load(common.machine.empty() ? fallback : common.machine, common.sets);
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

void emit(const CommonOptions& common, const Json& json, const std::string& text) {
  if (common.json == "-") {
    fmt::print("{}", dump(json));
    return;
  }
  fmt::print("{}", text);
  if (!common.json.empty()) write_text(common.json, dump(json));
}

}  // namespace mtsim::scenarios
