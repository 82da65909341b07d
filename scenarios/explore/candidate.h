// SPDX-License-Identifier: Apache-2.0
// Points of a tile space as the explorer handles them, whatever the operator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace mtsim::scenarios {

/// A point: which way of its operator, its block sizes, and what is known of it before it is simulated.
struct Candidate {
  std::size_t kind = 0;              // of Query::kinds(): a dataflow, a variant
  std::vector<std::int64_t> values;  // of Query::dimensions(); 0: chosen by the operator, or not of this kind
  double bound_ms = 0;               // of all but very short runs: no run takes less; 0: not known
  std::int64_t sm_bytes = 0, am_bytes = 0, gsm_bytes = 0;

  bool is_same(const Candidate& other) const { return kind == other.kind && values == other.values; }
};
/// The order of points that are as good as each other, so that it is the same everywhere.
inline bool named_before(const Candidate& a, const Candidate& b) {
  return std::tie(a.kind, a.values) < std::tie(b.kind, b.values);
}
/// The faster bound first.
inline bool operator<(const Candidate& a, const Candidate& b) {
  if (a.bound_ms != b.bound_ms) return a.bound_ms < b.bound_ms;
  return named_before(a, b);
}

/// The best points by their bound, as many as asked for.
class Best {
 public:
  explicit Best(std::size_t count) : m_count(count) {}

  /// Whether a bound can still get in.
  bool takes(double bound_ms) const { return m_heap.size() < m_count || bound_ms <= m_heap.front().bound_ms; }
  void add(Candidate candidate);
  std::vector<Candidate> sorted();

 private:
  std::size_t m_count;
  std::vector<Candidate> m_heap;  // worst on top
};

/// Points ruled out by one condition.
struct Killed {
  std::int64_t points = 0;
  Candidate example;                       // the one that misses by least
  std::int64_t needed = 0, available = 0;  // bytes, of the example

  /// `count` more points, of which `example` is one.
  void add(std::int64_t count, const Candidate& example, std::int64_t needed, std::int64_t available);
  void add(const Killed& other) { add(other.points, other.example, other.needed, other.available); }
};

struct Ranking {
  std::vector<Candidate> best;  // sorted
  std::int64_t legal = 0;
  std::map<std::pair<std::string, std::string>, Killed> killed;  // by equation ("" where it has no number) and memory
};

/// A point beside another, one dimension apart.
struct Neighbour {
  std::size_t dimension = 0;      // of Query::dimensions()
  std::int64_t from = 0, to = 0;  // its values
  Candidate point;
  std::string why_not;  // it does not fit, with the bytes; else empty
};

}  // namespace mtsim::scenarios
