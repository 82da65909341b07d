// SPDX-License-Identifier: Apache-2.0
// A serving run as a trace for ui.perfetto.dev: a process a pool with a track a stage, and counters for what waits,
// what is decoded and what caches take. A tick is a nanosecond.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "runtime/serving/serve.h"
#include "sim/config/trace_file.h"
#include "sim/trace.h"

namespace mtsim::runtime {

/// Writes while the run goes on.
class PoolTrace final : public ServingObserver {
 public:
  /// `window`: nanoseconds of the run. Throws sim::ConfigError when the file cannot be written.
  PoolTrace(const std::string& path, const ServingPlan& plan, sim::TraceWindow window = {});

  void worked(const StageEvent& event) override;
  void changed(const Occupancy& occupancy) override;
  /// The file appears. Throws sim::ConfigError when something could not be written.
  void finish() { m_file.finish(); }

 private:
  static constexpr std::size_t k_counters = 6;
  void count(std::int64_t at, const std::array<double, k_counters>& values);

  sim::TraceFile m_file;
  sim::TraceWindow m_window;
  std::array<std::int64_t, 2> m_stages{};                   // of a replica, by pool
  std::array<double, k_counters> m_values{};                // now
  std::optional<std::array<double, k_counters>> m_written;  // last
};

}  // namespace mtsim::runtime
