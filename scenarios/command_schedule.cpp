// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "isa/assembler.h"
#include "isa/printer.h"
#include "isa/reschedule.h"
#include "isa/schedule_view.h"
#include "scenarios/cli.h"
#include "scenarios/error.h"
#include "scenarios/schedule_page/page.h"
#include "sim/config/output_file.h"

namespace mtsim::scenarios {

namespace {

constexpr const char* k_output_writer = "-o";
constexpr const char* k_page_writer = "--html";

struct ScheduleOptions {
  std::string file;
  std::string part;
  ProgramOptions program;
  bool reschedule = false;
  bool independent = false;
  std::string output;
  std::string html;
  std::string compare;
  std::string spec;  // --run
  std::int64_t cycles = k_default_page_cycles;
};

/// What came of --html.
struct WrittenPage {
  std::string text;  // for the user
  Json fault;        // of the run it records, when that was stopped by a fault or at its limit; else null
};

isa::Rescheduled doctor(const ScheduleOptions& options, const isa::Program& program, const isa::Pipeline& pipeline) {
  return isa::reschedule(program, pipeline, {options.program.allow == "assumed", options.independent});
}

// The scheduler on the inner loops of hand packets: what it finds, and the program with them replaced.
void run_doctor(const ScheduleOptions& options, const CommonOptions& common, const isa::Rescheduled& result,
                const WrittenPage& page) {
  Json loops = Json::array();
  std::string text;
  for (const isa::RescheduledLoop& loop : result.loops) {
    Json json = loop_report_json(loop.report);
    json["hand_interval"] = loop.hand_interval;
    json["replaced"] = loop.replaced;
    json["why_kept"] = loop.why_kept;
    if (loop.call_iterations > 0) {
      json["call"] = {
          {"iterations", loop.call_iterations}, {"hand_cycles", loop.hand_call_cycles}, {"cycles", loop.call_cycles}};
    }
    loops.push_back(std::move(json));
    text += isa::print(loop);
  }
  if (result.loops.empty()) text = "no loop of one block in hand packets\n";
  if (!options.output.empty()) sim::write_file(options.output, k_output_writer, isa::print(result.program));
  Json json = {{"file", options.file}, {"rescheduled", loops}};
  if (!page.fault.is_null()) json["fault"] = page.fault;
  emit(common, json, text + page.text);
}

// What the scheduler said of .linear loops, and what it says of loops in hand packets.
std::vector<isa::LoopReport> reports_of(const isa::Program& program, const isa::Rescheduled& rescheduled) {
  std::vector<isa::LoopReport> reports = program.linear_loops;
  for (const isa::RescheduledLoop& loop : rescheduled.loops) reports.push_back(loop.report);
  return reports;
}

std::vector<std::string> remarks_on(const isa::Rescheduled& rescheduled) {
  std::vector<std::string> remarks;
  remarks.reserve(rescheduled.loops.size());
  for (const isa::RescheduledLoop& loop : rescheduled.loops) {
    remarks.push_back(loop.replaced
                          ? fmt::format("Loop '{}': {} cycles an iteration, {} by hand.", loop.report.label,
                                        loop.report.interval, loop.hand_interval)
                          : fmt::format("Loop '{}' is the hand schedule's: {}.", loop.report.label, loop.why_kept));
  }
  if (remarks.empty()) remarks.emplace_back("No loop of one block in hand packets: nothing was scheduled anew.");
  return remarks;
}

std::string role_of(const isa::Program& program) {
  return program.linear.empty() ? "hand schedule" : "schedule with .linear code";
}

// The program as the spec runs it must be the one the page shows.
ExecSpec load_run(const ScheduleOptions& options, const isa::Program& program, const sim::Machine& machine) {
  ExecSpec spec = load_exec_spec(options.spec, machine.config());
  if (!isa::same_file(spec.program.file, options.file)) {
    throw UsageError(fmt::format("--run {}: it runs '{}' and not '{}'; name the spec of this program", options.spec,
                                 spec.program.file, options.file));
  }
  if (spec.program.fingerprint() != program.fingerprint()) {
    throw UsageError(
        fmt::format("--run {}: its packets differ from those shown; leave out --operands, --define and "
                    "--allow, which the spec does not have",
                    options.spec));
  }
  return spec;
}

std::string counted(std::size_t count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// "12 packets, 1 loop, 0 hazards", and warnings if there are any
std::string counts_of(const Json& schedule) {
  const Json& findings = schedule["findings"];
  std::size_t hazards = 0, warnings = 0;
  for (const Json& finding : findings) {
    if (finding["hazard"].get<bool>()) {
      ++hazards;
    } else if (finding["severity"] == to_string(isa::Severity::warning)) {
      ++warnings;
    }
  }
  return fmt::format("{}, {}, {}", counted(schedule["packets"].size(), "packet"),
                     counted(schedule["loops"].size(), "loop"), counted(hazards, "hazard")) +
         (warnings > 0 ? ", " + counted(warnings, "warning") : "");
}

// ", a run of 17 cycles", and how much of it is in the page when that is not all.
std::string text_of(const Json& run) {
  std::string text = fmt::format(", a run of {} cycles", run["cycles"].get<std::int64_t>());
  if (run["cut"].get<bool>()) text += fmt::format(", the first {} recorded", run["recorded"].get<std::int64_t>());
  return text;
}

WrittenPage write_page(const ScheduleOptions& options, const isa::Program& program, const isa::Rescheduled& rescheduled,
                       const sim::Machine& machine) {
  const isa::Pipeline& pipeline = machine.config().pipeline;
  Page page;
  page.title = program.name;
  page.command = "mtsim schedule " + options.file + " --html " + options.html;
  if (!options.part.empty()) page.part = isa::named_part(program, pipeline, options.part);
  Json schedules = Json::array(), run;
  schedules.push_back(schedule_json({role_of(program), program, false, reports_of(program, rescheduled), {}}, machine));
  if (options.reschedule) {
    schedules.push_back(schedule_json({"the scheduler's", rescheduled.program, true,
                                       reports_of(rescheduled.program, rescheduled), remarks_on(rescheduled)},
                                      machine));
  }
  if (!options.compare.empty()) {
    const isa::Program other = isa::assemble_file(options.compare, assemble_options(options.program, pipeline));
    page.title += " and " + other.name;
    schedules.push_back(schedule_json(
        {role_of(other), other, false, reports_of(other, doctor(options, other, pipeline)), {}}, machine));
  }
  if (!options.spec.empty()) {
    const ExecSpec spec = load_run(options, program, machine);
    run = run_json(spec, machine, options.cycles);
  }
  WrittenPage written;
  sim::write_file(options.html, k_page_writer, page_html(page, schedules, run));
  written.text = options.html + ": " + counts_of(schedules[0]);
  if (!run.is_null()) written.text += text_of(run);
  if (schedules.size() > 1) {
    const std::string beside = options.compare.empty() ? "the scheduler's" : options.compare;
    written.text += fmt::format("; beside it {}: {}", beside, counts_of(schedules[1]));
  }
  written.text += "; open it in a browser\n";
  if (!run.is_null() && !run["fault"].is_null()) {
    written.fault = run["fault"];
    written.text += "fault: " + run["fault"]["text"].get<std::string>() + "\n";
  }
  return written;
}

void check_page_options(const ScheduleOptions& options) {
  if (options.html.empty()) {
    for (const auto& [name, given] :
         {std::pair{"--compare", !options.compare.empty()}, std::pair{"--run", !options.spec.empty()},
          std::pair{"--run-cycles", options.cycles != k_default_page_cycles}}) {
      if (given) throw UsageError(fmt::format("schedule: {} goes with --html", name));
    }
    return;
  }
  if (!options.compare.empty() && options.reschedule) {
    throw UsageError("schedule: --compare and --reschedule each put a second schedule beside the first; choose one");
  }
  if (options.cycles > k_most_page_cycles) {
    throw UsageError(fmt::format("schedule: --run-cycles {} is too much for a page; at most {}", options.cycles,
                                 k_most_page_cycles));
  }
  if (options.spec.empty() && options.cycles != k_default_page_cycles) {
    throw UsageError("schedule: --run-cycles goes with --run");
  }
  if (options.html == "-") throw UsageError("schedule: --html - is no file name; name a file to open in a browser");
  sim::require_writable(options.html, k_page_writer);
}

int schedule_command(const ScheduleOptions& options, const CommonOptions& common) {
  if ((!options.output.empty() || options.independent) && !options.reschedule) {
    throw UsageError("schedule: -o and --independent go with --reschedule");
  }
  if (!options.output.empty()) sim::require_writable(options.output, k_output_writer);
  check_page_options(options);
  const sim::Machine machine = load_machine(common);
  const isa::Pipeline& pipeline = machine.config().pipeline;
  isa::AssembleOptions assembling = assemble_options(options.program, pipeline);
  assembling.prove_loops = !options.reschedule;
  const isa::Program program = isa::assemble_file(options.file, assembling);
  // Names an unknown part, also for the page.
  std::string text =
      options.reschedule && options.html.empty() ? "" : isa::schedule_text(program, pipeline, options.part);
  isa::Rescheduled rescheduled;
  if (options.reschedule || !options.html.empty()) rescheduled = doctor(options, program, pipeline);
  WrittenPage page;
  if (!options.html.empty()) page = write_page(options, program, rescheduled, machine);
  const int exit_code = page.fault.is_null() ? k_exit_done : k_exit_failed;
  if (options.reschedule) {
    run_doctor(options, common, rescheduled, page);
    return exit_code;
  }
  Json linear = Json::array();
  std::string reports;
  for (const isa::LoopReport& report : program.linear_loops) {
    linear.push_back(loop_report_json(report));
    reports += isa::print(report) + "\n";
  }
  Json json = {{"file", options.file}, {"loops", loops_json(isa::loops(program, pipeline))}, {"linear", linear}};
  if (!page.fault.is_null()) json["fault"] = page.fault;
  emit(common, json, page.text.empty() ? reports + text : page.text);
  return exit_code;
}

}  // namespace

Command add_schedule(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<ScheduleOptions>();
  CLI::App* sub = app.add_subcommand("schedule", "Show a schedule: a row a cycle, a column a unit, results in flight");
  sub->add_option("FILE", options->file, "Assembly file")->required();
  sub->add_option("PART", options->part,
                  "Label of a loop, or a region; the whole program if absent; of a pipelined .linear loop its kernel");
  add_program_options(*sub, options->program);
  sub->add_flag("--reschedule", options->reschedule,
                "Schedule the inner loops of hand packets anew and say whether they can be shorter");
  sub->add_flag("--independent", options->independent,
                "With --reschedule: loads and stores through different address registers never overlap");
  sub->add_option("-o,--output", options->output,
                  "With --reschedule: the program, its loops replaced where that makes them shorter")
      ->type_name("FILE");
  sub->add_option("--html", options->html, "Write the schedule as one page for a browser; no network needed")
      ->type_name("FILE");
  sub->add_option("--compare", options->compare, "With --html: another program beside this one")->type_name("FILE");
  sub->add_option("--run", options->spec, "With --html: a run to step through, as exec takes it")->type_name("SPEC");
  sub->add_option("--run-cycles", options->cycles, "With --run: cycles that are recorded (default 2000)")
      ->type_name("N")
      ->check(whole_number(1));
  add_json_option(*sub, common);
  add_machine_options(*sub, common);
  sub->footer(R"(
Exit status 1 when the run of --run faults or reaches max_cycles; the page is written, and says where.
For .linear code also what bounds each loop, the interval found and what stands in the way of a shorter one.
  mtsim schedule kernels/gemm/gemm_f32_6x128.s          Table I of the paper as a picture
  mtsim schedule k.s loop --json -                      initiation interval and unit use as JSON
  mtsim schedule --reschedule k.s -o faster.s           can the hand schedule be beaten?
  mtsim schedule k.s --html k.html --run k.yaml         a page to step through, with values
  mtsim schedule k.s --html k.html --reschedule         hand and scheduler side by side)");
  return {sub, [options, &common] { return schedule_command(*options, common); }};
}

}  // namespace mtsim::scenarios
