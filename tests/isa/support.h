// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "isa/assembler.h"
#include "isa/checker.h"
#include "isa/printer.h"

namespace mtsim::isa {

/// What assembling `text` complains about, or "" when it assembles. The file is called k.s.
inline std::string errors_of(const std::string& text) {
  try {
    assemble(text, "k.s");
  } catch (const IsaError& error) {
    return error.what();
  }
  return "";
}

/// The first packet of `text` as the printer writes it on one line.
inline std::string first_packet(const std::string& text) { return print(assemble(text, "k.s").packets.at(0)); }

/// Each packet of `text` on one line.
inline std::vector<std::string> packets_of(const std::string& text) {
  std::vector<std::string> lines;
  for (const Packet& packet : assemble(text, "k.s").packets) lines.push_back(print(packet));
  return lines;
}

inline bool operator==(const Instruction& a, const Instruction& b) {
  const bool same_unit = a.row->units == units::NONE || a.unit == b.unit;
  return a.row == b.row && same_unit && a.predicate == b.predicate && a.operands == b.operands;
}

inline bool same_program(const Program& a, const Program& b) {
  if (a.packets.size() != b.packets.size() || a.parameters.size() != b.parameters.size()) return false;
  if (a.labels != b.labels || a.regions.size() != b.regions.size() || !(a.scheduled_for == b.scheduled_for))
    return false;
  for (std::size_t i = 0; i < a.packets.size(); ++i) {
    if (!(a.packets[i].instructions == b.packets[i].instructions)) return false;
  }
  for (std::size_t i = 0; i < a.parameters.size(); ++i) {
    const Parameter &p = a.parameters[i], &q = b.parameters[i];
    if (p.name != q.name || !(p.reg == q.reg) || p.kind != q.kind) return false;
  }
  for (std::size_t i = 0; i < a.regions.size(); ++i) {
    const Region &p = a.regions[i], &q = b.regions[i];
    if (p.name != q.name || p.first != q.first || p.last != q.last) return false;
  }
  return true;
}

/// The findings of `check` with this code.
inline std::vector<Diagnostic> findings(const std::string& text, const std::string& code,
                                        const Pipeline* machine = nullptr, const std::string& entry = "") {
  const Program program = assemble(text, "k.s");
  std::vector<Diagnostic> found;
  for (Diagnostic& diagnostic : check(program, machine ? *machine : program.scheduled_for, entry)) {
    if (diagnostic.code == code) found.push_back(std::move(diagnostic));
  }
  return found;
}

}  // namespace mtsim::isa
