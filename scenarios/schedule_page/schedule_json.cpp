// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <set>

#include "isa/checker.h"
#include "isa/printer.h"
#include "isa/schedule_view.h"
#include "isa/value_flow.h"
#include "scenarios/schedule_page/chains.h"
#include "scenarios/schedule_page/page.h"
#include "scenarios/schedule_page/parts.h"

namespace mtsim::scenarios {

namespace {

using Live = std::bitset<isa::k_register_count>;

/// Four registers a digit, R0-R3 first.
std::string hex_of(const Live& live) {
  std::string text;
  for (std::size_t i = 0; i < live.size(); i += 4) {
    unsigned digit = 0;
    for (std::size_t bit = 0; bit < 4; ++bit) digit |= static_cast<unsigned>(live.test(i + bit)) << bit;
    text += "0123456789abcdef"[digit];
  }
  return text;
}

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t");
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// "R32, R32, R33" of "[R0] SBALE2.M1 R32, R32, R33".
std::string operands_of(const std::string& text, const isa::Instruction& instruction) {
  const std::size_t mnemonic = text.find(instruction.row->mnemonic);
  const std::size_t space = mnemonic == std::string::npos ? std::string::npos : text.find(' ', mnemonic);
  return space == std::string::npos ? "" : text.substr(space + 1);
}

class Writer {
 public:
  Writer(const PageSchedule& schedule, const sim::Machine& machine)
      : m_schedule(schedule),
        m_program(schedule.program),
        m_pipeline(machine.config().pipeline),
        m_machine(machine),
        m_loops(isa::loops(m_program, m_pipeline)),
        m_flow(isa::follow_values(m_program, m_pipeline)),
        m_chains(find_chains(m_program, m_flow)) {
    int number = 0;
    for (const isa::Packet& packet : m_program.packets) {
      m_first_cell.push_back(number);
      number += static_cast<int>(packet.instructions.size());
    }
  }

  Json write() const {
    Json units = Json::array();
    for (const std::string_view unit : isa::k_unit_names) units.push_back(std::string(unit));
    Json registers = Json::array();
    for (int file = 0; file < isa::k_register_files; ++file) {
      const auto f = static_cast<std::size_t>(file);
      registers.push_back(
          {{"file", std::string(isa::k_register_file_names[f])}, {"count", isa::k_registers_in_file[f]}});
    }
    Json labels = Json::object();
    for (const auto& [label, packet] : m_program.labels) labels[label] = packet;
    for (const isa::Region& region : m_program.regions) labels.emplace(region.name, region.first);
    return {{"name", m_program.name},
            {"file", m_program.file},
            {"role", m_schedule.role},
            {"machine", m_machine.config().name},
            {"remarks", m_schedule.remarks},
            {"units", units},
            {"registers", registers},
            {"labels", labels},
            {"parameters", parameters()},
            {"parts", parts()},
            {"packets", packets()},
            {"cells", cells()},
            {"arrows", arrows()},
            {"arrows_complete", m_flow.complete},
            {"loops", loops()},
            {"findings", findings()},
            {"chains", chains()},
            {"operations", operations()}};
  }

 private:
  int cell(isa::InstructionAt at) const {
    return at.packet < 0 ? -1 : m_first_cell[static_cast<std::size_t>(at.packet)] + at.slot;
  }

  Json parameters() const {
    Json json = Json::array();
    for (const isa::Parameter& parameter : m_program.parameters) {
      static constexpr const char* k_kinds[] = {"value", "count", "pointer to SM", "pointer to AM"};
      json.push_back({{"name", parameter.name},
                      {"register", parameter.reg.str()},
                      {"kind", k_kinds[static_cast<std::size_t>(parameter.kind)]}});
    }
    return json;
  }

  Json parts() const {
    Json json = Json::array();
    for (const SchedulePart& part : schedule_parts(m_program, m_pipeline, m_loops, m_schedule.reports)) {
      int cycles = 0;
      for (int p = part.first; p < part.last; ++p) cycles += m_program.packets[static_cast<std::size_t>(p)].cycles();
      json.push_back({{"kind", to_string(part.kind)},
                      {"first", part.first},
                      {"last", part.last},
                      {"cycles", cycles},
                      {"loop", part.loop}});
    }
    return json;
  }

  Json packets() const {
    Json json = Json::array();
    int at = 0;
    for (std::size_t p = 0; p < m_program.packets.size(); ++p) {
      const isa::Packet& packet = m_program.packets[p];
      json.push_back({{"at", at},
                      {"cycles", packet.cycles()},
                      {"idle", packet.is_idle()},
                      {"line", packet.instructions.front().place.line},
                      {"comment", trimmed(packet.comment)},
                      {"scheduled", m_program.linear_at(static_cast<int>(p)) >= 0},
                      {"live", hex_of(m_flow.live[p])}});
      at += packet.cycles();
    }
    return json;
  }

  Json cells() const {
    Json json = Json::array();
    for (std::size_t p = 0; p < m_program.packets.size(); ++p) {
      const isa::Packet& packet = m_program.packets[p];
      for (std::size_t slot = 0; slot < packet.instructions.size(); ++slot) {
        json.push_back(cell_json(static_cast<int>(p), packet.instructions[slot], m_chains.by_packet[p][slot]));
      }
    }
    return json;
  }

  Json cell_json(int packet, const isa::Instruction& instruction, const InstructionChains& chains) const {
    const std::string text = isa::print(instruction);
    Json writes = Json::array(), reads = Json::array();
    std::set<std::string> seen;
    for (const isa::Write& write : isa::writes(instruction, m_pipeline)) {
      writes.push_back({write.reg.str(), write.cycles});
    }
    for (const isa::Register reg : isa::reads(instruction)) {
      if (seen.insert(reg.str()).second) reads.push_back(reg.str());
    }
    const bool idle = instruction.row->units == isa::units::NONE;
    std::string predicate;
    if (instruction.predicate) {
      predicate = fmt::format("[{}{}]", instruction.predicate->negated ? "!" : "", instruction.predicate->reg.str());
    }
    Json json = {{"packet", packet},
                 {"unit", idle ? -1 : static_cast<int>(instruction.unit)},
                 {"operation", std::string(instruction.row->mnemonic)},
                 {"operands", operands_of(text, instruction)},
                 {"text", text},
                 {"line", instruction.place.line},
                 {"chain", chains.chain},
                 {"also", chains.others},
                 {"writes", writes},
                 {"reads", reads}};
    if (!predicate.empty()) json["predicate"] = predicate;
    const auto* target =
        instruction.row->id == isa::Mnemonic::SBR ? std::get_if<isa::Target>(instruction.operands.data()) : nullptr;
    if (target != nullptr) json["target"] = target->packet;
    return json;
  }

  // [producer, consumer, register, latency, distance, wraps]; a producer of -1 is the caller.
  Json arrows() const {
    Json json = Json::array();
    for (const isa::ValueUse& use : m_flow.uses) {
      json.push_back({cell(use.producer), cell(use.consumer), use.reg.str(), use.latency, use.distance, use.wraps});
    }
    return json;
  }

  Json loops() const {
    Json json = Json::array();
    for (const isa::LoopSchedule& loop : m_loops) {
      Json one = {{"label", loop.label},   {"first", loop.first},
                  {"last", loop.last},     {"interval", loop.initiation_interval},
                  {"issues", loop.issues}, {"busiest", loop.busiest_slot},
                  {"report", nullptr}};
      if (const isa::LoopReport* report = report_of(loop.label, m_schedule.reports)) {
        one["report"] = loop_report_json(*report);
      }
      json.push_back(std::move(one));
    }
    return json;
  }

  bool reads_early(isa::InstructionAt at) const {
    const auto read = m_flow.early.lower_bound({at, {}});
    return read != m_flow.early.end() && read->first == at;
  }

  /// "line 6", or "part.s:6" of an included file.
  std::string place_text(const isa::Place& place) const {
    if (place.line == 0) return "";
    return place.file == m_program.file ? fmt::format("line {}", place.line)
                                        : fmt::format("{}:{}", place.file, place.line);
  }

  // A hazard is what may make a value wrong or lead astray; work that nobody needs is none. A scheduler reads old
  // values on purpose; in packets written by hand it is a hazard. The check says nothing of .linear code; of the
  // doctor's packets it cannot know whose they are.
  static bool is_hazard(const isa::Diagnostic& found, bool by_hand) {
    static constexpr std::string_view k_harmless[] = {"overwritten-unused", "analysis-stopped"};
    if (found.severity == isa::Severity::note) return found.code == "read-in-flight" && by_hand;
    return std::find(std::begin(k_harmless), std::end(k_harmless), found.code) == std::end(k_harmless);
  }

  Json findings() const {
    Json json = Json::array();
    for (const isa::Diagnostic& found : isa::check(m_program, m_pipeline)) {
      std::vector<int> at;
      bool by_hand = false;
      for (std::size_t p = 0; p < m_program.packets.size(); ++p) {
        const auto& instructions = m_program.packets[p].instructions;
        for (std::size_t slot = 0; slot < instructions.size(); ++slot) {
          if (instructions[slot].place.line == 0 || !(instructions[slot].place == found.place)) continue;
          // A place that .rept repeats is one finding; only some of its copies may read early.
          if (found.code == "read-in-flight" && !reads_early({static_cast<int>(p), static_cast<int>(slot)})) continue;
          at.push_back(m_first_cell[p] + static_cast<int>(slot));
          by_hand = by_hand || !m_schedule.scheduled;
        }
      }
      json.push_back({{"severity", to_string(found.severity)},
                      {"hazard", is_hazard(found, by_hand)},
                      {"code", found.code},
                      {"place", place_text(found.place)},
                      {"message", found.message},
                      {"suggestion", found.suggestion},
                      {"cells", at}});
    }
    return json;
  }

  Json chains() const {
    Json json = Json::array();
    for (const OperandChain& chain : m_chains.chains) json.push_back({{"name", chain.name}});
    return json;
  }

  Json operations() const {
    Json json = Json::object();
    for (const isa::Packet& packet : m_program.packets) {
      for (const isa::Instruction& instruction : packet.instructions) {
        const isa::Row& row = *instruction.row;
        json[std::string(row.mnemonic)] = {{"source", std::string(row.source)}, {"grade", to_string(row.grade)}};
      }
    }
    return json;
  }

  const PageSchedule& m_schedule;
  const isa::Program& m_program;
  const isa::Pipeline& m_pipeline;
  const sim::Machine& m_machine;
  std::vector<isa::LoopSchedule> m_loops;
  isa::ValueFlow m_flow;
  OperandChains m_chains;
  std::vector<int> m_first_cell;  // by packet
};

}  // namespace

Json schedule_json(const PageSchedule& schedule, const sim::Machine& machine) {
  return Writer(schedule, machine).write();
}

}  // namespace mtsim::scenarios
