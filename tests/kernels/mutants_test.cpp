// SPDX-License-Identifier: Apache-2.0
// Seeded mistakes in the GEMM programs: each dma_wait of a core left out, each transfer and kernel given the other
// buffer of its kind, each channel replaced by one in use. The hazard monitor must find exactly what an independent
// oracle finds in the log of the same run; a mutant in which the oracle finds nothing is equivalent in its order, and
// then a run with data either gives the same bits, or it is a wrong program without a race.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/gemm_program.h"
#include "race_oracle.h"
#include "reference.h"
#include "sim/cluster.h"
#include "sim/interceptor.h"

namespace mtsim::kernels {
namespace {

constexpr std::int64_t k_cores = 3;
constexpr int k_mutated_core = 1;  // neither the first nor the last

sim::MachineConfig machine(double dma_times = 1) {
  sim::MachineConfig config = sim::Machine::load("mt3000", {fmt::format("cluster.cores={}", k_cores)}).config();
  config.dma.start_us *= dma_times;
  config.dma.broadcast_rendezvous_us *= dma_times;
  config.ddr.bandwidth_gb_s /= dma_times;
  config.cluster.gsm_bandwidth_gb_s /= dma_times;
  config.cluster.port_bandwidth_gb_s /= dma_times;
  return config;
}

sim::Cluster& fresh(const sim::ClusterOptions& options, const sim::MachineConfig& config) {
  ::setenv("MTSIM_MEMO", "off", 0);
  static sim::Cluster cluster(machine());
  cluster.reset(config, options);
  return cluster;
}

enum class Mistake { none, wait_left_out, other_buffer_filled, other_buffer_used, channel_reused };
constexpr const char* k_names[] = {"none", "wait left out", "transfer to the other buffer",
                                   "kernel on the other buffer", "channel reused"};

/// Makes the n-th mistake of one kind on one core. Without a mistake to make it counts the chances.
class Mutator : public sim::Interceptor {
 public:
  Mutator(Mistake mistake, int nth) : m_mistake(mistake), m_nth(nth) {}

  int chances(Mistake mistake) const { return m_chances[static_cast<int>(mistake)]; }
  bool made() const { return m_made; }

  bool wait(int core, int channel, bool idle) override {
    if (core != k_mutated_core) return true;
    if (!idle) m_busy.erase(channel);
    return idle || !now(Mistake::wait_left_out);  // a wait for nothing is no chance
  }
  void transfer(int core, sim::Move& move) override {
    if (core != k_mutated_core) return;
    for (sim::Pointer* side : {&move.source, &move.destination}) {
      if (side->space != sim::Space::sm && side->space != sim::Space::am) continue;
      const auto other = sibling(*side);
      if (other && now(Mistake::other_buffer_filled)) *side = *other;
    }
  }
  void channel(int core, int& channel) override {
    if (core != k_mutated_core) return;
    for (const int taken : m_busy) {
      if (taken == channel) continue;
      if (now(Mistake::channel_reused)) channel = taken;
      break;
    }
    m_busy.insert(channel);
  }
  void call(int core, std::span<sim::Argument> arguments) override {
    if (core != k_mutated_core) return;
    for (sim::Argument& argument : arguments) {
      if (!argument.is_pointer) continue;
      const auto other = sibling(argument.pointer);
      if (other && now(Mistake::other_buffer_used)) argument.pointer = *other;
    }
  }

  /// The buffers of one kind, as the plan has them: equal sizes, one behind the other from `first`.
  struct Kind {
    sim::Space space;
    std::int64_t first, bytes, count;
  };
  std::vector<Kind> kinds;

 private:
  bool now(Mistake mistake) {
    const int chance = m_chances[static_cast<int>(mistake)]++;
    if (mistake != m_mistake || chance != m_nth) return false;
    m_made = true;
    return true;
  }
  std::optional<sim::Pointer> sibling(sim::Pointer pointer) const {
    const auto offset = static_cast<std::int64_t>(pointer.offset);
    for (const Kind& kind : kinds) {
      if (kind.space != pointer.space || kind.count < 2) continue;
      const std::int64_t index = (offset - kind.first) / kind.bytes;
      if (offset < kind.first || index >= kind.count) continue;
      return pointer + ((index + 1) % kind.count - index) * kind.bytes;
    }
    return std::nullopt;
  }

  Mistake m_mistake;
  int m_nth;
  int m_chances[5] = {};
  bool m_made = false;
  std::set<int> m_busy;  // channels of raw_dma_p2p not waited for
};

/// 256-byte aligned, as the mallocs of a core.
std::int64_t aligned(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

std::vector<Mutator::Kind> kinds_of(const GemmPlan& plan, const sim::MachineConfig& config) {
  const std::int64_t bytes = bytes_of(plan.dtype), sum_bytes = bytes_of(plan.sum_type());
  const std::int64_t w = aligned(plan.tiles.k2 * plan.tiles.n2 * bytes);
  if (plan.dataflow == GemmDataflow::small_m) {
    const auto split = gemm::split_small_m(plan, config);
    const std::int64_t rows = (plan.shape.m + 5) / 6 * 6;
    return {{sim::Space::sm, 0, aligned(rows * split.x_pitch), split.x_buffers}, {sim::Space::am, 0, w, 2}};
  }
  const std::int64_t rows = (plan.m2 + 5) / 6 * 6;
  const std::int64_t sums = aligned(rows * plan.tiles.n2 * sum_bytes);
  return {{sim::Space::sm, 0, aligned(rows * plan.tiles.k2 * bytes), 2},
          {sim::Space::am, 0, w, 2},
          {sim::Space::am, 2 * w, sums, plan.y_buffers},
          {sim::Space::am, 2 * w + plan.y_buffers * sums, aligned(rows * plan.tiles.n2 * bytes), plan.y_transfers}};
}

struct Program {
  std::string name;
  GemmShape shape;
  GemmDataflow dataflow;
  GemmVariant variant;
  std::string tiles;
  DType dtype = DType::f32;
};

void write(sim::Cluster& cluster, sim::Pointer to, const std::vector<float>& values, DType dtype) {
  if (dtype == DType::f32) return cluster.write(to, std::as_bytes(std::span(values)));
  const std::vector<std::uint16_t> bits = bits_f16(values);
  cluster.write(to, std::as_bytes(std::span(bits)));
}

struct Outcome {
  std::vector<std::string> kinds;
  RaceOracle::Verdict oracle;
  std::vector<std::byte> y;
  bool died = false;  // a deadlock or fault
  bool made = false;
  std::string messages;
};

Outcome run(const Program& program, Mutator& mutator, bool with_data, double dma_times = 1, bool with_oracle = true) {
  const sim::MachineConfig config = machine(dma_times);
  RaceOracle oracle;
  sim::Cluster& cluster = fresh({.depth = with_data ? sim::Depth::functional : sim::Depth::timing,
                                 .observer = with_oracle ? &oracle : nullptr,
                                 .interceptor = &mutator},
                                config);
  const GemmPlan plan = plan_gemm(program.shape, program.dtype, parse_gemm_tiles(program.tiles, program.dtype),
                                  {program.dataflow, program.variant}, config);
  mutator.kinds = kinds_of(plan, config);
  const auto [m, n, k] = program.shape;
  const std::int64_t bytes = bytes_of(program.dtype);
  const GemmOperands operands{cluster.ddr_malloc(m * k * bytes), cluster.ddr_malloc(k * n * bytes),
                              cluster.ddr_malloc(m * n * bytes)};
  if (with_data) {
    write(cluster, operands.x, random_matrix(m, k, 1), program.dtype);
    write(cluster, operands.w, random_matrix(k, n, 2), program.dtype);
  }
  Outcome outcome;
  try {
    const sim::LaunchResult result = cluster.launch(gemm_program(cluster, plan, operands));
    for (const sim::Finding& finding : result.findings) {
      outcome.kinds.push_back(finding.kind);
      outcome.messages += finding.message + "\n";
    }
    outcome.died = result.fault.has_value();
  } catch (const sim::SimError&) {
    outcome.died = true;
  }
  outcome.made = mutator.made();
  if (with_oracle && !outcome.died) outcome.oracle = oracle.judge();
  if (with_data && !outcome.died) {
    outcome.y.resize(static_cast<std::size_t>(m * n * bytes));
    cluster.read(operands.y, outcome.y);
  }
  return outcome;
}

}  // namespace

TEST_CASE("every seeded mistake in a GEMM program is found, unless an oracle proves that it changes nothing",
          "[mutants]") {
  using enum GemmDataflow;
  using enum GemmVariant;
  const auto program = GENERATE(values<Program>({
      {"large M, best", {20, 300, 40}, large_m, best, "mg=12,kg=16,k2=8,n2=128"},
      {"large M, paper", {20, 300, 40}, large_m, paper, "mg=12,kg=16,k2=8,n2=128"},
      {"large M, paper, Y in and out", {9, 600, 18}, large_m, paper, "kg=8,k2=4,n2=128"},
      {"small M, X whole", {7, 700, 30}, small_m, best, "k2=8,n2=128"},
      {"large M, FP16 with FP32 sums", {9, 700, 80}, large_m, best, "kg=32,k2=16,n2=256,k_promote=16", DType::f16},
      {"small M, X in blocks", {150, 400, 120}, small_m, best, "k2=16,n2=128"},
  }));
  INFO(program.name);
  Mutator none(Mistake::none, 0);
  const Outcome original = run(program, none, true);
  INFO(original.messages);
  REQUIRE(original.kinds.empty());
  REQUIRE(original.oracle.clean());
  REQUIRE_FALSE(original.died);

  int found = 0, equivalent = 0, wrong_without_race = 0, died = 0;
  for (const Mistake mistake :
       {Mistake::wait_left_out, Mistake::other_buffer_filled, Mistake::other_buffer_used, Mistake::channel_reused}) {
    const int chances = none.chances(mistake);
    // All of the first turns of the loops; behind them every seventh, which comes by each place of a turn.
    for (int nth = 0; nth < chances; nth += nth < 16 ? 1 : 7) {
      Mutator mutator(mistake, nth);
      const Outcome mutant = run(program, mutator, false);
      CAPTURE(k_names[static_cast<int>(mistake)], nth, mutant.messages);
      REQUIRE(mutant.made);
      if (mutant.died) {
        ++died;
        continue;
      }
      CAPTURE(mutant.oracle.races, mutant.oracle.unknown_transfers, mutant.oracle.empty_reads);
      CHECK(mutant.kinds.empty() == mutant.oracle.clean());
      if (!mutant.kinds.empty()) {
        ++found;
        continue;
      }
      Mutator again(mistake, nth);
      const Outcome with_data = run(program, again, true, 1, false);
      CHECK(with_data.kinds.empty());
      if (with_data.y == original.y) {
        ++equivalent;
      } else {
        ++wrong_without_race;
        // No race: the wrong result is always the same. (A program that polls may take another course.)
        const bool polls = program.dataflow == large_m && program.variant == best;
        for (const double times : {0.1, 10.0}) {
          if (polls) break;
          Mutator timed(mistake, nth);
          CHECK(run(program, timed, true, times, false).y == with_data.y);
        }
        CHECK(mistake != Mistake::wait_left_out);
        CHECK(mistake != Mistake::channel_reused);
      }
    }
  }
  WARN(fmt::format("{}: {} mutants found, {} equivalent, {} wrong without a race, {} died", program.name, found,
                   equivalent, wrong_without_race, died));
  CHECK(found > 20);
}

TEST_CASE("the verdict on a mutant does not depend on how fast the DMA is", "[mutants]") {
  const Program program{
      "large M, best", {20, 300, 40}, GemmDataflow::large_m, GemmVariant::best, "mg=12,kg=16,k2=8,n2=128"};
  for (const Mistake mistake : {Mistake::none, Mistake::wait_left_out, Mistake::channel_reused}) {
    for (const int nth : {3, 10, 17}) {
      std::optional<std::vector<std::string>> first;
      for (const double times : {1.0, 0.1, 10.0}) {
        Mutator mutator(mistake, nth);
        const Outcome outcome = run(program, mutator, false, times, false);
        CAPTURE(k_names[static_cast<int>(mistake)], nth, times, outcome.messages);
        if (!first) first = outcome.kinds;
        CHECK(outcome.kinds == *first);
      }
    }
  }
}

}  // namespace mtsim::kernels
