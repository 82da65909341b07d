// SPDX-License-Identifier: Apache-2.0
#include "scenarios/report.h"

namespace mtsim::scenarios {

Json loops_json(const std::vector<isa::LoopSchedule>& loops) {
  Json json = Json::array();
  for (const auto& loop : loops) {
    Json units = Json::object();
    for (std::size_t u = 0; u < isa::k_units; ++u) units[std::string(isa::k_unit_names[u])] = loop.issues[u];
    json.push_back({{"label", loop.label},
                    {"first_packet", loop.first},
                    {"packets", loop.last - loop.first},
                    {"initiation_interval", loop.initiation_interval},
                    {"busiest_slot", loop.busiest_slot},
                    {"units", units}});
  }
  return json;
}

Json loop_report_json(const isa::LoopReport& report) {
  Json resources = Json::array(), blocked = Json::array(), registers = Json::object();
  for (const isa::ResourceBound& bound : report.resources) {
    resources.push_back(
        {{"name", bound.name}, {"cycles", bound.cycles}, {"instructions", bound.instructions}, {"slots", bound.slots}});
  }
  for (const isa::BlockedInterval& one : report.blocked) {
    blocked.push_back({{"interval", one.interval}, {"reason", one.reason}});
  }
  for (std::size_t f = 0; f < isa::k_register_files; ++f) {
    registers[std::string(isa::k_register_file_names[f])] = report.registers[f];
  }
  return {{"label", report.label},
          {"line", report.place.line},
          {"instructions", report.instructions},
          {"pipelined", report.pipelined},
          {"why_not", report.why_not},
          {"resource_bound", report.resource_bound},
          {"resources", resources},
          {"recurrence_bound", report.recurrence.cycles},
          {"recurrence", report.recurrence.edges},
          {"independent_bound", report.independent_bound > 0 ? Json(report.independent_bound) : Json(nullptr)},
          {"lifetime_bound", report.lifetime.cycles},
          {"lifetime", report.lifetime.edges},
          {"bound_with_copies", report.copied_bound},
          {"initiation_interval", report.interval},
          {"proved", report.is_proved()},
          {"proved_for_registers", report.is_proved() || report.refuted_here},
          {"blocked", blocked},
          {"copies", report.copies},
          {"stages", report.stages},
          {"prologue_cycles", report.prologue_cycles},
          {"epilogue_cycles", report.epilogue_cycles},
          {"not_pipelined_cycles", report.simple_cycles},
          {"trip_minimum", report.by_hand ? Json(nullptr) : Json(report.trip_minimum)},
          {"guarded", report.guarded},
          {"live_registers", registers}};
}

}  // namespace mtsim::scenarios
