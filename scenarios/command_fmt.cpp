// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "isa/assembler.h"
#include "isa/printer.h"
#include "isa/text_file.h"
#include "scenarios/cli.h"
#include "scenarios/error.h"
#include "scenarios/files.h"
#include "sim/config/output_file.h"

namespace mtsim::scenarios {

namespace {

struct FormatOptions {
  std::vector<std::string> files;
  bool in_place = false;
  bool check = false;
  bool packets = false;
};

int format_command(const FormatOptions& options) {
  if (options.files.size() > 1 && !options.in_place && !options.check) {
    throw UsageError("fmt: several files need -i (rewrite them) or --check");
  }
  int exit_code = k_exit_done;
  for (const std::string& file : options.files) {
    const std::string text = read_text(file);
    const isa::Program program = isa::assemble(text, file, {.include = isa::read_text_file});
    const std::string formatted = options.packets ? isa::print_packets(program) : isa::print(program);
    if (options.check) {
      if (text == formatted) continue;
      fmt::print(stderr, "{}: is not formatted; mtsim fmt -i {}\n", file, file);
      exit_code = k_exit_failed;
    } else if (options.in_place) {
      if (text != formatted) sim::write_file(file, "fmt -i", formatted, isa::FileUse::Purpose::update);
    } else {
      fmt::print("{}", formatted);
    }
  }
  return exit_code;
}

}  // namespace

Command add_fmt(CLI::App& app, CommonOptions&) {
  auto options = std::make_shared<FormatOptions>();
  CLI::App* sub = app.add_subcommand("fmt", "Print a program with one line a packet and one column a unit");
  sub->add_option("FILE", options->files, "Assembly files")->required();
  CLI::Option* in_place = sub->add_flag("-i,--in-place", options->in_place, "Rewrite the files");
  sub->add_flag("--check", options->check, "Change nothing; exit 1 when a file is not formatted")->excludes(in_place);
  sub->add_flag("--packets", options->packets, "Print the packets that .linear code is scheduled into")
      ->excludes(in_place);
  sub->footer(R"(
.include, .rept, .macro, .if and .equ are expanded; .linear code stays linear.
  mtsim fmt k.s | less -S
  mtsim fmt -i kernels/gemm/*.s)");
  return {sub, [options] { return format_command(*options); }};
}

}  // namespace mtsim::scenarios
