// SPDX-License-Identifier: Apache-2.0
// Plan a0: the naive operators as a library like the other one, in values and in time.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "runtime/backend/reference_backend.h"
#include "tests/runtime/support.h"
#include "tests/support/third_party.h"

using namespace mtsim;
using namespace mtsim::runtime;
using namespace mtsim::runtime::test;

namespace {

models::RandomModel tiny_model() {
  models::RandomModel model = small_model();
  model.config.hidden_size = 64;
  model.config.intermediate_size = 76;
  model.config.head_dim = 16;
  model.config.vocab_size = 270;
  return model;
}

std::vector<std::int64_t> some_ids(std::int64_t count) {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < count; ++i) ids.push_back((7 * i + 3) % 270);
  return ids;
}

ClusterBackendOptions options_of(const ExecutionPlan& plan, kernels::DType dtype = kernels::DType::f32) {
  ClusterBackendOptions options;
  options.plan = plan;
  options.dtype = dtype;
  options.longest = 48;
  return options;
}

/// A prompt of 21 tokens and one more.
struct Times {
  IterationResult prefill, decode;
};
Times times_of(const models::LlamaConfig& config, const models::Checkpoint* checkpoint, sim::Depth depth,
               const std::string& plan) {
  ClusterBackend backend(fresh({depth, true}), config, checkpoint,
                         options_of(ExecutionPlan::named(plan), kernels::DType::f16));
  REQUIRE(backend.begin(0, 22));
  const Times times{backend.run({{{0, std::vector<std::int32_t>(21, 5)}}}), backend.run({{{0, {6}}}})};
  for (const auto* result : {&times.prefill, &times.decode}) {
    for (const sim::Finding& finding : result->findings) FAIL(finding.message);
  }
  return times;
}

}  // namespace

TEST_CASE("naive operators give the logits of the reference, prompt, context and blocks of a cache") {
  models::RandomModel model = tiny_model();
  model.config.qkv_bias = GENERATE(false, true);
  const Folder folder;
  const models::Checkpoint checkpoint = make_model(folder, model);
  ReferenceBackend reference(checkpoint);
  const std::vector<std::int64_t> ids = some_ids(21);
  const std::vector<float> expected = logits_of(reference, ids, 21);
  ClusterBackendOptions options = options_of(ExecutionPlan::named("a0"));
  options.kv = parse_kv_options("paged(8)");
  ClusterBackend backend(fresh({sim::Depth::functional, true}), checkpoint.config(), &checkpoint, options);
  CHECK(largest_difference(logits_of(backend, ids, 10), expected) < 1e-4);  // 10, 10, 1
}

TEST_CASE("naive operators give the logits of stories260K: pairs side by side, heads of 8 padded", "[data]") {
  const auto file = mtsim::test::test_data("stories260K/stories260K.gguf");
  if (!file) return;
  const models::Checkpoint checkpoint = models::Checkpoint::open(*file);
  REQUIRE(checkpoint.config().rope_pairs == models::RopePairs::interleaved);
  REQUIRE(checkpoint.config().head_dim == 8);
  ReferenceBackend reference(checkpoint);
  const std::vector<std::int64_t> ids = some_ids(12);
  const std::vector<float> expected = logits_of(reference, ids, 12);
  ClusterBackend backend(fresh({sim::Depth::functional, true}), checkpoint.config(), &checkpoint,
                         options_of(ExecutionPlan::named("a0")));
  CHECK(largest_difference(logits_of(backend, ids, 11), expected) < 1e-4);  // 11, 1
}

TEST_CASE("sequences of one batch do not see each other in naive attention") {
  const Folder folder;
  const models::Checkpoint checkpoint = make_model(folder, tiny_model());
  const std::vector<std::int64_t> a = some_ids(6), b = some_ids(9);
  ReferenceBackend reference(checkpoint);
  const std::vector<float> alone_a = logits_of(reference, a, 6), alone_b = logits_of(reference, b, 9);
  ClusterBackend backend(fresh({sim::Depth::functional, true}), checkpoint.config(), &checkpoint,
                         options_of(ExecutionPlan::named("a0")));
  REQUIRE(backend.begin(0, 6));
  REQUIRE(backend.begin(1, 9));
  backend.run({{{0, {a.begin(), a.end() - 1}}}});
  const IterationResult both = backend.run({{{1, {b.begin(), b.end()}}, {0, {static_cast<std::int32_t>(a.back())}}}});
  REQUIRE(both.logits_rows == 2);
  const std::span all(both.logits);
  CHECK(largest_difference(all.first(270), std::span(alone_b).last(270)) < 1e-4);
  CHECK(largest_difference(all.last(270), std::span(alone_a).last(270)) < 1e-4);
}

TEST_CASE("the naive library is slower than the other, which is slower than the unified kernel") {
  const models::LlamaConfig config = tiny_model().config;
  std::map<std::string, Times> times;
  for (const char* plan : {"a0", "a1", "a2"}) times[plan] = times_of(config, nullptr, sim::Depth::timing, plan);
  CHECK(times["a0"].prefill.cycles > times["a1"].prefill.cycles);
  CHECK(times["a1"].prefill.cycles > times["a2"].prefill.cycles);
  CHECK(times["a0"].decode.cycles > times["a1"].decode.cycles);
  CHECK(times["a1"].decode.cycles > times["a2"].decode.cycles);
}

TEST_CASE("naive operators take the same cycles with values and without, operator by operator") {
  const Folder folder;
  const models::Checkpoint checkpoint = make_model(folder, tiny_model());
  const Times with = times_of(checkpoint.config(), &checkpoint, sim::Depth::functional, "a0");
  const Times without = times_of(checkpoint.config(), nullptr, sim::Depth::timing, "a0");
  for (const auto& [a, b] : {std::pair{&with.prefill, &without.prefill}, std::pair{&with.decode, &without.decode}}) {
    CHECK(a->cycles == b->cycles);
    REQUIRE(a->operators.size() == b->operators.size());
    std::int64_t sum = a->launch_cycles;
    for (std::size_t i = 0; i < a->operators.size(); ++i) {
      CAPTURE(a->operators[i].name);
      CHECK(a->operators[i].cycles == b->operators[i].cycles);
      sum += a->operators[i].cycles;
    }
    CHECK(sum == a->cycles);
  }
  // Q K^T, mask, softmax, values of each of 4 heads; the mask only where there is something to hide.
  for (const OperatorTime& op : with.prefill.operators) {
    if (op.name == "layers.1.attention") CHECK(op.launches == 16);
  }
  for (const OperatorTime& op : with.decode.operators) {
    if (op.name == "layers.1.attention") CHECK(op.launches == 12);
  }
}

TEST_CASE("what a plan fuses, the naive library computes one behind the other: the same bits") {
  const Folder folder;
  models::RandomModel model = tiny_model();  // so wide that heads are whole in a core's columns
  model.config.layers = 1;
  model.config.heads = 32;
  model.config.head_dim = 64;
  const models::Checkpoint checkpoint = make_model(folder, model);
  const std::vector<std::int64_t> ids = some_ids(3);
  ExecutionPlan plan = ExecutionPlan::named("a0");
  ClusterBackend apart(fresh({sim::Depth::functional, true}), checkpoint.config(), &checkpoint, options_of(plan));
  const std::vector<float> expected = logits_of(apart, ids, 3);
  plan.fusion = true;
  plan.launches = Launches::per_graph;
  ClusterBackend fused(fresh({sim::Depth::functional, true}), checkpoint.config(), &checkpoint, options_of(plan));
  CHECK(logits_of(fused, ids, 3) == expected);
  REQUIRE(fused.begin(0, 1));
  const IterationResult result = fused.run({{{0, {5}}}});
  const auto runs = [&](const char* kernel) {
    return std::any_of(result.operators.begin(), result.operators.end(),
                       [&](const OperatorTime& op) { return op.kernel == kernel; });
  };
  CHECK(runs("add naive, rmsnorm naive"));
  CHECK(runs("gemm naive, rope naive"));
}
