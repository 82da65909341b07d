// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "isa/printer.h"
#include "isa/registers.h"
#include "scenarios/report.h"
#include "scenarios/table.h"

namespace mtsim::scenarios {

namespace {

double per_cycle(std::int64_t count, std::int64_t cycles) {
  return cycles > 0 ? static_cast<double>(count) / static_cast<double>(cycles) : 0.0;
}

double vmac_utilisation(const sim::RunResult& result) {
  std::int64_t issues = 0;
  for (isa::Unit unit : {isa::Unit::VMAC1, isa::Unit::VMAC2, isa::Unit::VMAC3}) {
    issues += result.units[static_cast<std::size_t>(unit)];
  }
  return per_cycle(issues, result.cycles) / 3;
}

std::vector<std::string> exec_notes(const ExecSpec& spec, const ExecOutcome& outcome) {
  std::vector<std::string> notes = {std::string(k_not_modelled),
                                    "cycles leave out the caller's jump into the microkernel"};
  if (outcome.result.status != sim::RunStatus::done && !spec.dumps.empty()) {
    notes.push_back(
        fmt::format("the dumps hold the memory as the run left it (status {})", to_string(outcome.result.status)));
  }
  if (outcome.result.status == sim::RunStatus::max_cycles) {
    notes.push_back(fmt::format("stopped after max_cycles = {}: an endless loop, or raise max_cycles in the spec",
                                spec.max_cycles));
  }
  const CheckCounts counts = count(outcome.check);
  if (!outcome.check.empty()) {
    notes.push_back(fmt::format("the checker has {}: mtsim check {}{}", counts.str(), spec.program.file,
                                spec.entry.empty() ? "" : " --entry " + spec.entry));
  }
  return notes;
}

std::string list_or_none(const std::vector<std::string>& words) { return words.empty() ? "none" : joined(words); }

}  // namespace

Json exec_json(const ExecSpec& spec, const ExecOutcome& outcome) {
  const sim::RunResult& result = outcome.result;
  Json json;
  json["status"] = to_string(result.status);
  json["fault"] = result.fault.kind != sim::FaultKind::none ? fault_json(result.fault) : Json(nullptr);
  json["program"] = spec.program.file;
  json["cycles"] = result.cycles;
  json["packets"] = result.packets;
  json["idles"] = result.idles;
  json["instructions"] = result.instructions;
  Json units = Json::object(), utilisation = Json::object();
  for (std::size_t u = 0; u < isa::k_units; ++u) {
    const std::string unit(isa::k_unit_names[u]);
    units[unit] = result.units[u];
    utilisation[unit] = per_cycle(result.units[u], result.cycles);
  }
  utilisation["VMAC"] = vmac_utilisation(result);
  json["units"] = units;
  json["utilisation"] = utilisation;
  json["macs"] = outcome.macs;
  json["mac_per_cycle"] = per_cycle(outcome.macs, result.cycles);
  json["assumed"] = {{"instructions", outcome.assumed_instructions}, {"packet_rules", outcome.assumed_packet_rules}};
  json["dumps"] = Json::array();
  for (const auto& dump : spec.dumps) {
    json["dumps"].push_back(
        {{"space", to_string(dump.space)}, {"address", dump.address}, {"bytes", dump.bytes}, {"file", dump.path}});
  }
  json["notes"] = exec_notes(spec, outcome);
  return json;
}

std::string exec_text(const ExecSpec& spec, const ExecOutcome& outcome) {
  const sim::RunResult& result = outcome.result;
  std::string out = fmt::format("{}: {}\n", spec.program.file, to_string(result.status));
  if (result.fault.kind != sim::FaultKind::none) out += "fault: " + result.fault.str() + "\n";
  Table totals({Align::left, Align::right, Align::left});
  totals.add({"cycles", grouped(result.cycles), "= packets + idles"});
  totals.add({"packets", grouped(result.packets)});
  totals.add({"idles", grouped(result.idles)});
  totals.add({"instructions", grouped(result.instructions),
              fmt::format("{:.2f} a packet", per_cycle(result.instructions, result.packets))});
  if (outcome.macs > 0) {
    totals.add({"MAC", grouped(outcome.macs), fmt::format("{:.2f} a cycle", per_cycle(outcome.macs, result.cycles))});
  }
  out += totals.text(2) + "\n";
  Table units({Align::left, Align::right, Align::right}, {"unit", "issues", "use %"});
  for (std::size_t u = 0; u < isa::k_units; ++u) {
    units.add({std::string(isa::k_unit_names[u]), grouped(result.units[u]),
               fmt::format("{:.1f}", 100 * per_cycle(result.units[u], result.cycles))});
  }
  units.add({"VMAC", "", fmt::format("{:.1f}", 100 * vmac_utilisation(result))});
  out += units.text(2) + "\n";
  for (const auto& dump : spec.dumps) {
    out += fmt::format("dump: {}+{:#x}, {} bytes -> {}\n", to_string(dump.space), dump.address, dump.bytes, dump.path);
  }
  out += fmt::format("assumed instructions: {}\n", list_or_none(outcome.assumed_instructions));
  out += fmt::format("assumed packet rules: {}\n", list_or_none(outcome.assumed_packet_rules));
  for (const auto& note : exec_notes(spec, outcome)) out += "note: " + note + "\n";
  return out;
}

std::vector<AnnotatedLine> annotate(const isa::Program& program, const std::string& source,
                                    const std::vector<std::int64_t>& packet_counts) {
  std::map<int, std::vector<AnnotatedLine::Entry>> by_line;
  for (std::size_t p = 0; p < program.packets.size(); ++p) {
    const isa::Packet& packet = program.packets[p];
    AnnotatedLine::Entry entry{static_cast<int>(p), packet_counts.at(p), {}, isa::print(packet)};
    isa::UnitMask used = 0;
    for (const auto& instruction : packet.instructions) {
      if (!packet.is_idle()) used |= isa::mask(instruction.unit);
    }
    for (int u = 0; u < isa::k_units; ++u) {
      const auto unit = static_cast<isa::Unit>(u);
      if ((used & isa::mask(unit)) == 0) entry.empty_slots.emplace_back(isa::name(unit));
    }
    by_line[packet.instructions.front().place.line].push_back(std::move(entry));
  }
  std::vector<AnnotatedLine> lines;
  std::istringstream in(source);
  int number = 0;
  for (std::string text; std::getline(in, text);) {
    AnnotatedLine line{++number, text, {}};
    if (const auto found = by_line.find(number); found != by_line.end()) line.packets = std::move(found->second);
    lines.push_back(std::move(line));
  }
  return lines;
}

Json annotation_json(const std::vector<AnnotatedLine>& lines) {
  Json json = Json::array();
  for (const auto& line : lines) {
    for (const auto& entry : line.packets) {
      json.push_back({{"line", line.line},
                      {"packet", entry.packet},
                      {"issues", entry.issues},
                      {"text", entry.packet_text},
                      {"empty_slots", entry.empty_slots}});
    }
  }
  return json;
}

std::string annotation_text(const std::vector<AnnotatedLine>& lines) {
  constexpr auto k_columns = "{:>10}  {:>5}  {:>5}  {}\n";
  auto slots = [](const AnnotatedLine::Entry& entry) {
    return fmt::format("{}/{}", isa::k_units - static_cast<int>(entry.empty_slots.size()), isa::k_units);
  };
  std::string out = fmt::format(k_columns, "issues", "slots", "line", "source");
  for (const auto& line : lines) {
    std::int64_t issues = 0;
    for (const auto& entry : line.packets) issues += entry.issues;
    const bool single = line.packets.size() == 1;
    out += fmt::format(k_columns, line.packets.empty() ? "" : grouped(issues),
                       single ? slots(line.packets.front()) : "", line.line, line.text);
    for (const auto& entry : line.packets) {
      if (!single) {  // what .rept or a macro made of this line
        out += fmt::format(k_columns, grouped(entry.issues), slots(entry), "",
                           fmt::format("  packet {}: {}", entry.packet, entry.packet_text));
      }
      if (entry.issues > 0) out += fmt::format(k_columns, "", "", "", "  empty: " + joined(entry.empty_slots, " "));
    }
  }
  return out;
}

}  // namespace mtsim::scenarios
