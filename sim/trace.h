// SPDX-License-Identifier: Apache-2.0
// A launch as a trace for ui.perfetto.dev or chrome://tracing: a process per core with a track for what the core does
// (its stalls by name, microkernel calls) and one for each DMA channel (transfers with bytes, path, source line), and
// counters for the DDR, the GSM and the core's DMA port. With a small window the packets of its calls are there too,
// one by one.
#pragma once

#include <bitset>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/output_file.h"
#include "sim/config/trace_file.h"
#include "sim/observer.h"

namespace mtsim::sim {

/// Cycles of a launch, half-open.
struct TraceWindow {
  std::int64_t from = 0;
  std::int64_t to = INT64_MAX;
  bool meets(std::int64_t begin, std::int64_t end) const { return begin < to && end > from; }
};

/// "FROM:TO" in cycles, or in microseconds with "us" behind each; either may be left out. ConfigError otherwise.
TraceWindow parse_trace_window(const std::string& text, double cycles_per_us);

/// Writes JSON to a file while the launch runs; several launches come one behind the other.
class TraceWriter : public Observer {
 public:
  /// Packets are written for windows of at most this many cycles, and at most so many of them.
  static constexpr std::int64_t k_packet_window = 20'000;
  static constexpr std::int64_t k_max_packets = 200'000;

  /// The file appears with finish(). Throws ConfigError when it cannot be written.
  TraceWriter(const std::string& path, TraceWindow window, double cycles_per_us);
  ~TraceWriter() override;

  void launch(int cores) override;
  void end(std::int64_t cycles) override;
  void spent(int core, CycleClass cycle_class, std::int64_t from, std::int64_t cycles) override;
  void call(const Verb& verb, const Kernel& kernel, std::span<const Argument> arguments, std::int64_t call_cycles,
            std::int64_t cycles) override;
  void issued(const Issue& issue) override;
  void moved(int core, int channel, std::int64_t cycle) override;
  void rates(std::int64_t cycle, const Fabric::Shares& shares) override;

  /// Throws ConfigError when something could not be written.
  void finish();
  /// What is not in the trace, and why.
  const std::vector<std::string>& notes() const { return m_notes; }

 private:
  struct Counter {
    const char* name;
    const char* unit;
    double value = 0;
    bool written = false;
  };
  /// Once. `number` is part of the name when it is not negative.
  void name_track(int process, int track, std::string_view name, int number = -1);
  const std::string& source(const std::source_location& place);
  void count(int process, Counter& counter, std::int64_t cycle, double value);
  void packets(int core, const Kernel& kernel, std::span<const Argument> arguments, std::int64_t from);
  void note(const std::string& text);

  TraceFile m_file;
  TraceWindow m_window;
  bool m_packets;
  std::int64_t m_packets_written = 0;
  std::int64_t m_shift = 0;                    // cycles of the launches before
  std::vector<std::vector<Issue>> m_issues;    // by core and channel: the transfer there
  static constexpr std::size_t k_tracks = 80;  // of a process: the core, packets, counters, channels
  std::vector<std::bitset<k_tracks>> m_named;  // by process: which tracks have a name
  std::map<std::pair<const char*, std::uint_least32_t>, std::string> m_sources;  // source_text()
  std::string m_text;                                                            // of call(), kept for its storage
  std::map<const DecodedProgram*, std::string> m_not_static;                     // why; "" when static
  Counter m_ddr{"DDR busy", "%"}, m_gsm{"GSM", "bytes per cycle"};
  std::vector<Counter> m_ports;  // by core
  std::vector<std::string> m_notes;
};

/// Writes what reaches the DDR, one line a transfer: cycle,core,channel,R or W,address,rows,row_bytes,pitch_bytes.
class DramTraceWriter : public Observer {
 public:
  /// As TraceWriter.
  explicit DramTraceWriter(const std::string& path);
  void end(std::int64_t cycles) override;
  void dram_request(std::int64_t cycle, int core, int channel, const MemoryModel::Request& request) override;
  /// Throws ConfigError when something could not be written.
  void finish();

 private:
  OutputFile m_file;
  std::int64_t m_shift = 0;  // cycles of the launches before
};

/// Tells several what happens.
class Observers : public Observer {
 public:
  void add(Observer& observer) { m_all.push_back(&observer); }
  bool empty() const { return m_all.empty(); }

  void launch(int cores) override;
  void end(std::int64_t cycles) override;
  void spent(int core, CycleClass cycle_class, std::int64_t from, std::int64_t cycles) override;
  void call(const Verb& verb, const Kernel& kernel, std::span<const Argument> arguments, std::int64_t call_cycles,
            std::int64_t cycles) override;
  void issued(const Issue& issue) override;
  void moved(int core, int channel, std::int64_t cycle) override;
  void known_complete(const Verb& verb, int channel) override;
  void met(std::int64_t cycle) override;
  void group_met(std::span<const ChannelRef> members) override;
  void rates(std::int64_t cycle, const Fabric::Shares& shares) override;
  void dram_request(std::int64_t cycle, int core, int channel, const MemoryModel::Request& request) override;

 private:
  std::vector<Observer*> m_all;
};

}  // namespace mtsim::sim
