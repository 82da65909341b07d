// SPDX-License-Identifier: Apache-2.0
// Values through the pools: prefill on one cluster, caches kept on another, decode on a group of two.
#include <vector>

#include "runtime/generation.h"
#include "runtime/serving/backend_executor.h"
#include "runtime/serving/serve.h"
#include "tests/runtime/fake_cost.h"
#include "tests/runtime/support.h"
#include "tests/support/third_party.h"

using namespace mtsim;
using namespace mtsim::runtime;
using namespace mtsim::runtime::test;

namespace {

constexpr std::int64_t k_longest = 64;

StageOptions options() {
  StageOptions result;
  result.dtype = kernels::DType::f32;  // the order of a group's sums does not change which logit is largest
  result.longest = k_longest;
  result.kv.mode = KvMode::paged;
  result.kv.block = 16;
  return result;
}

/// Ragged prompts that arrive one after the other.
Workload ragged(std::int64_t vocab) {
  Workload workload;
  for (const std::int64_t tokens : {5, 1, 9, 3}) {
    const std::int64_t id = std::ssize(workload);
    Request request{id, 0.01 * static_cast<double>(id), tokens, 8 - id % 2};
    for (std::int64_t i = 0; i < tokens; ++i)
      request.ids.push_back(static_cast<std::int32_t>(i == 0 ? 1 : 3 + (i * 37 + id * 101) % (vocab - 3)));
    workload.push_back(request);
  }
  return workload;
}

/// What one cluster makes of each request alone.
std::vector<std::vector<std::int32_t>> alone(const models::Checkpoint& checkpoint, const Workload& workload) {
  ClusterBackendOptions single;
  static_cast<StageOptions&>(single) = options();
  ClusterBackend backend(*fresh_clusters(1, {.hazards = false})[0], checkpoint.config(), &checkpoint, single);
  std::vector<std::vector<std::int32_t>> result;
  for (const Request& request : workload) {
    GenerationOptions how;
    how.tokens = request.output_tokens;
    const std::vector<std::int64_t> prompt(request.ids.begin(), request.ids.end());
    const Generation text = generate(backend, prompt, how);
    result.emplace_back(text.ids.begin(), text.ids.end());
  }
  return result;
}

struct Served {
  std::vector<std::vector<std::int32_t>> ids;
  ServingResult result;
};

/// `positions`: room for so many in a cluster. A decode cluster has half of each.
Served served(const models::Checkpoint& checkpoint, const Workload& workload, PipelineMode mode, std::int64_t seats,
              std::int64_t positions) {
  const auto clusters = fresh_clusters(k_clusters, {.hazards = false});
  Transport transport(k_clusters);
  ParallelBackend prefill({clusters[0]}, checkpoint.config(), &checkpoint, options(), {1, 1}, transport, 0);
  ParallelBackend buffer({clusters[1]}, checkpoint.config(), &checkpoint, options(), {1, 1}, transport, 1);
  ParallelBackend decode({clusters[2], clusters[3]}, checkpoint.config(), &checkpoint, options(), {2, 1}, transport, 2);
  BackendExecutor executor(
      {{{PoolKind::prefill, 0}, &prefill}, {{PoolKind::buffer, 0}, &buffer}, {{PoolKind::decode, 0}, &decode}});
  FakeCost cost;
  cost.layer_s = 0.002;
  cost.weights = 0;
  cost.memory = positions * cost.position;
  cost.latency_s = 0.001;
  cost.host_iteration_s = 0.05;  // between iterations: those of decode, which wait for it, last longest
  ServingPlan plan;
  plan.mode = mode;
  plan.coupled_batch = CoupledBatch::continuous;
  plan.prefill = {1, 1, 1, 1};
  plan.buffer = {1, false};
  plan.decode = {2, 1, 1, seats};
  plan.kv = {KvMode::paged, 4, 0};
  ServeOptions how;
  how.context = k_longest;
  how.executor = &executor;
  Served done{{}, serve(plan, workload, cost, how)};
  for (const RequestRecord& request : done.result.requests) done.ids.push_back(request.ids);
  return done;
}

void check(const models::Checkpoint& checkpoint) {
  const Workload workload = ragged(checkpoint.config().vocab_size);
  const auto expected = alone(checkpoint, workload);
  const Served bounded = served(checkpoint, workload, PipelineMode::bounded, 2, 100);
  CHECK(bounded.ids == expected);
  CHECK(bounded.result.peak_buffer_bytes > 0);  // some waited there
  CHECK(served(checkpoint, workload, PipelineMode::coupled, 2, 100).ids == expected);
  const Served tight = served(checkpoint, workload, PipelineMode::bounded, 4, 16);
  CHECK(tight.ids == expected);
  CHECK(tight.result.preemptions > 0);
}

}  // namespace

TEST_CASE("requests through pools get the ids that one cluster gives each of them alone", "[serving]") {
  const Folder folder;
  check(make_model(folder, small_model()));
}

TEST_CASE("ragged prompts of stories260K through pools get the ids of one cluster", "[serving][data]") {
  const auto path = mtsim::test::test_data("stories260K");
  if (!path) return;
  check(models::Checkpoint::open(*path + "/stories260K.bin"));
}
