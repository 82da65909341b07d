// SPDX-License-Identifier: Apache-2.0
// Results as text for people and as JSON for programs. Nothing here runs or decides anything.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "isa/diagnostic.h"
#include "isa/loop_report.h"
#include "isa/program.h"
#include "isa/schedule_view.h"
#include "scenarios/exec.h"
#include "scenarios/fit.h"
#include "scenarios/operator_runner.h"
#include "scenarios/scenario.h"
#include "scenarios/scenario_runner.h"
#include "scenarios/spec_exec.h"
#include "sim/config/machine.h"
#include "sim/core/executor.h"

namespace mtsim::scenarios {

/// A note of every result.
inline constexpr std::string_view k_not_modelled =
    "not modelled: L1 caches and instruction fetch of the cores, bank conflicts of AM, SM and GSM, DDR pages and "
    "refresh, the CPUs";

/// Indented JSON text; bytes that are no UTF-8 (a file name, a comment) become replacement characters.
std::string dump(const Json& json);

// Common parts.
Json fault_json(const sim::Fault& fault);
/// Each with kind, severity, count, message, missing edge, both ends, and the reason where it was suppressed.
Json findings_json(const std::vector<sim::Finding>& findings);
/// "finding: KIND (core 0, cycle 1,234): ..." a line, then the notes and what was suppressed; "" when there is nothing.
std::string findings_text(const sim::LaunchResult& launch);
Json diagnostics_json(const std::vector<isa::Diagnostic>& diagnostics);
/// name, file and every number with unit, provenance, source and plausible range.
Json machine_json(const sim::Machine& machine);
/// "mt3000 with ddr.bandwidth_gb_s=64 (31.4)": the name, and what is overridden with the value before.
std::string machine_name(const sim::Machine& machine);
bool has_overrides(const sim::Machine& machine);
std::string machine_text(const sim::Machine& machine);
/// Keys of the machine's numbers that are assumptions.
std::vector<std::string> assumed_machine_keys(const sim::Machine& machine);

// schedule.
Json loops_json(const std::vector<isa::LoopSchedule>& loops);
Json loop_report_json(const isa::LoopReport& report);

// exec.
Json exec_json(const ExecSpec& spec, const ExecOutcome& outcome);
std::string exec_text(const ExecSpec& spec, const ExecOutcome& outcome);

struct AnnotatedLine {  // one source line; packets that begin on it (several after .rept)
  int line = 0;
  std::string text;
  struct Entry {
    int packet = 0;
    std::int64_t issues = 0;
    std::vector<std::string> empty_slots;
    std::string packet_text;
  };
  std::vector<Entry> packets;
};
/// Every line of the program's source with the issues and empty slots of its packets.
std::vector<AnnotatedLine> annotate(const isa::Program& program, const std::string& source,
                                    const std::vector<std::int64_t>& packet_counts);
Json annotation_json(const std::vector<AnnotatedLine>& lines);
std::string annotation_text(const std::vector<AnnotatedLine>& lines);

// check.
struct CheckCounts {
  int errors = 0, warnings = 0, notes = 0;
  std::string str() const;  // "1 error, 2 warnings, 0 notes"
};
/// One finding a line; of the errors and warnings of one code only the first few, then how many more with `hint`
/// behind.
std::string listing(const std::vector<isa::Diagnostic>& diagnostics, std::string_view hint);
CheckCounts count(const std::vector<isa::Diagnostic>& diagnostics);
Json check_json(const std::string& file, const std::vector<isa::Diagnostic>& diagnostics);
std::string check_text(const std::string& file, const std::vector<isa::Diagnostic>& diagnostics);

// op.
Json operator_json(const OperatorOutcome& outcome, const sim::Machine& machine);
std::string operator_text(const OperatorOutcome& outcome, const sim::Machine& machine);

// run.
Json scenario_json(const Scenario& scenario, const ScenarioResult& result, const sim::Machine& machine);
/// The paper's table: per cell the paper's value, the simulated one and the signed error; then the summary.
std::string scenario_text(const Scenario& scenario, const ScenarioResult& result, const sim::Machine& machine);
// Of it, where block sizes are swept: what each cell takes of SM, AM and GSM, also those that do not fit.
Json memory_json(const CellResult& cell);
std::string memory_text(const Scenario& scenario, const ScenarioResult& result, const sim::Machine& machine);
// Of it, with --perturb: bands, where they come from, and what lies outside its own.
Json band_json(const CellResult& cell, const std::map<std::string, Band>& bands);
Json perturbation_json(const Perturbation& perturbation);
std::string perturbation_text(const Scenario& scenario, const ScenarioResult& result);

// fit.
std::string fit_step_text(const std::vector<FitParameter>& parameters, const FitStep& step);
Json fit_json(const Scenario& scenario, const FitResult& result);
std::string fit_text(const Scenario& scenario, const FitResult& result);

/// docs/fidelity.md, from the JSON of `mtsim run` (one or more) and of `mtsim fit`. UsageError for other JSON.
std::string fidelity_page(const std::vector<std::pair<std::string, Json>>& files);

/// docs/isa.md, from the instruction table.
std::string isa_page();

}  // namespace mtsim::scenarios
