// SPDX-License-Identifier: Apache-2.0
#include "runtime/serving/pool_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/error.h"

namespace mtsim::runtime {
namespace {

void check_pool(const Pool& pool, std::string_view name, std::int64_t layers) {
  if (pool.tp < 1 || pool.pp < 1 || pool.dp < 1 || pool.micro_batch < 1) {
    throw RuntimeError(fmt::format("{} pool of TP {}, PP {}, DP {} with {} requests a micro-batch: each is at least 1",
                                   name, pool.tp, pool.pp, pool.dp, pool.micro_batch));
  }
  if (pool.pp > layers)
    throw RuntimeError(
        fmt::format("{} pool of {} stages for a model of {} layers: a stage has at least one", name, pool.pp, layers));
}

/// Weights and overhead of a cluster of the pool, which must fit.
ClusterMemory loaded(const Pool& pool, std::string_view name, const IterationCost& cost) {
  check_pool(pool, name, cost.layers());
  const ClusterMemory memory{cost.weight_bytes(pool.tp, pool.pp), 0, cost.overhead_bytes(), cost.memory_bytes()};
  if (memory.slack() >= 0) return memory;
  throw RuntimeError(fmt::format(
      "{} pool: a cluster of TP {} PP {} keeps {} bytes of weights and {} of overhead (eq. 16), it has {}; more "
      "stages or a wider TP leave less on each",
      name, pool.tp, pool.pp, memory.weights, memory.overhead, memory.there));
}

std::int64_t rounded_up(std::int64_t positions, std::int64_t block) {
  return block > 0 ? (positions + block - 1) / block * block : positions;
}

ClusterMemory decode_memory(const ServingPlan& plan, const IterationCost& cost, const LongestRequest& longest,
                            std::int64_t position) {
  const Pool& pool = plan.decode;
  ClusterMemory memory = loaded(pool, "decode", cost);
  const std::int64_t room = memory.slack(), requests = pool.pp * pool.micro_batch;
  constexpr std::int64_t k_unit = 4;  // keys that attention loads together
  const std::int64_t block = plan.kv.block > 0 ? plan.kv.block : plan.kv.mode == KvMode::reserve ? k_unit : k_kv_block;
  const std::int64_t one = rounded_up(longest.context, block) * position;
  if (plan.kv.mode == KvMode::reserve && requests * one > room) {
    throw RuntimeError(fmt::format(
        "decode pool: {} requests of {} positions reserve {} bytes of KV in each cluster of TP {} PP {} ({} a "
        "position), beside {} of weights and {} of overhead {} of its {} are left (eq. 16); at most {} requests fit",
        requests, longest.context, requests * one, pool.tp, pool.pp, position, memory.weights, memory.overhead, room,
        memory.there, room / one));
  }
  memory.kv = std::min(requests * one, room);
  return memory;
}

/// One micro-batch's cache must fit whatever the links do; where a second one does not, a stage waits until the first
/// has left.
void add_prefill(PlanMemory& plan_memory, const ServingPlan& plan, const IterationCost& cost,
                 const LongestRequest& longest) {
  const Pool& pool = plan.prefill;
  ClusterMemory& memory = plan_memory.prefill = loaded(pool, "prefill", cost);
  const std::int64_t room = memory.slack();
  const std::int64_t one = pool.micro_batch * longest.prompt * cost.kv_bytes_per_token(pool.tp, pool.pp);
  if (one > room) {
    throw RuntimeError(fmt::format(
        "prefill pool: {} prompts of {} tokens make {} bytes of KV in each cluster of TP {} PP {}, beside {} of "
        "weights and {} of overhead {} of its {} are left; fewer prompts a micro-batch or more stages",
        pool.micro_batch, longest.prompt, one, pool.tp, pool.pp, memory.weights, memory.overhead, room, memory.there));
  }
  plan_memory.prefill_caches = 2 * one <= room ? 2 : 1;
  memory.kv = plan_memory.prefill_caches * one;
}

}  // namespace

std::int64_t decode_positions(const ServingPlan& plan, const IterationCost& cost) {
  return loaded(plan.decode, "decode", cost).slack() / cost.kv_bytes_per_token(plan.decode.tp, plan.decode.pp);
}

PlanMemory memory_of(const ServingPlan& plan, const IterationCost& cost, const LongestRequest& longest) {
  PlanMemory memory;
  memory.position = cost.kv_bytes_per_token(plan.decode.tp, plan.decode.pp);
  memory.decode = decode_memory(plan, cost, longest, memory.position);
  memory.kv_budget = memory.decode.there - memory.decode.weights - memory.decode.overhead;
  if (plan.mode == PipelineMode::coupled) {
    if (plan.prefill.micro_batch < 1)
      throw RuntimeError(fmt::format("{} requests are prefilled together: at least 1", plan.prefill.micro_batch));
    return memory;
  }
  add_prefill(memory, plan, cost, longest);
  if (plan.buffer.clusters < 0) throw RuntimeError(fmt::format("a buffer of {} clusters", plan.buffer.clusters));
  memory.buffer = plan.buffer.clusters * (cost.memory_bytes() - cost.overhead_bytes());
  memory.buffer_clusters = plan.buffer.clusters;
  if (plan.buffer.slack) {
    memory.buffer += plan.prefill.clusters() * memory.prefill.slack() + plan.decode.clusters() * memory.decode.slack();
    memory.buffer_clusters += plan.prefill.clusters() + plan.decode.clusters();
  }
  return memory;
}

}  // namespace mtsim::runtime
