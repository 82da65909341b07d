// SPDX-License-Identifier: Apache-2.0
#include "scenarios/regress.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <string_view>

#include "isa/instruction_table.h"
#include "isa/schedule_view.h"
#include "scenarios/error.h"
#include "sim/core/executor.h"

namespace mtsim::scenarios {

namespace {

/// What a tolerance is about: times, not bytes or calls.
bool is_time(const std::string& measure) { return measure == "cycles" || measure.starts_with("stall."); }

constexpr std::int64_t k_max_microkernel_cycles = 100'000'000;

/// "bytes=512", of the parameters that are no pointers.
std::vector<std::string> count_texts(const RegressCase::Microkernel& call, const isa::Program& program) {
  std::vector<std::string> texts;
  for (const isa::Parameter& parameter : program.parameters) {
    if (isa::is_pointer(parameter.kind)) continue;
    const auto given = call.arguments.find(parameter.name);
    texts.push_back(fmt::format("{}={}", parameter.name, given == call.arguments.end() ? 0 : given->second));
  }
  return texts;
}

/// Pointers are symbolic, so what a call reaches from one of them must fit its memory wherever it lies.
void require_in_memory(const RegressCase::Microkernel& call, const isa::Program& program,
                       const sim::KernelProfile& profile, const sim::MachineConfig& machine) {
  for (std::size_t i = 0; i < program.parameters.size(); ++i) {
    const isa::Parameter& parameter = program.parameters[i];
    if (!isa::is_pointer(parameter.kind)) continue;
    const auto& [read, write, alignment] = profile.pointers[i];
    if (read.empty() && write.empty()) continue;
    const std::int64_t bytes = std::max(read.hi, write.hi) - std::min(read.lo, write.lo);
    const bool in_am = parameter.kind == isa::ParameterKind::pointer_am;
    const std::int64_t available = in_am ? machine.core.am_bytes : machine.core.sm_bytes;
    if (bytes <= available) continue;
    throw UsageError(fmt::format("{} reaches {} bytes from '{}', {} has {}; use smaller counts ({})", call.program,
                                 bytes, parameter.name, in_am ? "AM" : "SM", available,
                                 fmt::join(count_texts(call, program), ", ")));
  }
}

Measures measure_microkernel(const RegressCase& the_case, const sim::Machine& machine) {
  const auto& call = *the_case.microkernel;
  const isa::Pipeline& pipeline = machine.config().pipeline;
  const isa::Program program = program_of(call, pipeline);
  std::vector<std::uint64_t> arguments;
  for (const isa::Parameter& parameter : program.parameters) {
    const auto given = call.arguments.find(parameter.name);
    arguments.push_back(given == call.arguments.end() ? 0 : static_cast<std::uint64_t>(given->second));
  }
  const sim::DecodedProgram decoded(program, pipeline);
  const sim::KernelProfile profile =
      sim::profile(decoded, arguments, {.entry = call.entry, .max_cycles = k_max_microkernel_cycles});
  const sim::RunResult& result = profile.result;
  if (result.status == sim::RunStatus::max_cycles) {
    throw UsageError(fmt::format("{} did not end in {} cycles; are its counts what its contract asks for? ({})",
                                 call.program, k_max_microkernel_cycles, fmt::join(count_texts(call, program), ", ")));
  }
  require_in_memory(call, program, profile, machine.config());
  if (result.status != sim::RunStatus::done)
    throw ProgramFailed(fmt::format("{}: case '{}': {}", the_case.place.str(), the_case.name, result.fault.str()));
  Measures measures = {{"cycles", result.cycles}, {"packets", result.packets}, {"instructions", result.instructions}};
  for (const isa::LoopSchedule& loop : isa::loops(program, pipeline)) {
    if (!loop.label.empty()) measures["ii." + loop.label] = loop.initiation_interval;
  }
  return measures;
}

Measures measure_launch(const sim::LaunchResult& launch) {
  Measures measures = {{"cycles", launch.cycles}, {"gsm_bytes", launch.gsm_bytes}};
  for (const auto& core : launch.cores) {
    for (int c = 0; c < sim::k_cycle_classes; ++c) {
      measures["stall." + std::string(sim::name(static_cast<sim::CycleClass>(c)))] +=
          core.cycles[static_cast<std::size_t>(c)];
    }
    measures["sm_bytes"] = std::max(measures["sm_bytes"], core.sm_bytes);
    measures["am_bytes"] = std::max(measures["am_bytes"], core.am_bytes);
  }
  for (const auto& called : launch.kernels) measures["calls." + called.program] += called.calls;
  for (std::size_t from = 0; from < sim::k_spaces; ++from) {
    for (std::size_t to = 0; to < sim::k_spaces; ++to) {
      if (const std::int64_t bytes = launch.bytes.read[from][to]; bytes > 0) {
        measures[fmt::format("bytes.{}->{}", to_string(static_cast<sim::Space>(from)),
                             to_string(static_cast<sim::Space>(to)))] = bytes;
      }
    }
  }
  return measures;
}

/// What is wrong with a run whatever it took.
void add_trouble(const OperatorOutcome& outcome, std::vector<std::string>& failures) {
  const auto& launch = outcome.launch;
  if (launch.fault) failures.push_back("fault: " + launch.fault->str());
  for (const auto& f : launch.findings)
    failures.push_back(fmt::format("finding: {} (core {}, cycle {}): {}", f.kind, f.core, f.cycle, f.message));
  if (outcome.verification && !outcome.verification->passed()) {
    const Verification& v = *outcome.verification;
    failures.push_back(fmt::format("values: error / bound is {:.3g} at [{}][{}], rms error {:.3g} of {:.3g}",
                                   v.worst_ratio, v.worst_row, v.worst_column, v.rms_error, v.rms_reference));
  }
}

Measures measure_operator(const RegressCase& the_case, OperatorRunner& runner, std::vector<std::string>& failures) {
  OperatorRequest request = *the_case.request;
  request.options.depth = sim::Depth::timing;
  const OperatorOutcome timing = runner.run(request);
  add_trouble(timing, failures);
  if (the_case.verify) {
    request.options.depth = sim::Depth::functional;
    request.options.verify = true;
    const OperatorOutcome functional = runner.run(request);
    add_trouble(functional, failures);
    if (functional.launch.cycles != timing.launch.cycles) {
      failures.push_back(fmt::format("functional depth takes {} cycles, timing depth {}", functional.launch.cycles,
                                     timing.launch.cycles));
    }
  }
  return measure_launch(timing.launch);
}

void check_limits(const RegressCase& the_case, RegressResult& result) {
  const auto check = [&](const Measures& limits, std::string_view words, auto holds) {
    for (const auto& [measure, limit] : limits) {
      const auto now = result.measures.find(measure);
      if (now == result.measures.end()) {
        std::vector<std::string_view> names;
        for (const auto& [name, unused_value] : result.measures) names.push_back(name);
        result.failures.push_back(fmt::format("{}: not measured here, {} {} wanted{}", measure, words, limit,
                                              isa::did_you_mean(measure, names)));
      } else if (!holds(now->second, limit)) {
        result.failures.push_back(fmt::format("{} is {}, {} {} wanted", measure, now->second, words, limit));
      }
    }
  };
  check(the_case.exactly, "exactly", std::equal_to<>());
  check(the_case.at_most, "at most", std::less_equal<>());
}

std::vector<Change> compare(const RegressCase& the_case, const Measures& golden, const Measures& now) {
  std::vector<Change> changes;
  const auto value = [](const Measures& measures, const std::string& name) -> std::optional<std::int64_t> {
    const auto found = measures.find(name);
    return found == measures.end() ? std::nullopt : std::optional(found->second);
  };
  Measures all = golden;
  all.insert(now.begin(), now.end());
  for (const auto& [measure, unused_value] : all) {
    Change change{measure, value(golden, measure), value(now, measure)};
    if (change.golden == change.now) continue;
    if (change.golden && change.now && is_time(measure)) {
      const auto moved = static_cast<double>(std::abs(*change.now - *change.golden));
      change.allowed = moved <= the_case.tolerance_percent / 100 * static_cast<double>(*change.golden);
    }
    changes.push_back(std::move(change));
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return (a.measure == "cycles") > (b.measure == "cycles"); });
  return changes;
}

}  // namespace

bool RegressResult::passed() const {
  return failures.empty() && std::all_of(changes.begin(), changes.end(), [](const Change& c) { return c.allowed; });
}

std::vector<RegressResult> run_regress_file(const RegressFile& file) {
  OperatorRunner runner(file.machine);
  std::vector<RegressResult> results;
  for (const RegressCase& the_case : file.cases) {
    RegressResult result{.name = the_case.name};
    try {
      result.measures = the_case.microkernel ? measure_microkernel(the_case, file.machine)
                                             : measure_operator(the_case, runner, result.failures);
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("{}: case '{}': {}", the_case.place.str(), the_case.name, error.what()));
    } catch (const kernels::KernelError& error) {
      throw UsageError(fmt::format("{}: case '{}': {}", the_case.place.str(), the_case.name, error.what()));
    }
    check_limits(the_case, result);
    const auto golden = file.golden.find(the_case.name);
    result.changes = compare(the_case, golden == file.golden.end() ? Measures{} : golden->second, result.measures);
    results.push_back(std::move(result));
  }
  return results;
}

/// A case's name as a YAML key that is read back as it was: in quotes unless it is plainly a text.
static std::string yaml_key(const std::string& name) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view(" _.,()+-/=*").find(c) != std::string_view::npos;
  };
  const bool plain = !name.empty() && std::isalnum(static_cast<unsigned char>(name.front())) != 0 &&
                     name.back() != ' ' && std::all_of(name.begin(), name.end(), is_plain);
  return plain ? name : Json(name).dump();
}

std::string golden_text(const std::vector<RegressResult>& results) {
  std::string text = "# SPDX-License-Identifier: Apache-2.0\n# Written by `mtsim regress --update`; review the diff.\n";
  for (const RegressResult& result : results) {
    text += fmt::format("{}:\n", yaml_key(result.name));
    for (const auto& [measure, value] : result.measures) text += fmt::format("  {}: {}\n", measure, value);
  }
  return text;
}

}  // namespace mtsim::scenarios
