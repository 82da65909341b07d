// SPDX-License-Identifier: Apache-2.0
// Seeded mistakes in the buffered programs: each dma_wait of a core left out or made for another channel, each transfer
// and kernel given another buffer of its kind, each channel replaced by one in use. The hazard monitor must find
// exactly what an independent oracle finds in the log of the same run; a mutant in which the oracle finds nothing is
// equivalent in its order, and then a run with data either gives the same bits, or it is a wrong program without a
// race.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "mutant_programs.h"
#include "mutator.h"
#include "race_oracle.h"
#include "sim/cluster.h"

namespace mtsim::kernels {
namespace {

sim::Cluster& fresh(const sim::ClusterOptions& options, double dma_times) {
  ::setenv("MTSIM_MEMO", "off", 0);
  static sim::Cluster cluster(mutant_machine());
  cluster.reset(mutant_machine(dma_times), options);
  return cluster;
}

struct Outcome {
  std::vector<std::string> kinds;  // of findings
  RaceOracle::Verdict oracle;
  std::vector<std::byte> y;
  bool died = false;  // a deadlock or fault
  std::string messages;
  bool same_verdict(const Outcome& other) const { return died == other.died && kinds == other.kinds; }
};

struct Look {
  bool at_data = false;  // functional depth
  double dma_times = 1;
  bool with_oracle = true;
};

Outcome run(const MutantProgram& program, Mutator& mutator, const Look& look) {
  RaceOracle oracle(program.facts);
  sim::Cluster& cluster = fresh({.depth = look.at_data ? sim::Depth::functional : sim::Depth::timing,
                                 .observer = look.with_oracle ? &oracle : nullptr,
                                 .interceptor = &mutator},
                                look.dma_times);
  const Prepared prepared = program.prepare(cluster);
  Outcome outcome;
  try {
    const sim::LaunchResult result = cluster.launch(prepared.program);
    for (const sim::Finding& finding : result.findings) {
      outcome.kinds.push_back(finding.kind);
      outcome.messages += finding.message + "\n";
    }
    outcome.died = result.fault.has_value();
  } catch (const sim::SimError& error) {
    outcome.died = true;
    outcome.messages = error.what();
  }
  if (outcome.died) return outcome;
  if (look.with_oracle) outcome.oracle = oracle.judge();
  if (look.at_data) {
    outcome.y.resize(static_cast<std::size_t>(prepared.y_bytes));
    cluster.read(prepared.y, outcome.y);
  }
  return outcome;
}

/// How the mutants of one program ended.
struct Tally {
  int found = 0, equivalent = 0, wrong_without_race = 0, died = 0;
};

/// Nothing was found: then no order is missing, and the run with data shows what the mistake did.
void check_silent(const MutantProgram& program, Mistake mistake, const Chance& chance,
                  const std::vector<std::byte>& right, Tally& tally) {
  Mutator again(program.core, mistake, chance);
  const Outcome with_data = run(program, again, {.at_data = true, .with_oracle = false});
  CHECK(with_data.kinds.empty());
  if (with_data.y == right) {
    ++tally.equivalent;
    return;
  }
  ++tally.wrong_without_race;
  // No race: the wrong result is always the same. (A program that polls may take another course.)
  for (const double times : {0.1, 10.0}) {
    if (program.polls) break;
    Mutator timed(program.core, mistake, chance);
    CHECK(run(program, timed, {.at_data = true, .dma_times = times, .with_oracle = false}).y == with_data.y);
  }
  CHECK((mistake == Mistake::other_buffer_filled || mistake == Mistake::other_buffer_used));
}

void check_mutant(const MutantProgram& program, Mistake mistake, const Chance& chance,
                  const std::vector<std::byte>& right, Tally& tally) {
  Mutator mutator(program.core, mistake, chance);
  const Outcome mutant = run(program, mutator, {});
  CAPTURE(to_string(mistake), chance.str(), mutant.messages);
  REQUIRE(mutator.made());
  if (mutant.died) {
    ++tally.died;
    return;
  }
  CAPTURE(mutant.oracle.races, mutant.oracle.unknown_transfers, mutant.oracle.empty_reads, mutant.oracle.partial_reads);
  // Whether a result depends on the part of an input that holds nothing the oracle cannot say.
  if (!mutant.oracle.clean()) CHECK_FALSE(mutant.kinds.empty());
  if (mutant.oracle.clean() && mutant.oracle.partial_reads == 0) CHECK(mutant.kinds.empty());
  if (mutant.kinds.empty()) {
    check_silent(program, mistake, chance, right, tally);
  } else {
    ++tally.found;
  }
}

}  // namespace

TEST_CASE("every seeded mistake in a buffered program is found, unless an oracle proves that it changes nothing",
          "[mutants]") {
  const MutantProgram& program = GENERATE(from_range(mutant_programs()));
  INFO(program.name);
  Mutator none(program.core);
  const Outcome original = run(program, none, {.at_data = true});
  INFO(original.messages);
  REQUIRE_FALSE(original.died);
  REQUIRE(original.kinds.empty());
  REQUIRE(original.oracle.clean());

  Mutator chances(program.core);
  REQUIRE(run(program, chances, {}).kinds.empty());
  Tally tally;
  for (const Mistake mistake : k_mistakes) {
    for (const Chance& chance : chances.sample(mistake)) check_mutant(program, mistake, chance, original.y, tally);
  }
  WARN(fmt::format("{}: {} mutants found, {} equivalent, {} wrong without a race, {} died", program.name, tally.found,
                   tally.equivalent, tally.wrong_without_race, tally.died));
  CHECK(tally.found > 10);
  CHECK(tally.found > tally.equivalent + tally.wrong_without_race + tally.died);
}

TEST_CASE("the verdict on a mutant does not depend on how fast the DMA is", "[mutants]") {
  const MutantProgram& program = GENERATE(from_range(mutant_programs()));
  INFO(program.name);
  Mutator chances(program.core);
  REQUIRE(run(program, chances, {.with_oracle = false}).kinds.empty());
  for (const double times : {0.1, 10.0}) {
    Mutator none(program.core);
    CHECK(run(program, none, {.dma_times = times, .with_oracle = false}).kinds.empty());
  }
  for (const Mistake mistake : k_mistakes) {
    const std::vector<Chance> sample = chances.sample(mistake);
    for (std::size_t i = 0; i < sample.size(); i += 3) {
      Mutator mutator(program.core, mistake, sample[i]);
      const Outcome outcome = run(program, mutator, {.with_oracle = false});
      for (const double times : {0.1, 10.0}) {
        Mutator timed(program.core, mistake, sample[i]);
        const Outcome other = run(program, timed, {.dma_times = times, .with_oracle = false});
        CAPTURE(to_string(mistake), sample[i].str(), times, outcome.messages, other.messages);
        CHECK(outcome.same_verdict(other));
      }
    }
  }
}

}  // namespace mtsim::kernels
