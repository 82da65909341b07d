// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scenarios/explore/exploration.h"
#include "scenarios/table.h"

namespace mtsim::scenarios {

std::string reason(const Explored& best, const Explored& other, const sim::MachineConfig& machine) {
  struct Counter {
    std::string name, from, to;
    double weight;  // what the change may cost, in ms
  };
  std::vector<Counter> counters;
  for (std::size_t c = 0; c < best.measured.class_ms.size(); ++c) {
    const double from = best.measured.class_ms[c], to = other.measured.class_ms[c];
    // Mostly microseconds; a mean over the cores can differ by less than a cycle.
    const int digits = fmt::format("{:.4f}", from) != fmt::format("{:.4f}", to) ? 4 : 8;
    counters.push_back({std::string(sim::name(static_cast<sim::CycleClass>(c))), fmt::format("{:.{}f}", from, digits),
                        fmt::format("{:.{}f} ms a core", to, digits), to - from});
  }
  const auto moved = [&](const char* name, std::int64_t from, std::int64_t to, double gb_s) {
    counters.push_back({name, megabytes(from), megabytes(to) + " MB", static_cast<double>(to - from) / (gb_s * 1e6)});
  };
  moved("DDR", best.measured.ddr_bytes, other.measured.ddr_bytes, machine.ddr.bandwidth_gb_s);
  moved("GSM", best.measured.gsm_bytes, other.measured.gsm_bytes, machine.cluster.gsm_bandwidth_gb_s);
  const auto counted = [&](const char* name, std::int64_t from, std::int64_t to, std::int64_t cycles) {
    counters.push_back({name, grouped(from), grouped(to),
                        machine.milliseconds((to - from) * cycles) / static_cast<double>(machine.cluster.cores)});
  };
  counted("microkernel calls", best.measured.calls, other.measured.calls, machine.core.call_cycles);
  counted("transfers", best.measured.transfers, other.measured.transfers, machine.core.dma_issue_cycles);
  // Memory costs nothing by itself: it is told when little else differs.
  for (const auto& [name, field] :
       {std::pair("SM", &Candidate::sm_bytes), {"AM", &Candidate::am_bytes}, {"GSM taken", &Candidate::gsm_bytes}})
    counters.push_back({name, kilobytes(best.point.*field), kilobytes(other.point.*field) + " KB", 0});
  std::erase_if(counters, [](const Counter& c) { return c.to.substr(0, c.to.find(' ')) == c.from; });
  // What pulls the same way as the latency, largest first.
  const double way = other.measured.latency_ms >= best.measured.latency_ms ? 1 : -1;
  std::stable_sort(counters.begin(), counters.end(),
                   [&](const Counter& a, const Counter& b) { return way * a.weight > way * b.weight; });
  std::vector<std::string> told;
  for (std::size_t i = 0; i < std::min<std::size_t>(2, counters.size()); ++i)
    told.push_back(fmt::format("{} {} -> {}", counters[i].name, counters[i].from, counters[i].to));
  return told.empty() ? "the same run by every counter" : joined(told);
}

}  // namespace mtsim::scenarios
