// SPDX-License-Identifier: Apache-2.0
// The regression harness: what kernels and operators are measured to take, kept in golden files, and limits that hold
// whatever the golden files say. docs/kernel-writers.md describes the files.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/library.h"
#include "scenarios/operator_runner.h"
#include "sim/config/machine.h"

namespace mtsim::scenarios {

/// What a case was measured to take, by name: cycles, packets, ii.LOOP of a microkernel; cycles, stall.CLASS (cycles,
/// all cores), calls.PROGRAM, bytes.PATH (read), sm_bytes, am_bytes, gsm_bytes (allocated) of an operator.
using Measures = std::map<std::string, std::int64_t>;

struct RegressCase {
  std::string name;
  isa::Place place;  // in its file

  struct Microkernel {    // one call on one core
    std::string program;  // its name in the library, or a path that ends in ".s"
    std::string entry;
    kernels::Defines defines;
    std::map<std::string, std::int64_t> arguments;  // by .param; pointers and what is not named are 0
  };
  std::optional<Microkernel> microkernel;
  std::optional<OperatorRequest> request;

  bool verify = false;           // values too, in functional depth, and its cycles must be the same
  double tolerance_percent = 0;  // cycles and stalls may differ from the golden ones by this much
  Measures exactly, at_most;     // limits
};

/// The program of a case, .linear regions scheduled for `pipeline`. Throws KernelError and isa::IsaError.
isa::Program program_of(const RegressCase::Microkernel& call, const isa::Pipeline& pipeline);

struct RegressFile {
  std::string path;
  std::string golden_path;  // "add.golden.yaml" beside "add.yaml"
  sim::Machine machine;
  std::vector<RegressCase> cases;
  std::map<std::string, Measures> golden;  // by case; empty when there is no golden file yet
};

/// Every FILE, and the .yaml files of every folder but for golden ones, sorted. UsageError when there are none.
std::vector<std::string> regress_paths(const std::vector<std::string>& arguments);
/// "add.golden.yaml" beside "add.yaml".
std::string golden_path(const std::string& path);
/// Throws sim::ConfigError with every mistake of the file and of its golden file, file:line:col. A golden case that the
/// file no longer has is one, but not when `updating`.
RegressFile load_regress_file(const std::string& path, bool updating = false);

struct Change {
  std::string measure;
  std::optional<std::int64_t> golden, now;
  bool allowed = false;  // within the tolerance
};

struct RegressResult {
  std::string name;
  Measures measures;
  std::vector<Change> changes;
  std::vector<std::string> failures;  // limits broken, values wrong, findings, faults
  /// Nothing moved that may not move and nothing failed.
  bool passed() const;
};

/// Runs the cases of a file on one elaborated cluster and compares them with its golden values.
std::vector<RegressResult> run_regress_file(const RegressFile& file);

/// The golden file's text for these measures.
std::string golden_text(const std::vector<RegressResult>& results);

}  // namespace mtsim::scenarios
