// SPDX-License-Identifier: Apache-2.0
// Where a running debugger stops: breakpoints, watchpoints and the catch for reads of old values.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scenarios/debug/location.h"
#include "sim/core/stepper.h"

namespace mtsim::scenarios {

struct Stop {
  enum class Kind : std::uint8_t { packet, cycle, watch, old_read };
  int number = 0;
  Kind kind = Kind::packet;
  std::string text;       // "breakpoint at loop", as lists and hits name it
  std::set<int> packets;  // of packet: any of these is about to issue
  std::int64_t cycle = 0;
  Location watched;
};

class Stops {
 public:
  /// Adds a stop and gives it the next number.
  const Stop& add(Stop stop);
  /// False when there is no such stop.
  bool remove(int number);
  void clear() { m_stops.clear(); }
  const std::vector<Stop>& all() const { return m_stops; }
  bool breaks_at(int packet) const;

 private:
  std::vector<Stop> m_stops;
  int m_next = 1;
};

/// What the watched places hold before a step, forwards or backwards; ask for the hits behind it.
class StopWatch {
 public:
  StopWatch(const Stops& stops, const sim::Stepper& stepper);

  struct Hit {
    const Stop* stop = nullptr;
    std::vector<std::byte> before, after;  // of a watch
  };
  /// `change`: of the step that was done or undone.
  std::vector<Hit> hits(const sim::Stepper::Change& change) const;

 private:
  const Stops& m_stops;
  const sim::Stepper& m_stepper;
  std::int64_t m_cycle;
  std::vector<std::vector<std::byte>> m_watched;  // one a stop; empty for what is no watch
};

/// Whether a read of an old value is the program's own doing: .linear code was scheduled to read so.
bool by_hand(const isa::Program& program, int packet);

}  // namespace mtsim::scenarios
