// SPDX-License-Identifier: Apache-2.0
// What an operator's run is watched with: traces, and the reviewed findings of the hazard monitor. The same options for
// every command that launches something. And a mistake to be watched, for who has no race at hand.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "sim/cluster.h"
#include "sim/config/machine.h"
#include "sim/interceptor.h"
#include "sim/suppression.h"
#include "sim/trace.h"

namespace CLI {
class App;
}

namespace mtsim::scenarios {

struct WatchOptions {
  std::string trace;           // --trace FILE
  std::string trace_window;    // --trace-window FROM:TO
  std::string dram_trace;      // --dram-trace FILE
  std::string suppress;        // --suppress FILE
  bool no_hazards = false;     // --no-hazards
  std::int64_t omit_wait = 0;  // --omit-wait N, from 1
};
/// --suppress and --no-hazards.
void add_hazard_options(CLI::App& app, WatchOptions& options);
/// --trace, --trace-window and --dram-trace.
void add_trace_options(CLI::App& app, WatchOptions& options);
/// --omit-wait.
void add_mistake_option(CLI::App& app, WatchOptions& options);

/// Leaves out the n-th dma_wait of every core, of those that have a transfer to wait for.
class OmittedWait : public sim::Interceptor {
 public:
  explicit OmittedWait(std::int64_t nth) : m_nth(nth) {}
  bool made() const { return m_made; }

  void allocated(const Caller&, sim::Pointer, std::int64_t) override {}
  bool wait(const Caller& caller, int& channel, Outstanding outstanding) override;
  void transfer(const Caller&, sim::Move&) override {}
  void channel(const Caller&, int&, Outstanding) override {}
  void call(const Caller&, std::span<sim::Argument>) override {}

 private:
  std::int64_t m_nth;
  std::map<int, std::int64_t> m_waits;  // of each core so far
  bool m_made = false;
};

/// Opens what the options name; ConfigError when it cannot.
class Watch {
 public:
  Watch() = default;
  Watch(const WatchOptions& options, const sim::MachineConfig& machine);
  Watch(const Watch&) = delete;

  /// For ClusterOptions; nullptr when nothing watches. Valid as long as this.
  sim::Observer* observer() { return m_observers.empty() ? nullptr : &m_observers; }
  bool hazards() const { return m_hazards; }
  /// For ClusterOptions, likewise.
  sim::Interceptor* interceptor() { return m_omitted ? &*m_omitted : nullptr; }
  /// Moves suppressed findings out of result.findings.
  void review(sim::LaunchResult& result) { m_suppressions.apply(result); }
  /// Closes the files and says on stderr what the user should know: unused suppressions, what a trace leaves out.
  void finish();

 private:
  sim::Observers m_observers;
  std::optional<sim::TraceWriter> m_trace;
  std::optional<sim::DramTraceWriter> m_dram;
  sim::Suppressions m_suppressions;
  std::optional<OmittedWait> m_omitted;
  bool m_hazards = true;
};

}  // namespace mtsim::scenarios
