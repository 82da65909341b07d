// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <memory>
#include <sstream>

#include "scenarios/cli.h"
#include "scenarios/debug/debugger.h"
#include "scenarios/error.h"
#include "scenarios/files.h"

namespace mtsim::scenarios {

namespace {

struct DebugOptions {
  std::string spec;
  std::vector<std::string> scripts, commands;
  bool batch = false;
};

/// While it lives, Ctrl-C stops the simulated program and not mtsim; at the prompt it drops the line, as the terminal
/// does.
class CatchInterrupt {
 public:
  CatchInterrupt() {
    struct sigaction action {};
    action.sa_handler = [](int) { Debugger::interrupt(); };
    action.sa_flags = SA_RESTART;
    sigaction(SIGINT, &action, &m_before);
  }
  ~CatchInterrupt() { sigaction(SIGINT, &m_before, nullptr); }
  CatchInterrupt(const CatchInterrupt&) = delete;
  CatchInterrupt& operator=(const CatchInterrupt&) = delete;

 private:
  struct sigaction m_before {};
};

/// Lines that nobody types: a mistake in one ends mtsim.
void run_script(Debugger& debugger, std::istream& in, const std::string& name) {
  int number = 0;
  for (std::string line; !debugger.quit() && std::getline(in, line);) {
    ++number;
    try {
      fmt::print("{}", debugger.run(line));
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("{}:{}: {}", name, number, error.what()));
    }
  }
}

void run_prompt(Debugger& debugger) {
  const CatchInterrupt interrupt;
  fmt::print("`help` lists the commands.\n");
  std::string again;
  while (!debugger.quit()) {
    fmt::print("(mtsim) ");
    std::fflush(stdout);
    std::string line;
    if (!std::getline(std::cin, line)) {
      fmt::print("\n");
      return;
    }
    if (line.empty()) line = again;
    try {
      fmt::print("{}", debugger.run(line));
      again = Debugger::repeats(line) ? line : "";
    } catch (const UsageError& error) {
      fmt::print("{}\n", error.what());
      again.clear();
    }
  }
}

int debug_command(const DebugOptions& options, const CommonOptions& common) {
  const sim::Machine machine = load_machine(common);
  Debugger debugger(load_exec_spec(options.spec, machine.config()), machine.config());
  fmt::print("{}", debugger.where());
  for (const std::string& file : options.scripts) {
    std::istringstream in(read_text(file));
    run_script(debugger, in, file);
  }
  for (const std::string& command : options.commands) {
    std::istringstream in(command);
    run_script(debugger, in, "--command");
  }
  if (options.batch || debugger.quit()) return k_exit_done;
  if (isatty(STDIN_FILENO) != 0) {
    run_prompt(debugger);
  } else {
    run_script(debugger, std::cin, "stdin");
  }
  return k_exit_done;
}

}  // namespace

Command add_debug(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<DebugOptions>();
  CLI::App* sub = app.add_subcommand("debug", "Step through one microkernel, forwards and backwards: SPEC as for exec");
  sub->add_option("SPEC", options->spec, "YAML file, see docs/scenarios.md; its dumps are not written")->required();
  sub->add_option("-x,--script", options->scripts, "Run the commands in FILE first (repeatable)")
      ->type_name("FILE")
      ->allow_extra_args(false);
  sub->add_option("--command", options->commands, "Run this command, behind those of -x (repeatable)")
      ->type_name("COMMAND")
      ->allow_extra_args(false);
  sub->add_flag("--batch", options->batch, "End behind the commands of -x and --command");
  add_machine_options(*sub, common);
  sub->footer(R"(
Commands come from -x, --command and then standard input, with a prompt on a terminal; `help` lists them.
Exit status: 0, also when the program faults; 2 for a wrong command, but for one typed at the prompt.
  mtsim debug scenarios/examples/axpy.yaml
  mtsim debug k.yaml --batch --command 'watch VR3' --command continue --command flight)");
  return {sub, [options, &common] { return debug_command(*options, common); }};
}

}  // namespace mtsim::scenarios
