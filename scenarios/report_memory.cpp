// SPDX-License-Identifier: Apache-2.0
// Where the capacity cliffs of a sweep of block sizes are.
#include <fmt/format.h>

#include "scenarios/report.h"
#include "scenarios/table.h"

namespace mtsim::scenarios {

namespace {

/// Bytes that a cell takes or would take.
kernels::CapacityError::Needs needs_of(const CellResult& cell) {
  if (cell.misfit) return cell.misfit->needs;
  kernels::CapacityError::Needs needs;
  if (const auto memory = cell.outcome.plan.find("memory"); memory != cell.outcome.plan.end()) {
    needs.sm_bytes = memory->value("sm_bytes", std::int64_t{0});
    needs.am_bytes = memory->value("am_bytes", std::int64_t{0});
    needs.gsm_bytes = memory->value("gsm_bytes", std::int64_t{0});
  }
  return needs;
}

}  // namespace

Json memory_json(const CellResult& cell) {
  const auto needs = needs_of(cell);
  Json json = Json::object();
  if (needs.sm_bytes > 0) json["sm_bytes"] = needs.sm_bytes;
  if (needs.am_bytes > 0) json["am_bytes"] = needs.am_bytes;
  if (needs.gsm_bytes > 0) json["gsm_bytes"] = needs.gsm_bytes;
  return json;
}

std::string memory_text(const Scenario& scenario, const ScenarioResult& result, const sim::Machine& machine) {
  const sim::MachineConfig& config = machine.config();
  std::vector<std::size_t> axes;  // that vary
  std::vector<std::string> header;
  for (std::size_t a = 0; a < scenario.axes.size(); ++a) {
    if (scenario.axes[a].values.size() < 2) continue;
    axes.push_back(a);
    header.push_back(scenario.axes[a].name);
  }
  for (const char* column : {"SM", "AM", "GSM", "latency ms", "short of"}) header.emplace_back(column);
  std::vector<Align> align(header.size(), Align::right);
  align.back() = Align::left;
  Table table(align, header);
  for (const CellResult& cell : result.cells) {
    std::vector<std::string> row;
    for (const std::size_t a : axes) row.push_back(scenario.axes[a].text(cell.cell.at[a]));
    const auto needs = needs_of(cell);
    std::vector<std::string> misses;
    const auto add = [&](const char* memory, std::int64_t needed, std::int64_t available) {
      row.push_back(needed > 0 ? grouped(needed) : "-");
      if (needed > available) misses.push_back(fmt::format("{} by {}", memory, grouped(needed - available)));
    };
    add("SM", needs.sm_bytes, config.core.sm_bytes);
    add("AM", needs.am_bytes, config.core.am_bytes);
    add("GSM", needs.gsm_bytes, config.cluster.gsm_bytes);
    row.push_back(cell.misfit ? "-" : fmt::format("{:.2f}", cell.metrics.at("latency_ms")));
    row.push_back(cell.misfit && misses.empty() ? cell.misfit->message : joined(misses));
    table.add(std::move(row));
  }
  return fmt::format("bytes needed, of {} (SM) and {} (AM) of a core and {} of GSM\n{}", grouped(config.core.sm_bytes),
                     grouped(config.core.am_bytes), grouped(config.cluster.gsm_bytes), table.text());
}

}  // namespace mtsim::scenarios
