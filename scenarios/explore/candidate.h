// SPDX-License-Identifier: Apache-2.0
// Points of a tile space as the explorer handles them, whatever the operator.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace mtsim::scenarios {

/// A point: how `mtsim op` is told, and what is known of it before it is simulated.
struct Candidate {
  std::string variant;  // of --variant: "large_m"
  std::string tile;     // of --tile; with the variant it names the point
  double bound_ms = 0;  // of all but very short runs: no run takes less
  std::int64_t sm_bytes = 0, am_bytes = 0, gsm_bytes = 0;

  std::string key() const { return variant + " " + tile; }
};
/// The faster bound first; the text decides between equals, so that the order is the same everywhere.
inline bool operator<(const Candidate& a, const Candidate& b) {
  if (a.bound_ms != b.bound_ms) return a.bound_ms < b.bound_ms;
  return a.key() < b.key();
}

/// Points ruled out by one condition.
struct Killed {
  std::int64_t points = 0;
  std::string example;                     // the one that misses by least: its tile
  std::int64_t needed = 0, available = 0;  // bytes, of the example

  /// `count` more points, of which `example` is one.
  void add(std::int64_t count, const std::string& example, std::int64_t needed, std::int64_t available);
  void add(const Killed& other);
};

struct Ranking {
  std::vector<Candidate> best;  // sorted
  std::int64_t legal = 0;
  std::map<std::pair<std::string, std::string>, Killed> killed;  // by equation and memory
};

/// A point beside another, one dimension apart.
struct Neighbour {
  std::string dimension;          // "k2"
  std::int64_t from = 0, to = 0;  // its values
  Candidate point;
  std::string why_not;  // it does not fit; else empty
};

}  // namespace mtsim::scenarios
