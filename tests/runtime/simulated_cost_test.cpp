// SPDX-License-Identifier: Apache-2.0
// What a stage is said to take against the same stage simulated in full.
#include "runtime/serving/simulated_cost.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "runtime/backend/parallel_backend.h"
#include "runtime/error.h"
#include "runtime/serving/serve.h"
#include "tests/runtime/support.h"

using namespace mtsim;
using namespace mtsim::runtime;
using namespace mtsim::runtime::test;
using Batch = std::vector<models::SequenceStep>;

namespace {

const sim::Machine& whole_machine() {
  static const sim::Machine loaded = sim::Machine::load("mt3000");
  return loaded;
}

/// Five layers of a model that has a bit of everything: GQA, heads of 64.
models::LlamaConfig five_layers() {
  models::LlamaConfig config = small_model().config;
  config.name = "five layers";
  config.layers = 5;
  config.hidden_size = 512;
  config.intermediate_size = 1024;
  config.heads = 8;
  config.kv_heads = 4;
  config.head_dim = 64;
  config.max_positions = 4096;
  return config;
}

sim::Cluster& timing_cluster() { return fresh({.depth = sim::Depth::timing}); }

/// Seconds of the whole iteration over stages of groups, simulated layer by layer, but without what passes between
/// the stages.
double in_full(const models::LlamaConfig& config, const Parallelism& parallelism, const Batch& batch,
               const ExecutionPlan& plan) {
  const sim::LinkModel links(machine());
  std::vector<int> group;
  for (int i = 0; i < parallelism.tp; ++i) group.push_back(i);
  double cycles = 0;
  for (std::int64_t number = 0; number < parallelism.pp; ++number) {
    StageOptions options;
    options.plan = plan;
    options.longest = 600;
    options.kv = {KvMode::paged, 1024, std::ssize(batch)};
    const auto part = models::ModelPart::stage(config, parallelism.pp, number, parallelism.tp, 0);
    ClusterStage stage(timing_cluster(), config, part, nullptr, options);
    Iteration iteration;
    std::int64_t rows = 0;
    for (const models::SequenceStep& step : batch) {
      REQUIRE(stage.begin(rows, step.context + step.tokens));
      REQUIRE(stage.set_length(rows, step.context));
      iteration.sequences.push_back({rows++, std::vector<std::int32_t>(static_cast<std::size_t>(step.tokens), 0)});
    }
    ClusterStage::Run run = stage.start(iteration);
    while (const PartialSums* sums = run.advance())
      cycles += static_cast<double>(links.exchange_cycles(sums->bytes, group));
    cycles += static_cast<double>(run.finish().cycles);
    if (part.head) cycles += static_cast<double>(links.gather_cycles(rows * part.head_rows(config) * 2, group));
  }
  return cycles / (machine().core.clock_ghz * 1e9);
}

double by_cost(SimulatedCost& cost, const Parallelism& parallelism, const Batch& batch) {
  double sum = 0;
  for (std::int64_t stage = 0; stage < parallelism.pp; ++stage)
    sum += cost.stage({parallelism.tp, parallelism.pp, stage}, batch).busy_s();
  return sum;
}

SimulatedCostOptions options(const char* plan) {
  SimulatedCostOptions result;
  result.plan = ExecutionPlan::named(plan);
  result.context = 4096;
  return result;
}

}  // namespace

TEST_CASE("a stage takes to the cycle what all its layers simulated one by one take", "[serving][cost]") {
  const models::LlamaConfig config = five_layers();
  for (const char* plan : {"a1", "a2"}) {
    SimulatedCost cost(timing_cluster(), whole_machine(), config, options(plan));
    for (const Batch& batch : {Batch{{100, 0}}, Batch{{33, 0}, {64, 0}}, Batch(5, {1, 255})}) {
      for (const Parallelism parallelism :
           {Parallelism{1, 1}, Parallelism{2, 1}, Parallelism{1, 3}, Parallelism{4, 2}}) {
        INFO(plan << " " << parallelism.str() << " " << batch.size());
        const double full = in_full(config, parallelism, batch, ExecutionPlan::named(plan));
        CHECK(by_cost(cost, parallelism, batch) == Approx(full).epsilon(1e-9));
      }
    }
  }
}

TEST_CASE("ragged batches are off by 1 % at most where they are interpolated, and it says by how much",
          "[serving][cost]") {
  const models::LlamaConfig config = five_layers();
  SimulatedCost cost(timing_cluster(), whole_machine(), config, options("a2"));
  std::mt19937 random(7);
  const auto from = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(high - low + 1));
  };
  double worst = 0;
  for (int i = 0; i < 12; ++i) {
    Batch batch;
    const bool is_prefill = i % 2 == 0;
    for (std::int64_t n = is_prefill ? 1 : from(2, 24); n > 0; --n)
      batch.push_back(is_prefill ? models::SequenceStep{from(2, 590), 0} : models::SequenceStep{1, from(20, 590)});
    const double guess = by_cost(cost, {1, 1}, batch);
    const double full = in_full(config, {1, 1}, batch, ExecutionPlan::named("a2"));
    worst = std::max(worst, std::abs(guess / full - 1));
  }
  CHECK(worst <= 0.01);
  const InterpolationError error = cost.error();
  CHECK(error.sampled >= 3);
  CHECK(error.interpolated > error.sampled);
  CHECK(error.worst_percent <= SimulatedCost::k_most_error_percent);
  CHECK(error.mean_percent <= error.worst_percent);
  CHECK_FALSE(error.worst_batch.empty());
}

TEST_CASE("what one plan had simulated the next one does not simulate again", "[serving][cost]") {
  const models::LlamaConfig config = five_layers();
  const Batch batch(3, {1, 511});
  SimulatedCost first(timing_cluster(), whole_machine(), config, options("a2"));
  first.stage({1, 1, 0}, batch);
  const std::int64_t before = first.simulations();
  SimulatedCost second(timing_cluster(), whole_machine(), config, options("a2"));
  second.stage({1, 5, 3}, batch);
  CHECK(second.simulations() == before);
  sim::Machine faster = whole_machine();
  faster.set("ddr.bandwidth_gb_s", "62.8");
  SimulatedCost other(timing_cluster(), faster, config, options("a2"));
  CHECK(other.simulations() == 0);
  CHECK(other.stage({1, 1, 0}, batch).busy_s() < first.stage({1, 1, 0}, batch).busy_s());
}

TEST_CASE("bytes are those of eqs. (12) to (16)", "[serving][cost]") {
  const models::LlamaConfig config = models::load_config("Llama-2-7B");
  SimulatedCost cost(timing_cluster(), whole_machine(), config, {});
  CHECK(cost.kv_bytes_per_token(1, 1) == 524288);
  CHECK(cost.kv_bytes_per_token(2, 2) == 131072);
  CHECK(cost.kv_bytes_per_token(1, 5) == 524288 / 32 * 7);  // 32 layers over 5 stages: 7 in the first
  CHECK(cost.weight_bytes(1, 1) == Approx(2.0 * static_cast<double>(config.parameters())).epsilon(0.001));
  CHECK(cost.weight_bytes(2, 1) == Approx(static_cast<double>(cost.weight_bytes(1, 1)) / 2).epsilon(0.03));
  CHECK(cost.activation_bytes_per_token() == 8192);
  CHECK(cost.message_s(1'000'000'000, true) == Approx(0.1).epsilon(0.01));
  CHECK(cost.message_s(1'000'000'000, false) == Approx(0.2).epsilon(0.01));
}
