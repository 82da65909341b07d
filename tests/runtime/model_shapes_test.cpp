// SPDX-License-Identifier: Apache-2.0
// Llamas of odd shapes on a cluster: biases, tied heads, heads that are padded, of either RoPE, widths that divide
// nothing, FP16.
#include <array>
#include <fstream>
#include <functional>
#include <random>

#include "runtime/backend/reference_backend.h"
#include "tests/runtime/support.h"

using namespace mtsim;
using namespace mtsim::runtime;
using namespace mtsim::runtime::test;

namespace {

std::vector<std::int64_t> prompt(const models::LlamaConfig& config, std::int64_t count) {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < count; ++i) ids.push_back((37 * i + 5) % config.vocab_size);
  return ids;
}

/// Prefill in parts of 13, then a token at a time: 20 tokens, within the bound for rounding, and beyond nothing else.
void check(const models::Checkpoint& checkpoint, kernels::DType dtype = kernels::DType::f32, const char* plan = "a2") {
  const models::LlamaConfig& config = checkpoint.config();
  const std::vector<std::int64_t> ids = prompt(config, 20);
  ReferenceBackend reference(checkpoint);
  const std::vector<float> expected = logits_of(reference, ids, 20);
  const double bound = rounding_bound(config, dtype, expected);
  CHECK(bound < (dtype == kernels::DType::f32 ? 1e-5 : 0.05) * largest(expected));  // it says something
  ClusterBackendOptions options;
  options.dtype = dtype;
  options.plan = ExecutionPlan::named(plan);
  options.longest = options.kv.block = 32;
  ClusterBackend backend(fresh({}), config, &checkpoint, options);
  std::vector<float> got;
  REQUIRE(backend.begin(0, 20));
  std::int64_t at = 0;
  for (const std::int64_t tokens : {13, 1, 1, 5}) {
    const IterationResult result = backend.run({{{0, {ids.begin() + at, ids.begin() + at + tokens}}}, true});
    for (const sim::Finding& finding : result.findings) FAIL_CHECK(finding.message);
    got.insert(got.end(), result.logits.begin(), result.logits.end());
    at += tokens;
  }
  const double difference = largest_difference(got, expected);
  CAPTURE(difference, bound, largest(expected));
  CHECK(difference < bound);
}

void check_changed(const std::function<void(models::RandomModel&)>& change, kernels::DType dtype = kernels::DType::f32,
                   const char* plan = "a2") {
  const Folder folder;
  models::RandomModel model = small_model();
  model.config.layers = 1;
  change(model);
  check(make_model(folder, model), dtype, plan);
}

/// A llama2.c .bin, whose RoPE is interleaved: numbers in the order of the format.
std::string write_bin(const Folder& folder, std::int32_t hidden, std::int32_t heads, std::int32_t kv_heads) {
  constexpr std::int32_t k_intermediate = 100, k_layers = 1, k_vocab = 261, k_positions = 32;
  const std::int32_t head_dim = hidden / heads, kv = kv_heads * head_dim;
  const std::string path = folder.path("model.bin");
  std::ofstream file(path, std::ios::binary);
  for (const std::int32_t number : {hidden, k_intermediate, k_layers, heads, kv_heads, k_vocab, k_positions})
    file.write(reinterpret_cast<const char*>(&number), 4);
  std::mt19937 random(5);
  const auto put = [&](std::int64_t count, float middle, float width) {
    for (std::int64_t i = 0; i < count; ++i) {
      const float value = middle + width * (static_cast<float>(random() % 2001) / 1000 - 1);
      file.write(reinterpret_cast<const char*>(&value), 4);
    }
  };
  put(std::int64_t{k_vocab} * hidden, 0, 0.5F);
  put(hidden, 1, 0.5F);                                        // attention norm
  put(std::int64_t{hidden} * (2 * hidden + 2 * kv), 0, 0.3F);  // Q, K, V, O
  put(hidden, 1, 0.5F);                                        // feed-forward norm
  put(std::int64_t{3} * hidden * k_intermediate, 0, 0.3F);
  put(hidden, 1, 0.5F);                             // final norm
  put(std::int64_t{k_positions} * head_dim, 0, 1);  // tables of RoPE, which nobody reads
  return path;
}

}  // namespace

TEST_CASE("Q, K and V with biases, as Qwen2 has them", "[shapes]") {
  check_changed([](models::RandomModel& model) { model.config.qkv_bias = true; });
}

TEST_CASE("a head that is the embedding", "[shapes]") {
  check_changed([](models::RandomModel& model) { model.config.tie_word_embeddings = true; });
}

TEST_CASE("heads of 24, which are padded to 32, rotated by halves", "[shapes]") {
  const char* plan = GENERATE("a1", "a2");
  check_changed(
      [](models::RandomModel& model) {
        model.config.hidden_size = 96;
        model.config.head_dim = 24;
        model.config.qkv_bias = true;  // they have pads too
      },
      kernels::DType::f32, plan);
}

TEST_CASE("heads of 24 and of 40, rotated as neighbours", "[shapes]") {
  const Folder folder;
  const auto [hidden, heads, kv_heads] =
      GENERATE(std::array<std::int32_t, 3>{96, 4, 2}, std::array<std::int32_t, 3>{80, 2, 1});
  const models::Checkpoint checkpoint = models::Checkpoint::open(write_bin(folder, hidden, heads, kv_heads));
  REQUIRE(checkpoint.config().rope_pairs == models::RopePairs::interleaved);
  check(checkpoint);
}

TEST_CASE("heads that together are wider or narrower than the residual stream", "[shapes]") {
  const std::int64_t hidden = GENERATE(72, 200);
  check_changed([&](models::RandomModel& model) { model.config.hidden_size = hidden; });
}

TEST_CASE("eight query heads to a KV head", "[shapes]") {
  check_changed([](models::RandomModel& model) {
    model.config.heads = 8;
    model.config.kv_heads = 1;
    model.config.head_dim = 16;
  });
}

TEST_CASE("a vocabulary and a feed-forward width that are primes", "[shapes]") {
  check_changed([](models::RandomModel& model) {
    model.config.vocab_size = 331;
    model.config.intermediate_size = 191;
    model.config.hidden_size = 90;
  });
}

TEST_CASE("FP16 has the logits of FP32 within what its roundings allow", "[shapes]") {
  const char* plan = GENERATE("a1", "a2");
  check_changed([](models::RandomModel& model) { model.type = models::ElementType::f16; }, kernels::DType::f16, plan);
  check_changed(
      [](models::RandomModel& model) {
        model.type = models::ElementType::f16;
        model.config.head_dim = 24;
        model.config.qkv_bias = true;
        model.config.layers = 2;
      },
      kernels::DType::f16, plan);
}
