// SPDX-License-Identifier: Apache-2.0
// `mtsim explore`: ranks a space by its bound, simulates the best, and says what is best, why its neighbours are
// worse, and whether that depends on which of the calibrated machines is right.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/explore/candidate.h"
#include "scenarios/explore/simulations.h"
#include "scenarios/explore/space.h"
#include "sim/config/machine.h"

namespace mtsim::scenarios {

struct ExploreRequest {
  std::shared_ptr<const Query> query;
  std::size_t top = 1000;              // points simulated
  std::size_t processes = 1;           // of this rank
  std::string journal;                 // empty: none
  std::vector<sim::Machine> machines;  // the first is explored; all compare its best points
  std::string machine_arguments;       // what the user gave, for commands: " --set ddr.bandwidth_gb_s=60"
};

/// Points are simulated in batches: a later one is given up at this many times the best of those before.
inline constexpr double k_cut = 3;
inline constexpr std::size_t k_batch = 64;
/// How many of each machine's best are compared on all machines.
inline constexpr std::size_t k_compared = 12;

struct Explored {
  Candidate point;
  Measured measured;
};

/// A point on all machines.
struct Compared {
  Candidate point;
  std::string note;                // "paper's blocks", "best of mt3000-exposed"
  std::vector<double> latency_ms;  // by machine
  std::vector<std::int64_t> rank;  // among the compared, from 1
  double regret = 0;               // largest (latency / that machine's least) - 1
};

struct Exploration {
  std::int64_t legal = 0;
  std::map<std::pair<std::string, std::string>, Killed> killed;
  double rank_s = 0, simulate_s = 0;                    // host
  std::int64_t computed = 0;                            // simulated in this run
  std::size_t processes = 0;                            // of all ranks
  std::vector<Explored> points;                         // by latency, those cut last; ties by key
  std::vector<std::pair<std::string, Explored>> named;  // Space::named()
  std::vector<std::size_t> pareto;                      // of points: latency, DDR bytes, AM bytes
  struct Beside {
    Neighbour neighbour;
    std::optional<Measured> measured;
  };
  std::vector<Beside> neighbours;  // of the best
  std::vector<Compared> compared;  // by regret; empty for one machine
  std::vector<Candidate> winners;  // by machine: its best

  const Explored& best() const { return points.front(); }
  bool is_decided() const;
};

/// Nothing on the other ranks of an mpirun, which only work for rank 0.
std::optional<Exploration> explore(const ExploreRequest& request);

/// Of points by latency: those that no other matches in latency, DDR bytes and AM bytes together.
std::vector<std::size_t> pareto_front(const std::vector<Explored>& points);
/// Why one point is slower than another: the two counters that differ most, weighed in time.
std::string reason(const Explored& best, const Explored& other, const sim::MachineConfig& machine);

/// The command that runs a point again.
std::string command_of(const ExploreRequest& request, const Candidate& point, const sim::Machine& machine);

Json exploration_json(const ExploreRequest& request, const Exploration& exploration);
std::string exploration_text(const ExploreRequest& request, const Exploration& exploration);
std::string exploration_csv(const ExploreRequest& request, const Exploration& exploration);

}  // namespace mtsim::scenarios
