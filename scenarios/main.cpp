// SPDX-License-Identifier: Apache-2.0
// The mtsim command. Exceptions become exit codes here and nowhere else.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "isa/diagnostic.h"
#include "isa/file_use.h"
#include "kernels/library.h"
#include "models/error.h"
#include "runtime/comm/mpirun.h"
#include "runtime/error.h"
#include "scenarios/cli.h"
#include "scenarios/error.h"
#include "scenarios/report.h"
#include "sim/config/output_file.h"
#include "sim/config/yaml.h"
#include "sim/core/executor.h"
#include "sim/dsp.h"

namespace mtsim::scenarios {

namespace {

constexpr const char* k_examples = R"(
Examples:
  mtsim run scenarios/paper/table_viii.yaml            the paper's table beside the simulated one
  mtsim op gemm --m 720 --n 256 --k 2048 --verify      one operator on one cluster
  mtsim import blas.c -o kernels.out                   published kernels to .s files
  mtsim check kernels/gemm/gemm_f32_6x128.s            find wrong schedules
  mtsim exec kernel.yaml --annotate                    run one microkernel on one core
  mtsim debug kernel.yaml                              the same packet by packet, forwards and backwards

Exit status: 0 done, 1 the simulated program or a comparison failed, 2 wrong usage or input.)";

int fail(int code, std::string_view message) {
  // No fmt::print: it throws when stderr is full, and there is nobody left to tell.
  std::fputs(fmt::format("mtsim: {}\n", message).c_str(), stderr);
  return code;
}

/// The subcommand that was asked for, down to "op gemm"; the top level if none.
const CLI::App& innermost(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : innermost(*chosen.front());
}

/// "mtsim op gemm".
std::string command_path(const CLI::App& app) {
  return app.get_parent() == nullptr ? "mtsim" : command_path(*app.get_parent()) + " " + app.get_name();
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    for (const auto& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands(nullptr)) names.push_back(sub->get_name());
  return names;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& names) {
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  return isa::did_you_mean(word, candidates);
}

/// What is wrong with the words nobody took: a misspelt option or subcommand first, else one word too many. Empty when
/// none.
std::string unexpected_words(const CLI::App& app) {
  const CLI::App& sub = innermost(app);
  for (const std::string& word : app.remaining(true)) {
    const std::string name = word.substr(0, word.find('='));
    const std::string see = fmt::format("; see {} --help", command_path(sub));
    if (name.size() > 1 && name.front() == '-') {
      return fmt::format("unknown option '{}' of '{}'{}{}", name, sub.get_name(), did_you_mean(name, option_names(sub)),
                         see);
    }
    const auto names = subcommand_names(sub);
    if (!names.empty()) {
      return fmt::format("unknown command '{}'{}; commands: {}", word, did_you_mean(word, names),
                         fmt::join(names, ", "));
    }
    return fmt::format("'{}' is one word too many for '{}'{}", word, sub.get_name(), see);
  }
  return "";
}

/// `--json ''` is a slip of a script, not a wish for the default.
void refuse_empty_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0) continue;
    option->check(CLI::Validator(
        [](const std::string& text) {
          return text.empty() ? std::string("is empty; give a value or leave it out") : std::string();
        },
        ""));
  }
  for (CLI::App* sub : app.get_subcommands(nullptr)) refuse_empty_values(*sub);
}

/// Common options given in front of a subcommand that has no use for them.
void refuse_unused(const CLI::App& top, const CLI::App& sub) {
  for (const char* name : {"--json", "--machine", "--set"}) {
    if (top.get_option(name)->count() > 0 && sub.get_option_no_throw(name) == nullptr) {
      throw UsageError(fmt::format("'{}' has no option {}", sub.get_name(), name));
    }
  }
}

int run(int argc, char** argv) {
  CLI::App app("Cycle-approximate simulator of the MT-3000 DSP that runs real VLIW microcode.", "mtsim");
  app.footer(k_examples);
  app.set_version_flag("--version", "mtsim " MTSIM_VERSION);
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(34);
  CommonOptions common;
  add_json_option(app, common);
  add_machine_options(app, common);
  std::vector<Command> commands;
  for (auto* add :
       {add_generate, add_exec, add_debug, add_import, add_check, add_fmt, add_schedule, add_op, add_run, add_fit,
        add_regress, add_describe, add_explore, add_make_model, add_plan, add_explain, add_report}) {
    commands.push_back(add(app, common));
  }
  refuse_empty_values(app);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      std::ostringstream out;
      app.exit(error, out, out);
      fmt::print("{}", out.str());
      return k_exit_done;
    }
    if (runtime::mpirun::repeats_rank_0()) return k_exit_usage;
    const std::string unexpected = unexpected_words(app);
    return fail(k_exit_usage, unexpected.empty()
                                  ? fmt::format("{}; see {} --help", error.what(), command_path(innermost(app)))
                                  : unexpected);
  }
  const CLI::App& chosen = innermost(app);
  if (&chosen == &app) {
    fmt::print("{}", app.help());
    return k_exit_done;
  }
  refuse_unused(app, chosen);
  if (!common.json.empty() && common.json != "-" && runtime::mpirun::rank() == 0)
    sim::require_writable(common.json, k_json_writer);
  const auto command = std::find_if(commands.begin(), commands.end(), [](const Command& c) { return c.app->parsed(); });
  try {
    sim::best_host_level();
  } catch (const std::runtime_error& error) {
    throw UsageError(error.what());
  }
  return command->run();
}

/// What is printed counts only once it is out.
int run_and_flush(int argc, char** argv) {
  const int exit_code = run(argc, argv);
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw std::system_error(errno != 0 ? errno : EIO, std::generic_category(), "stdout");
  return exit_code;
}

}  // namespace

}  // namespace mtsim::scenarios

int main(int argc, char** argv) {
  using namespace mtsim;
  using namespace mtsim::scenarios;
  const isa::FileUse files;
  sim::remove_temporaries_on_signals();
  try {
    return run_and_flush(argc, argv);
  } catch (const ProgramFailed& error) {
    return fail(k_exit_failed, error.what());
  } catch (const isa::IsaError& error) {
    std::string text = listing(error.diagnostics(), "");
    text.pop_back();  // the line's end, which fail adds
    return fail(k_exit_usage, text);
  } catch (const sim::ConfigError& error) {
    return fail(k_exit_usage, error.what());
  } catch (const isa::FileClash& error) {
    return fail(k_exit_usage, error.what());
  } catch (const kernels::KernelError& error) {
    return fail(k_exit_usage, error.what());
  } catch (const models::ModelError& error) {
    return fail(k_exit_usage, error.what());
  } catch (const runtime::RuntimeError& error) {
    return fail(k_exit_usage, error.what());
  } catch (const sim::SimError& error) {
    return fail(k_exit_usage, error.what());
  } catch (const UsageError& error) {
    return fail(k_exit_usage, error.what());
  } catch (const std::system_error& error) {
    return fail(k_exit_usage,
                fmt::format("cannot read or write: {}; check the files and the space left", error.what()));
  } catch (const std::bad_alloc&) {
    return fail(k_exit_usage, "this host has too little memory for the request; use a smaller one or timing depth");
  } catch (const std::exception& error) {
    return fail(k_exit_usage, fmt::format("internal error: {}; please report the command that led here", error.what()));
  }
}
