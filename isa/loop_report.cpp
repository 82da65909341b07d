// SPDX-License-Identifier: Apache-2.0
#include "isa/loop_report.h"

#include <fmt/format.h>

namespace mtsim::isa {
namespace {

std::string cycles_text(int cycles) { return fmt::format("{} cycle{}", cycles, cycles == 1 ? "" : "s"); }

std::string copies_text(int copies) { return fmt::format("{} cop{}", copies, copies == 1 ? "y" : "ies"); }

std::string registers_text(const LoopReport& report) {
  std::string text;
  for (std::size_t f = 0; f < k_register_files; ++f) {
    if (report.registers[f] == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", report.registers[f], k_register_file_names[f]);
  }
  return text.empty() ? "none" : text;
}

std::string verdict(const LoopReport& report) {
  if (report.is_proved()) {
    return report.interval == report.bound() ? "proved: it equals the bound"
                                             : "proved: an exhaustive search found nothing shorter";
  }
  return report.refuted_here ? "proved for these registers: with other copies a shorter one may exist"
                             : "not proved to be the shortest";
}

}  // namespace

std::string print(const LoopReport& report) {
  std::string text =
      fmt::format("loop {} ({}): {} instructions\n", report.label, report.place.str(), report.instructions);
  if (!report.pipelined) {
    text += fmt::format("  not pipelined: {}\n", report.why_not);
    if (report.interval > 0) text += fmt::format("  an iteration takes {}\n", cycles_text(report.interval));
  }
  if (report.resources.empty()) return text;
  text += fmt::format("  resource bound    {:>3}\n", report.resource_bound);
  for (const ResourceBound& resource : report.resources) {
    text += fmt::format("    {:<24}{:>3}", resource.name, resource.cycles);
    if (resource.instructions > 0)
      text += fmt::format("  {} instructions, {} a cycle", resource.instructions, resource.slots);
    text += "\n";
  }
  text += fmt::format("  recurrence bound  {:>3}\n", report.recurrence.cycles);
  for (const std::string& edge : report.recurrence.edges) text += "    " + edge + "\n";
  if (report.independent_bound > 0) {
    text += fmt::format(
        "    nothing shows that {} touch different bytes: {} promises it of all accesses through different address "
        "registers, and the bound is {}\n",
        report.may_meet, report.by_hand ? "--independent" : ".independent", report.independent_bound);
  }
  if (report.lifetime.cycles > report.bound()) {
    text += fmt::format("  lifetime bound    {:>3}  a value must be read before its register gets the next one\n",
                        report.lifetime.cycles);
    for (const std::string& edge : report.lifetime.edges) text += "    " + edge + "\n";
    if (report.copies > 0) text += fmt::format("    with {}: {}\n", copies_text(report.copies), report.copied_bound);
  }
  if (!report.pipelined) return text;
  text += fmt::format("  initiation interval {} ({})\n", report.interval, verdict(report));
  for (const BlockedInterval& blocked : report.blocked) {
    text += fmt::format("    {:>3} blocked by {}\n", blocked.interval, blocked.reason);
  }
  if (report.copies > 0) text += fmt::format("  copies added for values that live too long: {}\n", report.copies);
  text += fmt::format("  {} stage{}, prologue {}, epilogue {}; not pipelined {} an iteration\n", report.stages,
                      report.stages == 1 ? "" : "s", cycles_text(report.prologue_cycles),
                      cycles_text(report.epilogue_cycles), cycles_text(report.simple_cycles));
  text += fmt::format("  registers live in the kernel: {}\n", registers_text(report));
  if (report.by_hand) return text;  // how often it runs is what the hand packets find at run time
  text += report.guarded
              ? fmt::format(
                    "  trip count: below {} a second loop runs (.trip says {}): a test and code for both; "
                    ".trip {} saves them\n",
                    report.stages, report.trip_minimum, report.stages)
              : fmt::format("  trip count: at least {} needed, .trip says {}\n", report.stages, report.trip_minimum);
  return text;
}

}  // namespace mtsim::isa
