// SPDX-License-Identifier: Apache-2.0
#include "scenarios/watch.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "scenarios/error.h"
#include "sim/config/output_file.h"

namespace mtsim::scenarios {

bool OmittedWait::wait(const Caller& caller, int& channel, Outstanding outstanding) {
  if ((outstanding >> channel & 1) == 0 || ++m_waits[caller.core] != m_nth) return true;
  m_made = true;
  return false;
}

Watch::Watch(const WatchOptions& options, const sim::MachineConfig& machine) {
  if (options.trace.empty() && !options.trace_window.empty()) {
    throw UsageError("--trace-window without --trace FILE");
  }
  if (!options.suppress.empty() && options.no_hazards) {
    throw UsageError("--suppress with --no-hazards: nothing is found that could be suppressed");
  }
  if (options.omit_wait > 0 && options.no_hazards) {
    throw UsageError("--omit-wait with --no-hazards: nobody looks what the missing wait does");
  }
  m_hazards = !options.no_hazards;
  if (options.omit_wait > 0) m_omitted.emplace(options.omit_wait);
  if (!options.suppress.empty()) m_suppressions = sim::Suppressions::load(options.suppress);
  const sim::TraceWindow window = options.trace_window.empty()
                                      ? sim::TraceWindow{}
                                      : sim::parse_trace_window(options.trace_window, machine.cycles_per_us());
  if (!options.dram_trace.empty()) sim::require_writable(options.dram_trace, "--dram-trace");
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
  if (m_omitted && !m_omitted->made()) {
    notes.emplace_back("--omit-wait: no core has that many waits with a transfer to wait for; nothing was left out");
  }
  for (const std::string& note : notes) fmt::print(stderr, "mtsim: {}\n", note);
}

}  // namespace mtsim::scenarios
