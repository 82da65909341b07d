// SPDX-License-Identifier: Apache-2.0
// Attention on a cache whose blocks lie in places of their own: the bits of the same cache in one piece.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "bench_cluster.h"
#include "kernels/attention/attention.h"
#include "kernels/library.h"
#include "reference.h"
#include "row_reference.h"

namespace mtsim::kernels {
namespace {

AttentionShape shape_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t seq_q, std::int64_t seq_k,
                        std::int64_t head_dim, std::int64_t kv_block, DType dtype) {
  AttentionShape shape;
  shape.heads = heads;
  shape.kv_heads = kv_heads;
  shape.seq_q = seq_q;
  shape.seq_k = seq_k;
  shape.head_dim = head_dim;
  shape.causal = seq_q > 1;
  shape.dtype = dtype;
  shape.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(head_dim)));
  shape.kv_block = kv_block;
  return shape;
}

/// One side of the cache: [kv_heads, blocks, block * head_dim]. What no key fills is NaN, which nobody may read:
/// columns of K^T [head_dim, block], rows of V [block, head_dim].
std::vector<float> cache(const AttentionShape& s, bool transposed, std::uint32_t seed) {
  std::vector<float> values = random_matrix(1, s.kv_elements(), seed);
  const std::int64_t d = s.head_dim, block = s.block();
  for (std::int64_t h = 0; h < s.kv_heads; ++h) {
    for (std::int64_t key = s.seq_k; key < s.blocks() * block; ++key) {
      for (std::int64_t i = 0; i < d; ++i)
        values[static_cast<std::size_t>((h * s.blocks() + key / block) * block * d +
                                        (transposed ? i * block + key % block : key % block * d + i))] =
            std::numeric_limits<float>::quiet_NaN();
    }
  }
  return values;
}

/// The same with the block outermost, [blocks][kv_heads, block * head_dim], each uploaded apart and in another order.
std::vector<sim::Pointer> scattered(sim::Cluster& cluster, const AttentionShape& s, const std::vector<float>& whole,
                                    std::uint32_t seed) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(s.blocks()));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  const std::int64_t size = s.block() * s.head_dim;
  std::vector<sim::Pointer> places(order.size());
  for (const std::int64_t block : order) {
    std::vector<float> one;
    for (std::int64_t h = 0; h < s.kv_heads; ++h) {
      const auto first = whole.begin() + (h * s.blocks() + block) * size;
      one.insert(one.end(), first, first + size);
    }
    cluster.ddr_malloc(700);  // no block lies behind another
    places[static_cast<std::size_t>(block)] = upload(cluster, one, s.dtype);
  }
  return places;
}

struct Run {
  std::vector<float> o;
  std::int64_t cycles = 0;
};

/// Prefill with all programs of the variant.
Run prefill(const AttentionShape& shape, const AttentionChoice& choice, bool in_places) {
  const AttentionPlan plan = plan_attention(shape, {}, choice, machine());
  const std::vector<float> kt = cache(shape, true, 2), v = cache(shape, false, 3);
  sim::Cluster& cluster = fresh();
  const ResultArea area(cluster, shape.q_elements(), shape.dtype);
  AttentionOperands operands;
  operands.q = upload(cluster, random_matrix(1, shape.q_elements(), 1), shape.dtype);
  operands.o = area.data();
  if (in_places) {
    operands.blocks = {scattered(cluster, shape, kt, 5), scattered(cluster, shape, v, 6)};
  } else {
    operands.kt = upload(cluster, kt, shape.dtype);
    operands.v = upload(cluster, v, shape.dtype);
  }
  Run run;
  for (const sim::DspProgram& program : attention_programs(cluster, plan, operands)) {
    const sim::LaunchResult result = cluster.launch(program);
    expect_clean(result);
    run.cycles += result.cycles;
  }
  run.o = area.read(cluster);
  return run;
}

Run decode(AttentionShape shape, const std::vector<std::int64_t>& lengths, bool in_places) {
  shape.batch = std::ssize(lengths);
  const AttentionPlan plan = plan_attention_decode(shape, {}, machine());
  sim::Cluster& cluster = fresh();
  const ResultArea area(cluster, shape.q_elements(), shape.dtype);
  std::vector<AttentionCache> caches;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    AttentionShape one = shape;
    one.batch = 1;
    one.seq_k = lengths[i];
    const auto seed = static_cast<std::uint32_t>(10 * i);
    const std::vector<float> kt = cache(one, true, seed + 2), v = cache(one, false, seed + 3);
    AttentionCache& cache = caches.emplace_back();
    cache.length = lengths[i];
    if (in_places) {
      cache.blocks = {scattered(cluster, one, kt, seed), scattered(cluster, one, v, seed + 1)};
    } else {
      cache.kt = upload(cluster, kt, shape.dtype);
      cache.v = upload(cluster, v, shape.dtype);
    }
  }
  const sim::Pointer q = upload(cluster, random_matrix(1, shape.q_elements(), 1), shape.dtype);
  const sim::LaunchResult result = cluster.launch(attention_decode(cluster, plan, q, area.data(), caches));
  expect_clean(result);
  return {area.read(cluster), result.cycles};
}

bool finite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

}  // namespace

TEST_CASE("prefill reads blocks wherever they lie", "[attention]") {
  using enum AttentionVariant;
  const AttentionChoice choice = GENERATE(values<AttentionChoice>({{mt}, {flash}, {unfused}}));
  const DType dtype = GENERATE(DType::f32, DType::f16);
  for (const AttentionShape& shape : {shape_of(4, 2, 70, 70, 64, 64, dtype), shape_of(8, 1, 5, 300, 32, 128, dtype),
                                      shape_of(2, 2, 33, 97, 48, 16, dtype), shape_of(2, 1, 9, 9, 16, 128, dtype)}) {
    INFO(fmt::format("{} {} x {}, {} heads of {}, blocks of {}, {}", to_string(choice.variant), shape.seq_q,
                     shape.seq_k, shape.heads, shape.head_dim, shape.kv_block, to_string(dtype)));
    const Run together = prefill(shape, choice, false), apart = prefill(shape, choice, true);
    CHECK(finite(together.o));
    CHECK(apart.o == together.o);
    CHECK(apart.cycles == together.cycles);
  }
}

TEST_CASE("decode of ragged lengths reads blocks wherever they lie", "[attention]") {
  const DType dtype = GENERATE(DType::f32, DType::f16);
  const std::vector<std::int64_t> lengths{1, 333, 64, 65, 17, 128, 200};
  const AttentionShape shape = shape_of(8, 4, 1, 333, 64, 64, dtype);
  const Run together = decode(shape, lengths, false), apart = decode(shape, lengths, true);
  CHECK(finite(together.o));
  CHECK(apart.o == together.o);
  CHECK(apart.cycles == together.cycles);
}

TEST_CASE("too few blocks for the context are refused", "[attention]") {
  sim::Cluster& cluster = fresh();
  const sim::Pointer memory = cluster.ddr_malloc(1 << 20);
  const auto complaint = [&](auto make) -> std::string {
    try {
      make();
    } catch (const KernelError& error) {
      return error.what();
    }
    return "no complaint";
  };
  const auto blocks = [&](std::size_t kt, std::size_t v) {
    return AttentionBlocks{std::vector(kt, memory), std::vector(v, memory)};
  };
  const AttentionShape shape = shape_of(4, 2, 5, 130, 32, 64, DType::f32);  // three blocks
  const AttentionPlan plan = plan_attention(shape, {}, {}, machine());
  const auto prefill_with = [&](std::size_t kt, std::size_t v) {
    return complaint([&] { attention_programs(cluster, plan, {memory, {}, {}, memory, blocks(kt, v)}); });
  };
  CHECK(prefill_with(3, 3) == "no complaint");
  CHECK(prefill_with(2, 3) == "attention: 2 blocks of K^T and 3 of V for a context of 3");
  CHECK(prefill_with(3, 2) == "attention: 3 blocks of K^T and 2 of V for a context of 3");
  AttentionShape one = shape;
  one.seq_q = 1;
  one.causal = false;
  const AttentionPlan decode_plan = plan_attention_decode(one, {}, machine());
  const auto decode_with = [&](std::size_t count) {
    return complaint([&] {
      attention_decode(cluster, decode_plan, memory, memory, {{130, {}, {}, blocks(count, count)}});
    });
  };
  CHECK(decode_with(3) == "no complaint");
  CHECK(decode_with(2) == "attention: 2 blocks of K^T and 2 of V for a context of 3");
  AttentionShape two = shape;
  two.batch = 2;
  const AttentionPlan batch = plan_attention(two, {}, {}, machine());
  CHECK(complaint([&] {
          attention_programs(cluster, batch, {memory, {}, {}, memory, blocks(6, 6)});
        }) != "no complaint");
}

}  // namespace mtsim::kernels
