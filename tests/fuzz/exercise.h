// SPDX-License-Identifier: Apache-2.0
// What every text that may be assembly is put through: a program or an IsaError, nothing else. A program survives
// printing and assembling again, and checker, schedule view, doctor and timing proof get through it.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <string>

#include "isa/assembler.h"
#include "isa/checker.h"
#include "isa/printer.h"
#include "isa/reschedule.h"
#include "isa/schedule_view.h"

namespace mtsim::isa {

inline void require(bool condition) {
  if (!condition) std::abort();
}

inline bool equal(const Program& a, const Program& b) {
  if (a.packets.size() != b.packets.size() || a.labels != b.labels) return false;
  if (a.parameters.size() != b.parameters.size() || a.regions.size() != b.regions.size()) return false;
  return a.fingerprint() == b.fingerprint() && a.scheduled_for == b.scheduled_for;
}

inline void exercise(const std::string& text) {
  try {
    const Program program = assemble(text, "fuzz.s");
    constexpr std::size_t k_most_packets = 300;  // beyond it an input is only slow
    if (program.packets.size() > k_most_packets) return;
    const std::string printed = print(program);
    const Program again = assemble(printed, "fuzz.s");
    require(equal(program, again));
    require(print(again) == printed);
    require(assemble(print_packets(program), "fuzz.s").fingerprint() == program.fingerprint());
    for (const Diagnostic& diagnostic : check(program, program.scheduled_for)) require(!diagnostic.str().empty());
    Pipeline other;
    other.override(Mnemonic::VFMULAS32, 7);
    other.override(Mnemonic::VLDW, 8);
    other.remove(Unit::VMAC3);
    check(program, other);
    assumed_shapes(program);
    schedule_text(program, program.scheduled_for);
    for (const LoopSchedule& loop : loops(program, other)) {
      if (!loop.label.empty()) schedule_text(program, other, loop.label);
    }
    for (const LoopReport& report : program.linear_loops) require(!print(report).empty());
    constexpr std::size_t k_most_rescheduled = 40;
    if (program.packets.size() <= k_most_rescheduled) {
      const Rescheduled result = reschedule(program, program.scheduled_for);
      for (const RescheduledLoop& loop : result.loops) require(!print(loop).empty());
      require(equal(assemble(print(result.program), "fuzz.s"), result.program));
    }
    std::string why;
    require(timing_is_static(program, &why) == why.empty());
  } catch (const IsaError& error) {
    require(!error.diagnostics().empty() && *error.what() != '\0');
  }
}

}  // namespace mtsim::isa
