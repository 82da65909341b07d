// SPDX-License-Identifier: Apache-2.0
// What a backend on a cluster promises whatever the model: plans, caches, batches and depths give the same, times add
// up, and what cannot run is refused.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "runtime/backend/reference_backend.h"
#include "tests/runtime/support.h"

using namespace mtsim;
using namespace mtsim::runtime;
using namespace mtsim::runtime::test;

namespace {

using Ids = std::vector<std::int64_t>;

Ids prompt(std::int64_t count, std::int64_t seed = 3) {
  Ids ids;
  for (std::int64_t i = 0; i < count; ++i) ids.push_back((7 * i + 11 * seed) % 300);
  return ids;
}

ClusterBackendOptions f32(const std::string& plan = "a2") {
  ClusterBackendOptions options;
  options.dtype = kernels::DType::f32;
  options.plan = ExecutionPlan::named(plan);
  options.longest = 96;
  options.kv.block = 96;  // of eight sequences or so; without a limit the DDR holds thousands
  return options;
}

/// The model of all these tests, written once.
const models::Checkpoint& model() {
  static const Folder folder;
  static const models::Checkpoint checkpoint = make_model(folder, small_model());
  return checkpoint;
}

std::vector<float> logits_on_cluster(const ClusterBackendOptions& options, const Ids& ids, std::int64_t chunk) {
  ClusterBackend backend(fresh({}), model().config(), &model(), options);
  return logits_of(backend, ids, chunk);
}

std::vector<float> reference_logits(const Ids& ids) {
  ReferenceBackend reference(model());
  return logits_of(reference, ids, std::ssize(ids));
}

}  // namespace

TEST_CASE("a small model on a cluster has the logits of the reference, in chunks of any length", "[backend]") {
  const Ids ids = prompt(24);
  const std::vector<float> expected = reference_logits(ids);
  const double bound = rounding_bound(model().config(), kernels::DType::f32, expected);
  CHECK(bound < 1e-5 * largest(expected));
  for (const std::int64_t chunk : {24, 7, 1}) {
    INFO("chunks of " << chunk);
    const double difference = largest_difference(logits_on_cluster(f32(), ids, chunk), expected);
    CAPTURE(difference, bound, largest(expected));
    CHECK(difference < bound);
  }
}

TEST_CASE("plans differ in time alone where they add in the same order", "[backend]") {
  const Ids ids = prompt(7);
  const std::vector<float> expected = reference_logits(ids);
  const double bound = rounding_bound(model().config(), kernels::DType::f32, expected);
  for (const std::int64_t chunk : {7, 1}) {
    INFO("chunks of " << chunk);
    const std::vector<float> fused = logits_on_cluster(f32("a2"), ids, chunk);
    // Neither fusion nor the unified kernel changes what is added to what.
    ClusterBackendOptions options = f32("a2");
    options.plan.fusion = false;
    CHECK(logits_on_cluster(options, ids, chunk) == fused);
    options.plan.launches = Launches::per_operator;
    CHECK(logits_on_cluster(options, ids, chunk) == fused);
    options.plan.fusion = true;
    CHECK(logits_on_cluster(options, ids, chunk) == fused);
    // Unfused attention sums in another order.
    const std::vector<float> a1 = logits_on_cluster(f32("a1"), ids, chunk);
    CHECK(largest_difference(a1, expected) < bound);
    options = f32("a2");
    options.plan.attention = kernels::AttentionVariant::unfused;
    CHECK(logits_on_cluster(options, ids, chunk) == a1);
  }
}

TEST_CASE("paged and reserved caches give the same", "[backend]") {
  const Ids ids = prompt(21);
  const std::vector<float> expected = reference_logits(ids);
  const double bound = rounding_bound(model().config(), kernels::DType::f32, expected);
  ClusterBackendOptions reserved = f32(), paged = f32();
  reserved.kv.block = 16;
  paged.kv.block = 16;
  paged.kv.mode = KvMode::paged;
  for (const std::int64_t chunk : {21, 9, 1}) {
    INFO("chunks of " << chunk);
    const std::vector<float> got = logits_on_cluster(paged, ids, chunk);
    CHECK(got == logits_on_cluster(reserved, ids, chunk));
    CHECK(largest_difference(got, expected) < bound);  // blocks of 16 keys, not of 96: another order
  }
}

TEST_CASE("sequences in a batch have what each has alone, prefill and decode in one iteration", "[backend]") {
  ClusterBackendOptions options = f32();
  options.kv.block = GENERATE(16, 96);
  options.kv.mode = options.kv.block == 16 ? KvMode::paged : KvMode::reserve;
  const std::vector<Ids> texts{prompt(19, 1), prompt(33, 2), prompt(8, 5), prompt(12, 9)};
  // How many tokens each takes in each iteration, 0: not in it.
  const std::vector<std::vector<std::int64_t>> schedule{
      {9, 0, 0, 12}, {1, 17, 0, 0}, {1, 1, 5, 0}, {1, 14, 1, 0}, {7, 1, 2, 0}};
  ClusterBackend backend(fresh({}), model().config(), &model(), options);
  std::vector<std::vector<float>> got(texts.size());
  for (std::size_t s = 0; s < texts.size(); ++s)
    REQUIRE(backend.begin(100 + static_cast<std::int64_t>(s), std::ssize(texts[s])));
  const auto vocab = model().config().vocab_size;
  for (const std::vector<std::int64_t>& counts : schedule) {
    Iteration iteration;
    iteration.all_logits = true;
    for (std::size_t s = 0; s < texts.size(); ++s) {
      if (counts[s] == 0) continue;
      const auto from = texts[s].begin() + backend.length(100 + static_cast<std::int64_t>(s));
      iteration.sequences.push_back({100 + static_cast<std::int64_t>(s), {from, from + counts[s]}});
    }
    const IterationResult result = backend.run(iteration);
    CHECK(result.findings.empty());
    auto row = result.logits.begin();
    for (std::size_t s = 0; s < texts.size(); ++s) {
      got[s].insert(got[s].end(), row, row + counts[s] * vocab);
      row += counts[s] * vocab;
    }
    CHECK(row == result.logits.end());
  }
  for (std::size_t s = 0; s < texts.size(); ++s) {
    INFO("sequence " << s);
    const std::vector<float> expected = reference_logits(texts[s]);
    CHECK(largest_difference(got[s], expected) < rounding_bound(model().config(), kernels::DType::f32, expected));
  }
}

TEST_CASE("the last logits of each sequence are rows of all logits, in the order of the iteration", "[backend]") {
  const std::vector<Ids> texts{prompt(6, 1), prompt(1, 2), prompt(9, 4), prompt(1, 7)};
  std::vector<std::vector<float>> got;
  for (const bool all : {false, true}) {
    ClusterBackend backend(fresh({}), model().config(), &model(), f32());
    Iteration iteration;
    iteration.all_logits = all;
    for (std::size_t s = 0; s < texts.size(); ++s) {
      REQUIRE(backend.begin(static_cast<std::int64_t>(s), 20));
      iteration.sequences.push_back({static_cast<std::int64_t>(s), {texts[s].begin(), texts[s].end()}});
    }
    const IterationResult result = backend.run(iteration);
    CHECK(result.logits_rows == (all ? 17 : 4));
    got.push_back(result.logits);
  }
  const auto vocab = model().config().vocab_size;
  std::int64_t row = 0;
  for (std::size_t s = 0; s < texts.size(); ++s) {
    row += std::ssize(texts[s]);
    INFO("sequence " << s);
    const std::vector<float> last(got[0].begin() + static_cast<std::int64_t>(s) * vocab,
                                  got[0].begin() + static_cast<std::int64_t>(s + 1) * vocab);
    const std::vector<float> its(got[1].begin() + (row - 1) * vocab, got[1].begin() + row * vocab);
    // The head works on 4 rows or on 17: other blocks, another order of sums.
    CHECK(largest_difference(last, its) < rounding_bound(model().config(), kernels::DType::f32, its));
  }
}

TEST_CASE("an iteration takes the same cycles in both depths, and they are its operators' and its launches'",
          "[backend]") {
  const std::string plan = GENERATE("a1", "a2");
  const kernels::DType dtype = GENERATE(kernels::DType::f32, kernels::DType::f16);
  CAPTURE(plan);
  ClusterBackendOptions options = f32(plan);
  options.dtype = dtype;
  const std::vector<Iteration> iterations{{{{0, std::vector<std::int32_t>(11, 5)}}, false},
                                          {{{0, {9}}, {1, {4, 5, 6}}}, false},
                                          {{{0, {2}}, {1, {8}}}, true}};
  std::vector<IterationResult> functional, timed;
  for (const sim::Depth depth : {sim::Depth::functional, sim::Depth::timing}) {
    const bool has_values = depth == sim::Depth::functional;
    ClusterBackend backend(fresh({.depth = depth}), model().config(), has_values ? &model() : nullptr, options);
    CHECK(backend.has_values() == has_values);
    REQUIRE(backend.begin(0, 20));
    REQUIRE(backend.begin(1, 20));
    for (const Iteration& iteration : iterations) (has_values ? functional : timed).push_back(backend.run(iteration));
    CHECK(backend.length(0) == 13);
  }
  const double launch = machine().cluster.launch_us * machine().cycles_per_us();
  for (std::size_t i = 0; i < iterations.size(); ++i) {
    CAPTURE(i);
    const IterationResult& result = functional[i];
    CHECK(result.cycles == timed[i].cycles);
    CHECK(timed[i].logits.empty());
    CHECK(result.findings.empty());
    CHECK(timed[i].findings.empty());
    REQUIRE(result.operators.size() == timed[i].operators.size());
    std::int64_t sum = 0, launches = 0;
    double macs = 0;
    for (std::size_t o = 0; o < result.operators.size(); ++o) {
      const OperatorTime &its = result.operators[o], &other = timed[i].operators[o];
      INFO(its.name << ", " << its.kernel);
      CHECK(its.cycles > 0);
      CHECK(its.cycles == other.cycles);
      CHECK(its.account == other.account);
      CHECK(its.ddr_bytes == other.ddr_bytes);
      CHECK(its.gsm_bytes == other.gsm_bytes);
      CHECK(its.packets == other.packets);
      // Every cycle of every core has a class.
      CHECK(std::accumulate(its.account.begin(), its.account.end(), std::int64_t{0}) ==
            its.cycles * machine().cluster.cores);
      sum += its.cycles;
      launches += its.launches;
      macs += its.macs;
    }
    CHECK(sum + result.launch_cycles == result.cycles);
    CHECK(launches == (plan == "a2" ? 0 : result.launches));
    CHECK((plan == "a2" ? result.launches == 1 : result.launches >= 30));
    CHECK(static_cast<double>(result.launch_cycles) ==
          Approx(launch * static_cast<double>(result.launches)).epsilon(1e-6));
    CHECK(macs > 0);
  }
}

TEST_CASE("fusion and the unified kernel save time", "[backend]") {
  std::vector<std::int64_t> cycles;
  for (const char* plan : {"a1", "a2"}) {
    ClusterBackend backend(fresh({.depth = sim::Depth::timing}), model().config(), nullptr, f32(plan));
    REQUIRE(backend.begin(0, 90));
    cycles.push_back(backend.run({{{0, std::vector<std::int32_t>(64)}}, false}).cycles);
  }
  CHECK(cycles[1] < cycles[0]);
}

TEST_CASE("the first layers alone run, and are what a shorter model has", "[backend]") {
  ClusterBackendOptions options = f32();
  options.layers = 1;
  ClusterBackend backend(fresh({}), model().config(), &model(), options);
  REQUIRE(backend.begin(0, 20));
  const IterationResult result = backend.run({{{0, {1, 2, 3}}}, false});
  CHECK(result.logits_rows == 1);
  for (const OperatorTime& its : result.operators) CHECK(its.layer < 1);
  CHECK(backend.cache().block_bytes() == 96 * 1 * 2 * 64 * 4);
}

TEST_CASE("what a backend cannot run it refuses, and goes on with the rest", "[backend]") {
  ClusterBackendOptions options = f32();
  ClusterBackend backend(fresh({}), model().config(), &model(), options);
  REQUIRE(backend.begin(0, 96));
  REQUIRE(backend.begin(1, 4));
  const auto complaint = [&](const Iteration& iteration) { return error_of([&] { backend.run(iteration); }); };
  CHECK(complaint({}) == "an iteration has no sequence");
  CHECK(complaint({{{7, {1}}}, false}) == "sequence 7 has not begun");
  CHECK(complaint({{{0, {}}}, false}) == "sequence 0 has no token in this iteration");
  CHECK(complaint({{{0, {1}}, {0, {2}}}, false}) == "sequence 0 is twice in an iteration");
  CHECK(complaint({{{0, {1, 300}}}, false}) == "sequence 0 has token 300, the vocabulary ids 0 to 299");
  CHECK(complaint({{{0, {-1}}}, false}) == "sequence 0 has token -1, the vocabulary ids 0 to 299");
  CHECK_THAT(complaint({{{0, std::vector<std::int32_t>(97)}}, false}),
             Catch::StartsWith("sequence 0 with 0 tokens and 97 new ones: the context of"));
  CHECK(complaint({{{1, {1, 2, 3, 4, 5}}}, false}) ==
        "KV cache: 5 positions of sequence 1, which began with room for 4");
  CHECK(error_of([&] { backend.begin(2, 97); }) == "KV cache: a sequence of 97 positions, made for at most 96");
  // Nothing of all that is left.
  const Ids ids = prompt(5);
  const IterationResult result = backend.run({{{0, {ids.begin(), ids.end()}}}, true});
  const std::vector<float> expected = reference_logits(ids);
  CHECK(largest_difference(result.logits, expected) < rounding_bound(model().config(), kernels::DType::f32, expected));
  CHECK(error_of([&] { ClusterBackend(fresh({}), model().config(), nullptr, options); }) ==
        "values need weights; without a checkpoint there is timing only");
}

TEST_CASE("a full cache refuses the next sequence until one ends", "[backend]") {
  models::LlamaConfig config = model().config();
  ClusterBackendOptions options = f32();
  options.kv.block = 1 << 20;  // positions: 2 GB
  options.kv.mode = KvMode::paged;
  ClusterBackend backend(fresh({.depth = sim::Depth::timing}), config, nullptr, options);
  const std::int64_t blocks = backend.cache().blocks();
  REQUIRE(blocks >= 2);
  REQUIRE(blocks < 20);
  for (std::int64_t sequence = 0; sequence < blocks; ++sequence) {
    REQUIRE(backend.begin(sequence, 10));
    backend.run({{{sequence, {1}}}, false});
  }
  REQUIRE(backend.begin(blocks, 10));
  CHECK(error_of([&] {
          backend.run({{{blocks, {1}}}, false});
        }) == fmt::format("KV cache: no block is left for 1 positions of sequence {}", blocks));
  backend.end(0);
  backend.run({{{blocks, {1}}}, false});
  CHECK(backend.length(blocks) == 1);
}

TEST_CASE("an iteration of any length is laid out in GSM and DDR that are there", "[backend]") {
  models::LlamaConfig config = small_model().config;
  config.name = "wide";
  config.hidden_size = 1024;
  config.intermediate_size = 2816;
  config.layers = 1;
  config.heads = 8;
  config.kv_heads = 4;
  config.head_dim = 128;
  config.vocab_size = 1000;
  config.max_positions = 4096;
  sim::Cluster& cluster = fresh({.depth = sim::Depth::timing});
  const DeviceModel device(cluster, config, kernels::DType::f16, models::ModelPart::whole(config), nullptr);
  const sim::Pointer cache = cluster.ddr_malloc(4096 * 4 * 128 * 2 * 2);
  const sim::Cluster::Allocations kept = cluster.allocations();
  const ExecutionPlan plan = ExecutionPlan::named("a2");
  std::int64_t most = 0;
  const auto lay_out = [&](const std::vector<models::SequenceStep>& steps) {
    const models::Graph graph = models::llama_graph(device.whole(), {steps, false});
    const BatchShape batch = BatchShape::of(steps, 4096);
    const OperatorPlans plans(graph, device.config(), kernels::DType::f16, device.attention_scale(), batch, plan,
                              machine());
    const Fusion fusion = fuse(graph, plans.fusion_target());
    BatchInput input;
    input.ids.assign(batch.positions.size(), 1);
    for (const models::SequenceStep& step : steps)
      input.logits_rows.push_back((input.logits_rows.empty() ? -1 : input.logits_rows.back()) + step.tokens);
    input.blocks = [&](std::size_t, int) { return kernels::AttentionBlocks{{cache}, {cache}}; };
    const LoweredIteration lowered = lower(cluster, graph, fusion, device, plans, plan, batch, input);
    CHECK(lowered.gsm_bytes <= machine().cluster.gsm_bytes);
    most = std::max(most, lowered.gsm_bytes);
    cluster.release(kept);
  };
  for (std::int64_t tokens = 1; tokens < 2000; tokens += 1 + tokens / 9) {
    CAPTURE(tokens);
    lay_out({{tokens, 0}});
  }
  for (std::int64_t sequences = 2; sequences < 40; sequences += 7) {  // each attention works in the GSM
    CAPTURE(sequences);
    std::vector<models::SequenceStep> steps(static_cast<std::size_t>(sequences), {70, 130});
    steps.front().tokens = 1;
    lay_out(steps);
  }
  CHECK(most > machine().cluster.gsm_bytes / 4);  // the test comes near the limit
}

TEST_CASE("weights that are mapped give the bits of weights that are copied", "[backend]") {
  const Folder folder;
  ::setenv("MTSIM_MODEL_CACHE", folder.path("cache").c_str(), 1);
  models::RandomModel model = small_model();
  model.type = models::ElementType::f16;  // borrowed in FP16, packed in FP32 and where a matrix is transposed
  model.config.tie_word_embeddings = GENERATE(false, true);
  const models::Checkpoint checkpoint = make_model(folder, model);
  std::vector<std::int64_t> ids{1, 17, 200, 33, 5};
  for (const kernels::DType dtype : {kernels::DType::f32, kernels::DType::f16}) {
    ClusterBackendOptions options;
    options.dtype = dtype;
    options.longest = 8;
    std::vector<std::vector<float>> logits;
    for (const std::int64_t mapped_from : {std::int64_t{0}, k_mapped_from}) {
      options.mapped_from = mapped_from;
      ClusterBackend backend(fresh({}), checkpoint.config(), &checkpoint, options);
      logits.push_back(logits_of(backend, ids, 5));
    }
    CHECK(logits[0] == logits[1]);
  }
  ::unsetenv("MTSIM_MODEL_CACHE");
}

TEST_CASE("more layers than a model has are refused", "[backend]") {
  const Folder folder;
  const models::Checkpoint checkpoint = make_model(folder, small_model());
  ClusterBackendOptions options;
  options.longest = 8;
  options.layers = 3;
  CHECK(error_of([&] {
          ClusterBackend(fresh({}), checkpoint.config(), &checkpoint, options);
        }).find("3 layers asked") != std::string::npos);
}
