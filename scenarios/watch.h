// SPDX-License-Identifier: Apache-2.0
// What an operator's run is watched with: traces, and the reviewed findings of the hazard monitor. The same options for
// every command that launches something.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "sim/cluster.h"
#include "sim/config/machine.h"
#include "sim/suppression.h"
#include "sim/trace.h"

namespace mtsim::scenarios {

struct WatchOptions {
  std::string trace;         // --trace FILE
  std::string trace_window;  // --trace-window FROM:TO
  std::string dram_trace;    // --dram-trace FILE
  std::string suppress;      // --suppress FILE
  bool no_hazards = false;   // --no-hazards
};
/// --suppress and --no-hazards.
void add_hazard_options(CLI::App& app, WatchOptions& options);
/// --trace, --trace-window and --dram-trace.
void add_trace_options(CLI::App& app, WatchOptions& options);

/// Opens what the options name; ConfigError when it cannot.
class Watch {
 public:
  Watch() = default;
  Watch(const WatchOptions& options, const sim::MachineConfig& machine);
  Watch(const Watch&) = delete;

  /// For ClusterOptions; nullptr when nothing watches. Valid as long as this.
  sim::Observer* observer() { return m_observers.empty() ? nullptr : &m_observers; }
  bool hazards() const { return m_hazards; }
  /// Moves suppressed findings out of result.findings.
  void review(sim::LaunchResult& result) { m_suppressions.apply(result); }
  /// Closes the files and says on stderr what the user should know: unused suppressions, what a trace leaves out.
  void finish();

 private:
  sim::Observers m_observers;
  std::optional<sim::TraceWriter> m_trace;
  std::optional<sim::DramTraceWriter> m_dram;
  sim::Suppressions m_suppressions;
  bool m_hazards = true;
};

}  // namespace mtsim::scenarios
