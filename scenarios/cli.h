// SPDX-License-Identifier: Apache-2.0
// The subcommands of mtsim, one command_*.cpp each. They throw; main turns that into exit codes.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "isa/assembler.h"
#include "scenarios/report.h"
#include "sim/config/machine.h"

namespace mtsim::scenarios {

inline constexpr int k_exit_done = 0;
inline constexpr int k_exit_failed = 1;  // the simulated program or a comparison
inline constexpr int k_exit_usage = 2;   // wrong usage or input

/// The options several subcommands share; also accepted in front of the subcommand.
struct CommonOptions {
  std::string json;               // --json FILE, "-" is stdout; empty: no JSON. main asks whether it can be written
  std::string machine;            // --machine NAME|FILE; empty: the default
  std::vector<std::string> sets;  // --set key=value
};

inline constexpr const char* k_default_machine = "mt3000";
inline constexpr const char* k_json_writer = "--json";  // for isa::FileUse

struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;  // gives the exit code
};

Command add_exec(CLI::App& app, CommonOptions& common);
Command add_debug(CLI::App& app, CommonOptions& common);
Command add_import(CLI::App& app, CommonOptions& common);
Command add_check(CLI::App& app, CommonOptions& common);
Command add_fmt(CLI::App& app, CommonOptions& common);
Command add_schedule(CLI::App& app, CommonOptions& common);
Command add_generate(CLI::App& app, CommonOptions& common);
Command add_op(CLI::App& app, CommonOptions& common);
Command add_run(CLI::App& app, CommonOptions& common);
Command add_fit(CLI::App& app, CommonOptions& common);
Command add_regress(CLI::App& app, CommonOptions& common);
Command add_explain(CLI::App& app, CommonOptions& common);
Command add_explore(CLI::App& app, CommonOptions& common);
Command add_describe(CLI::App& app, CommonOptions& common);
Command add_make_model(CLI::App& app, CommonOptions& common);
Command add_plan(CLI::App& app, CommonOptions& common);
Command add_report(CLI::App& app, CommonOptions& common);

// Which of the common options a subcommand has.
void add_json_option(CLI::App& app, CommonOptions& common);
void add_machine_options(CLI::App& app, CommonOptions& common);  // --machine and --set
void add_set_option(CLI::App& app, CommonOptions& common, const std::string& help);

/// An option for each dimension of an operator: --kv-heads or --kv_heads.
void add_dimension_options(CLI::App& app, const OperatorInfo& info, Shape& shape);
/// "Element type (f32 (default), f16)".
std::string dtype_help(const OperatorInfo& info);

/// A whole decimal number from `low` on, strictly: no 010, no 0x10.
CLI::Validator whole_number(std::int64_t low);
/// A word of a shell line, in quotes where it needs them.
std::string shell_quoted(const std::string& word);

/// UsageError when the machine names a DDR model there is not.
void require_memory_model(const sim::Machine& machine);

/// The machine of --machine and --set, or `fallback` with --set.
sim::Machine load_machine(const CommonOptions& common, const std::string& fallback = k_default_machine);

/// "key=value" in two; UsageError otherwise.
std::pair<std::string, std::string> split_set(const std::string& text);
/// "a,b" -> {"a", "b"}; UsageError for an empty word.
std::vector<std::string> split_list(const std::string& text, const std::string& option);

/// --operands R10,R12 as registers.
std::vector<isa::Register> parse_operands(const std::string& text);

/// How a program is assembled: --operands, --define, --allow.
struct ProgramOptions {
  std::string operands;
  std::vector<std::string> defines;  // NAME=VALUE
  std::string allow;                 // "assumed"
};
void add_program_options(CLI::App& app, ProgramOptions& options);
/// UsageError for what cannot be read.
isa::AssembleOptions assemble_options(const ProgramOptions& options, const isa::Pipeline& pipeline);

/// Text to stdout and JSON to --json FILE; JSON alone to stdout for "-".
void emit(const CommonOptions& common, const Json& json, const std::string& text);

}  // namespace mtsim::scenarios
