// SPDX-License-Identifier: Apache-2.0
#include "sim/core/schedule_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "isa/checker.h"

namespace mtsim::sim {
namespace {

/// "VLDW=9 SLDH=7" of the schedule and what the machine has instead.
struct Differences {
  std::string scheduled, now;
};

Differences differences(const isa::Program& program, const isa::Pipeline& pipeline) {
  std::map<std::string, std::string> all;  // one for each mnemonic and kind of destination
  for (const isa::Packet& packet : program.packets) {
    for (const isa::Instruction& instruction : packet.instructions) {
      const auto scheduled = isa::writes(instruction, program.scheduled_for);
      const auto now = isa::writes(instruction, pipeline);
      for (std::size_t i = 0; i < now.size(); ++i) {
        if (now[i].cycles == scheduled[i].cycles) continue;
        all[fmt::format("{}={}", instruction.row->mnemonic, scheduled[i].cycles)] = std::to_string(now[i].cycles);
      }
    }
  }
  if (program.scheduled_for.branch_cycles() != pipeline.branch_cycles()) {
    all[fmt::format("SBR={}", program.scheduled_for.branch_cycles())] = std::to_string(pipeline.branch_cycles());
  }
  Differences text;
  for (const auto& [before, after] : all) {
    const std::string mnemonic = all.size() == 1 ? "" : before.substr(0, before.find('=') + 1);
    text.scheduled += (text.scheduled.empty() ? "" : " ") + before;
    text.now += (text.now.empty() ? "" : " ") + mnemonic + after;
  }
  return text;
}

std::string places(std::size_t count) { return fmt::format("{} place{}", count, count == 1 ? "" : "s"); }

isa::Diagnostic other_latencies(const isa::Program& program, const isa::Pipeline& pipeline, std::size_t count) {
  const auto [scheduled, now] = differences(program, pipeline);
  return {isa::Severity::error,
          {program.file},
          fmt::format("{} is scheduled for {} and this machine has {}: {} would get other values", program.name,
                      scheduled, now, places(count)),
          "schedule the kernel anew, or run it at its own latencies",
          "other-latencies"};
}

isa::Diagnostic absent_units(const isa::Program& program, const isa::Pipeline& pipeline, std::size_t count) {
  isa::UnitMask used = 0;
  for (const isa::Packet& packet : program.packets) {
    for (const isa::Instruction& instruction : packet.instructions) {
      if (instruction.row->units != isa::units::NONE) used |= isa::mask(instruction.unit);
    }
  }
  std::string units;
  for (int u = 0; u < isa::k_units; ++u) {
    const auto unit = static_cast<isa::Unit>(u);
    if (used & isa::mask(unit) & ~pipeline.units()) units += (units.empty() ? "" : " and ") + std::string(name(unit));
  }
  return {isa::Severity::error,
          {program.file},
          fmt::format("{} is scheduled for a machine with {} and this one has none: {} cannot issue", program.name,
                      units, places(count)),
          "schedule the kernel anew, or run it on a machine with all its units",
          "absent-units"};
}

}  // namespace

void require_same_meaning(const isa::Program& program, const isa::Pipeline& pipeline) {
  if (pipeline == program.scheduled_for && pipeline.units() == isa::units::ALL) return;
  const std::vector<isa::Diagnostic> known = isa::check(program, program.scheduled_for);
  std::vector<isa::Diagnostic> wrong;
  std::size_t absent = 0;
  for (isa::Diagnostic& diagnostic : isa::check(program, pipeline)) {
    if (diagnostic.severity != isa::Severity::error) continue;
    const bool cannot_issue = diagnostic.code == "absent-unit";
    const bool is_known = std::any_of(known.begin(), known.end(), [&](const isa::Diagnostic& k) {
      return k.code == diagnostic.code && k.place == diagnostic.place;
    });
    if (is_known && !cannot_issue) continue;
    if (cannot_issue) ++absent;
    wrong.push_back(std::move(diagnostic));
  }
  if (wrong.empty()) return;
  const std::size_t rebound = wrong.size() - absent;
  if (rebound > 0) wrong.insert(wrong.begin(), other_latencies(program, pipeline, rebound));
  if (absent > 0) wrong.insert(wrong.begin(), absent_units(program, pipeline, absent));
  throw isa::IsaError(std::move(wrong));
}

}  // namespace mtsim::sim
