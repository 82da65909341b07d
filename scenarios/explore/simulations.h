// SPDX-License-Identifier: Apache-2.0
// Points of a space as real microcode in timing depth, over the host's cores and those of other ranks, each point once:
// what is done goes to a journal, and a run that was killed goes on from there.
#pragma once

#include <array>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "scenarios/explore/space.h"
#include "scenarios/rank_pool.h"
#include "sim/accounting.h"
#include "sim/config/machine.h"

namespace mtsim::scenarios {

struct Measured {
  bool cut = false;  // given up at the limit: latency_ms is that, and nothing else is known
  double latency_ms = 0, gmac_s = 0, utilisation = 0;
  std::array<double, sim::k_cycle_classes> class_ms{};  // mean of a core
  std::int64_t ddr_bytes = 0, gsm_bytes = 0;            // read and written there
  std::int64_t calls = 0, transfers = 0;

  bool operator==(const Measured&) const = default;
  Json json() const;
  static Measured from(const Json& json);
};

/// A file of lines: what it is about, then a finished point each.
class Journal {
 public:
  /// `path` empty: kept in memory only. UsageError when the file is about something else, damaged, or in use.
  Journal(std::string path, const Json& about);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  const std::map<std::string, Json>& known() const { return m_known; }
  void add(const std::string& key, const Json& result);

 private:
  void lock();
  void read(const Json& about);
  void append(const Json& line);

  std::string m_path;
  int m_lock = -1;
  std::ofstream m_file;
  std::map<std::string, Json> m_known;
};

class Simulations {
 public:
  /// `other_work`: what the pool answers to requests that are no point. The processes start here; all ranks of an
  /// mpirun have to be about the same (rank_pool.h).
  Simulations(std::shared_ptr<const Query> query, std::vector<sim::Machine> machines, std::size_t processes,
              std::function<std::string(const std::string&)> other_work, const Json& about);

  /// A machine's points, `limit_ms` 0 for none; results in their order. `on_done` after each that was not known.
  std::vector<Measured> run(std::size_t machine, const std::vector<Candidate>& points, double limit_ms,
                            Journal& journal, const std::function<void()>& on_done);
  RankPool& pool() { return m_pool; }
  /// Points simulated here, not found in the journal.
  std::int64_t computed() const { return m_computed; }

 private:
  std::shared_ptr<const Query> m_query;
  std::vector<sim::Machine> m_machines;
  RankPool m_pool;
  std::int64_t m_computed = 0;
};

}  // namespace mtsim::scenarios
