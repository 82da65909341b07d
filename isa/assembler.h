// SPDX-License-Identifier: Apache-2.0
// Text to Program: the syntax of published MT-3000 kernels plus our directives (.param, .equ, .rept, .macro, .region,
// .scheduled_for). docs/isa.md, generated from the instruction table, describes it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "isa/program.h"

namespace mtsim::isa {

struct AssembleOptions {
  std::vector<Register> operands;  // which register each %n is; R10, R12, R14, ... or the .param when empty
  std::map<std::string, std::int64_t> defines;  // parameters of a template: win over its .equ of that name,
                                                // which it must have
  // What .linear regions are scheduled for; hand packets say theirs with .scheduled_for.
  Pipeline pipeline;
  bool allow_assumed = false;  // the scheduler may use packet shapes not known to run on hardware
  bool prove_loops = false;    // search for what shows that no .linear loop can be shorter: changes linear_loops alone
  // The text of an .include, by its path from where `file` starts; may throw IsaError. Files on disk for assemble_file;
  // without it, an .include is a mistake.
  std::function<std::string(const std::string& path)> include = {};
};

/// Throws IsaError listing every problem with file:line:col. `file` is used in messages only.
Program assemble(std::string_view text, const std::string& file, const AssembleOptions& options = {});

/// Reads and assembles a file; IsaError when it cannot be read or has more than 16 MiB.
Program assemble_file(const std::string& path, const AssembleOptions& options = {});

/// "R10" -> register; nullopt when it is not a register name or out of range. Case-insensitive.
std::optional<Register> parse_register(std::string_view text);

}  // namespace mtsim::isa
