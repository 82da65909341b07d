// SPDX-License-Identifier: Apache-2.0
// A model over several clusters against the same model on one: logits, time, caches that move.
#include "runtime/backend/parallel_backend.h"

#include <array>
#include <vector>

#include "models/error.h"
#include "tests/runtime/support.h"

using namespace mtsim;
using namespace mtsim::runtime;
using namespace mtsim::runtime::test;

namespace {

models::RandomModel four_layers() {
  models::RandomModel model = small_model();
  model.config.layers = 4;
  return model;
}

const std::vector<std::int64_t> k_ids = {1, 17, 250, 3, 99, 42, 7, 128, 5, 61, 200};

StageOptions options_of(kernels::DType dtype) {
  StageOptions options;
  options.dtype = dtype;
  options.longest = 64;
  return options;
}

std::vector<float> single(const models::Checkpoint& checkpoint, kernels::DType dtype) {
  ClusterBackendOptions options;
  static_cast<StageOptions&>(options) = options_of(dtype);
  ClusterBackend backend(*fresh_clusters(1, {})[0], checkpoint.config(), &checkpoint, options);
  return logits_of(backend, k_ids, 4);
}

std::vector<float> over(const models::Checkpoint& checkpoint, kernels::DType dtype, const Parallelism& parallelism) {
  Transport transport(k_clusters);
  ParallelBackend backend(fresh_clusters(static_cast<std::size_t>(parallelism.clusters()), {}), checkpoint.config(),
                          &checkpoint, options_of(dtype), parallelism, transport);
  return logits_of(backend, k_ids, 4);
}

}  // namespace

TEST_CASE("pipeline stages compute bit for bit what one cluster does", "[parallel]") {
  const Folder folder;
  const models::Checkpoint checkpoint = make_model(folder, four_layers());
  for (const kernels::DType dtype : {kernels::DType::f32, kernels::DType::f16}) {
    CHECK(over(checkpoint, dtype, {1, 2}) == single(checkpoint, dtype));
    CHECK(over(checkpoint, dtype, {1, 3}) == single(checkpoint, dtype));  // 2, 1 and 1 layers
  }
}

TEST_CASE("a tensor-parallel group is off by its rounding alone", "[parallel]") {
  const Folder folder;
  const models::Checkpoint checkpoint = make_model(folder, four_layers());
  for (const kernels::DType dtype : {kernels::DType::f32, kernels::DType::f16}) {
    const std::vector<float> one = single(checkpoint, dtype);
    for (const Parallelism parallelism : {Parallelism{2, 1}, Parallelism{2, 2}}) {
      const std::vector<float> many = over(checkpoint, dtype, parallelism);
      REQUIRE(many.size() == one.size());
      // Two results that are each off by so much at most.
      CHECK(largest_difference(many, one) <= 2 * rounding_bound(checkpoint.config(), dtype, one));
      CHECK(largest_difference(many, one) > 0);  // sums have another order: the shares are really shares
    }
  }
}

TEST_CASE("biases count once, whatever the group", "[parallel]") {
  models::RandomModel model = four_layers();
  model.config.qkv_bias = true;
  const Folder folder;
  const models::Checkpoint checkpoint = make_model(folder, model);
  const std::vector<float> one = single(checkpoint, kernels::DType::f32);
  CHECK(largest_difference(over(checkpoint, kernels::DType::f32, {2, 1}), one) <=
        2 * rounding_bound(checkpoint.config(), kernels::DType::f32, one));

  // One of O is added to the sum, not to each part.
  models::LlamaConfig config = small_model().config;
  config.o_bias = true;
  const models::Graph graph =
      models::llama_graph(config, {{{3, 0}}, false}, models::ModelPart::stage(config, 1, 0, 2, 1));
  const models::GraphEdges edges(graph);
  int biases = 0;
  for (const models::Node& node : graph.nodes) {
    if (node.kind != models::NodeKind::bias) continue;
    ++biases;
    const int maker = edges.producer[static_cast<std::size_t>(node.inputs.front())];
    CHECK(graph.nodes[static_cast<std::size_t>(maker)].kind == models::NodeKind::all_reduce);
  }
  CHECK(biases == config.layers);
}

TEST_CASE("values take no part in the time of a parallel iteration", "[parallel]") {
  const Folder folder;
  const models::Checkpoint checkpoint = make_model(folder, four_layers());
  const Parallelism parallelism{2, 2};
  std::vector<IterationResult> results;
  for (const sim::Depth depth : {sim::Depth::functional, sim::Depth::timing}) {
    Transport transport(k_clusters);
    ParallelBackend backend(fresh_clusters(4, {.depth = depth}), checkpoint.config(),
                            depth == sim::Depth::functional ? &checkpoint : nullptr, options_of(kernels::DType::f16),
                            parallelism, transport);
    REQUIRE(backend.begin(0, 32));
    results.push_back(backend.run({{{0, {1, 2, 3, 4, 5}}}, false}));
    results.push_back(backend.run({{{0, {6}}}, false}));
    CHECK(backend.length(0) == 6);
    CHECK((backend.executed_packets() > 0) == (depth == sim::Depth::functional));
  }
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(results[i].cycles == results[i + 2].cycles);
    CHECK(results[i].comm_cycles == results[i + 2].comm_cycles);
    std::int64_t sum = results[i].launch_cycles + results[i].comm_cycles;
    for (const OperatorTime& one : results[i].operators) sum += one.cycles;
    CHECK(sum == results[i].cycles);
    CHECK(results[i].launches == 2 * (2 * 2 + 1));  // two sums in each of two layers of a stage, and the rest (eq. 19)
    CHECK(results[i + 2].logits.empty());
  }
  // Two sums in each of four layers, one message between the stages, one exchange of logits.
  const sim::LinkModel links(machine());
  const std::array<int, 2> pair{0, 1};
  CHECK(results[1].comm_cycles == 8 * links.exchange_cycles(128 * 2, pair) + links.message_cycles(128 * 2, true) +
                                      links.gather_cycles(150 * 2, pair));
}

TEST_CASE("a cache moves between pools that are cut differently", "[parallel]") {
  const Folder folder;
  const models::Checkpoint checkpoint = make_model(folder, four_layers());
  const StageOptions options = options_of(kernels::DType::f32);
  const std::vector<sim::Cluster*> clusters = fresh_clusters(4, {});
  Transport transport(k_clusters);
  StageOptions paged = options;
  paged.kv = parse_kv_options("paged(8)");
  ParallelBackend prefill({clusters[0], clusters[1]}, checkpoint.config(), &checkpoint, options, {1, 2}, transport);
  ParallelBackend decode({clusters[2], clusters[3]}, checkpoint.config(), &checkpoint, paged, {2, 1}, transport, 2);
  REQUIRE(prefill.begin(5, 40));
  REQUIRE(decode.begin(5, 40));
  std::vector<std::int32_t> ids(k_ids.begin(), k_ids.end());
  prefill.run({{{5, ids}}, false});
  REQUIRE(decode.take_cache(prefill, 5));
  CHECK(decode.length(5) == std::ssize(ids));
  const IterationResult here = prefill.run({{{5, {77}}}, false}), there = decode.run({{{5, {77}}}, false});
  CHECK(largest_difference(here.logits, there.logits) <=
        2 * rounding_bound(checkpoint.config(), kernels::DType::f32, here.logits));
}

TEST_CASE("a model that a group does not divide is refused with the numbers", "[parallel]") {
  const models::LlamaConfig config = small_model().config;
  Transport transport(k_clusters);
  const auto refusal = [&](const Parallelism& parallelism) {
    try {
      ParallelBackend backend(
          fresh_clusters(static_cast<std::size_t>(parallelism.clusters()), {.depth = sim::Depth::timing}), config,
          nullptr, options_of(kernels::DType::f16), parallelism, transport);
    } catch (const models::ModelError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refusal({4, 1}).find("2 KV heads, no multiple") != std::string::npos);
  CHECK(refusal({3, 1}).find("4 heads, no multiple") != std::string::npos);
  CHECK(refusal({1, 3}).find("3 pipeline stages") != std::string::npos);
}

TEST_CASE("a plan names its execution and its clusters, each once", "[parallel]") {
  const InferencePlan plan = InferencePlan::parse("a1,pp=3,tp=2");
  CHECK(plan.execution.name == "a1");
  CHECK(plan.parallelism.str() == "tp=2,pp=3");
  CHECK(InferencePlan::parse("tp=4").execution.name == "a2");
  for (const char* wrong : {"", "tp=0", "tp=x", "tp=2,tp=2", "a2,a1", "a2,", "tp=-1", "pp=99999999999999999999"})
    CHECK_FALSE(error_of([&] { InferencePlan::parse(wrong); }).empty());
}
