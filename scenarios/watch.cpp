// SPDX-License-Identifier: Apache-2.0
#include "scenarios/watch.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "scenarios/error.h"

namespace mtsim::scenarios {

void add_hazard_options(CLI::App& app, WatchOptions& options) {
  app.add_option("--suppress", options.suppress,
                 "Reviewed DMA findings, with reasons (YAML, see docs/kernel-writers.md)")
      ->type_name("FILE");
  app.add_flag("--no-hazards", options.no_hazards, "Do not look for DMA races: saves host time, finds nothing");
}

void add_trace_options(CLI::App& app, WatchOptions& options) {
  app.add_option("--trace", options.trace, "Write a trace for ui.perfetto.dev: cores, DMA channels, DDR and GSM")
      ->type_name("FILE");
  app.add_option("--trace-window", options.trace_window,
                 "Of the trace: FROM:TO in cycles, or 10us:20us; packets too when it has at most 20000 cycles")
      ->type_name("FROM:TO");
  app.add_option("--dram-trace", options.dram_trace, "Write every transfer's request to the DDR, a line each (CSV)")
      ->type_name("FILE");
}

Watch::Watch(const WatchOptions& options, const sim::MachineConfig& machine) {
  if (options.trace.empty() && !options.trace_window.empty()) {
    throw UsageError("--trace-window without --trace FILE");
  }
  if (!options.suppress.empty() && options.no_hazards) {
    throw UsageError("--suppress with --no-hazards: nothing is found that could be suppressed");
  }
  m_hazards = !options.no_hazards;
  if (!options.suppress.empty()) m_suppressions = sim::Suppressions::load(options.suppress);
  const sim::TraceWindow window = options.trace_window.empty()
                                      ? sim::TraceWindow{}
                                      : sim::parse_trace_window(options.trace_window, machine.cycles_per_us());
  if (!options.trace.empty()) m_observers.add(m_trace.emplace(options.trace, window, machine.cycles_per_us()));
  if (!options.dram_trace.empty()) m_observers.add(m_dram.emplace(options.dram_trace));
}

void Watch::finish() {
  std::vector<std::string> notes = m_suppressions.unused();
  if (m_trace) {
    m_trace->finish();
    notes.insert(notes.end(), m_trace->notes().begin(), m_trace->notes().end());
  }
  if (m_dram) m_dram->finish();
  for (const std::string& note : notes) fmt::print(stderr, "mtsim: {}\n", note);
}

}  // namespace mtsim::scenarios
