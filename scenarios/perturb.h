// SPDX-License-Identifier: Apache-2.0
// How far the uncertain numbers of a machine carry: a scenario run on machines drawn from the plausible ranges of all
// of them at once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "scenarios/scenario.h"
#include "sim/config/machine.h"

namespace mtsim::scenarios {

/// 5th to 95th percentile of the samples, with the nearest of them: of 20 the least and the most.
struct Band {
  double low = 0, median = 0, high = 0;
};

struct Perturbation {
  std::int64_t samples = 0;
  std::uint64_t seed = 0;
  std::vector<sim::MachineNumber> drawn;           // each uniform in its range
  std::vector<std::map<std::string, Band>> bands;  // of each cell, by metric
};

/// The band of some values.
Band band_of(std::vector<double> values);

/// What a run depends on: one cluster, the links between clusters and their hosts as well, or those alone.
enum class Uncertain : std::uint8_t { cluster, system, between };

/// Numbers that are drawn: those with a range that decide how long things take. Sizes and flags are other machines, and
/// what --set or a file asks for is no longer uncertain.
std::vector<sim::MachineNumber> uncertain_numbers(const sim::Machine& machine, Uncertain what = Uncertain::cluster);

/// Sample `index` of `seed`, the same on every host.
sim::Machine draw_machine(const sim::Machine& machine, std::uint64_t seed, std::size_t index,
                          Uncertain what = Uncertain::cluster);

/// Runs the scenario's first variant once a sample, over the host's cores. UsageError for a machine that knows no
/// ranges.
Perturbation perturb(const Scenario& scenario, const sim::Machine& machine, std::int64_t samples, std::uint64_t seed,
                     const std::function<void()>& on_sample = {});

}  // namespace mtsim::scenarios
