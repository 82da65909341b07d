// SPDX-License-Identifier: Apache-2.0
// New keys and values land in their blocks bit for bit, and no other byte of the cache changes.
#include "kernels/kv_append/kv_append.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "bench_cluster.h"
#include "kernels/library.h"
#include "row_reference.h"

namespace mtsim::kernels {
namespace {

using Bytes = std::vector<std::byte>;

/// One sequence: tokens behind those it has.
struct New {
  std::int64_t first = 0, tokens = 0;
};

Bytes random_bytes(std::int64_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  Bytes bytes(static_cast<std::size_t>(count));
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::byte>(random()); });
  return bytes;
}

/// A pool of blocks of K^T and V, gaps between them, all of it random. Blocks of a sequence lie in no order.
class Caches {
 public:
  Caches(sim::Cluster& cluster, const KvAppendShape& shape, const std::vector<New>& news)
      : m_cluster(cluster), m_shape(shape) {
    std::vector<std::int64_t> counts;
    for (const New& one : news) counts.push_back((one.first + one.tokens + shape.block - 1) / shape.block);
    std::int64_t blocks = 0;
    for (const std::int64_t count : counts) blocks += 2 * count;
    std::vector<std::int64_t> places;
    for (std::int64_t i = 0; i < blocks; ++i) places.push_back(k_gap + i * (shape.block_bytes() + k_gap));
    std::shuffle(places.begin(), places.end(), std::mt19937(7));
    expected = random_bytes(k_gap + blocks * (shape.block_bytes() + k_gap), 11);
    m_pool = cluster.ddr_malloc(std::ssize(expected));
    cluster.write(m_pool, expected);
    std::uint32_t seed = 20;
    for (std::size_t s = 0; s < news.size(); ++s) {
      KvAppend append{news[s].first, news[s].tokens, {}, {}, {}};
      std::vector<std::int64_t> kt, v;
      for (std::int64_t i = 0; i < counts[s]; ++i) {
        for (std::vector<std::int64_t>* side : {&kt, &v}) {
          side->push_back(places.back());
          places.pop_back();
        }
        append.blocks.kt.push_back(m_pool + kt.back());
        append.blocks.v.push_back(m_pool + v.back());
      }
      const std::int64_t bytes = news[s].tokens * shape.row() * bytes_of(shape.dtype);
      const Bytes new_k = random_bytes(bytes, ++seed), new_v = random_bytes(bytes, ++seed);
      append.k = cluster.ddr_malloc(bytes);
      append.v = cluster.ddr_malloc(bytes);
      cluster.write(append.k, new_k);
      cluster.write(append.v, new_v);
      expect(append, new_k, new_v, kt, v);
      appends.push_back(append);
    }
  }

  Bytes read() const {
    Bytes pool(expected.size());
    m_cluster.read(m_pool, pool);
    return pool;
  }

  std::vector<KvAppend> appends;
  Bytes expected;

 private:
  static constexpr std::int64_t k_gap = 96;

  /// Element by element: K^T [kv_heads, head_dim, block], V [kv_heads, block, head_dim].
  void expect(const KvAppend& append, const Bytes& k, const Bytes& v, const std::vector<std::int64_t>& kt_at,
              const std::vector<std::int64_t>& v_at) {
    const std::int64_t b = bytes_of(m_shape.dtype), block = m_shape.block, d = m_shape.head_dim;
    const auto put = [&](std::int64_t to, const Bytes& from, std::int64_t element) {
      std::memcpy(expected.data() + to, from.data() + element * b, static_cast<std::size_t>(b));
    };
    for (std::int64_t token = 0; token < append.tokens; ++token) {
      const std::int64_t position = append.first + token, at = position % block;
      const auto number = static_cast<std::size_t>(position / block);
      for (std::int64_t head = 0; head < m_shape.kv_heads; ++head) {
        for (std::int64_t i = 0; i < d; ++i) {
          const std::int64_t element = (token * m_shape.kv_heads + head) * d + i;
          put(kt_at[number] + ((head * d + i) * block + at) * b, k, element);
          put(v_at[number] + ((head * block + at) * d + i) * b, v, element);
        }
      }
    }
  }

  sim::Cluster& m_cluster;
  KvAppendShape m_shape;
  sim::Pointer m_pool;
};

void check(const KvAppendShape& shape, const std::vector<New>& news, int cores = 0) {
  std::string text = fmt::format("{} heads of {}, blocks of {}, {}:", shape.kv_heads, shape.head_dim, shape.block,
                                 to_string(shape.dtype));
  for (const New& one : news) text += fmt::format(" {} from {} on", one.tokens, one.first);
  INFO(text);
  sim::Cluster& cluster = fresh();
  const Caches caches(cluster, shape, news);
  const sim::LaunchResult functional = cluster.launch(kv_append(cluster, shape, caches.appends), cores);
  expect_clean(functional);
  const Bytes got = caches.read();
  const auto differs = std::mismatch(got.begin(), got.end(), caches.expected.begin()).first;
  INFO("first difference at byte " << differs - got.begin() << " of " << got.size());
  CHECK(differs == got.end());
  sim::Cluster& timing = fresh({sim::Depth::timing});
  const Caches nothing(timing, shape, news);
  const sim::LaunchResult timed = timing.launch(kv_append(timing, shape, nothing.appends), cores);
  expect_clean(timed);
  CHECK(timed.cycles == functional.cycles);
}

}  // namespace

TEST_CASE("kv_append of any heads puts every element of new tokens in its place and changes nothing else",
          "[kv_append]") {
  const DType dtype = GENERATE(DType::f32, DType::f16);
  const std::int64_t kv_heads = GENERATE(1, 2, 5, 8), head_dim = GENERATE(16, 48, 128);
  const KvAppendShape shape{kv_heads, head_dim, 12, dtype};
  check(shape, {{0, 1}});   // a token into an empty block
  check(shape, {{11, 1}});  // into the last place of one
  check(shape, {{5, 3}});   // within a block
  check(shape, {{7, 31}});  // over block ends, from the middle to the middle
}

TEST_CASE("kv_append of several sequences in one launch", "[kv_append]") {
  const DType dtype = GENERATE(DType::f32, DType::f16);
  const KvAppendShape shape{4, 32, 16, dtype};
  check(shape, {{0, 1}, {15, 1}, {16, 1}, {40, 1}});              // all decode
  check(shape, {{3, 1}, {0, 40}, {15, 2}, {31, 1}, {30, 3}});     // both kinds
  check(shape, {{3, 1}, {14, 20}}, GENERATE(1, 5));               // on some cores
  check({2, 64, 512, dtype}, {{100, 300}, {511, 2}, {1023, 1}});  // long blocks
  check({1, 16, 4, dtype}, {{2, 9}});                             // the shortest
}

TEST_CASE("kv_append of nothing does nothing", "[kv_append]") {
  sim::Cluster& cluster = fresh();
  const sim::LaunchResult result = cluster.launch(kv_append(cluster, {2, 32, 16, DType::f32}, {}));
  expect_clean(result);
  CHECK(result.dma_transfers == 0);
}

TEST_CASE("kv_append says what does not fit the blocks", "[kv_append]") {
  sim::Cluster& cluster = fresh();
  const KvAppendShape shape{2, 32, 16, DType::f32};
  const sim::Pointer memory = cluster.ddr_malloc(1 << 20);
  const auto complaint = [&](std::int64_t first, std::int64_t tokens, std::size_t kt, std::size_t v) -> std::string {
    try {
      kv_append(cluster, shape, {{first, tokens, memory, memory, {std::vector(kt, memory), std::vector(v, memory)}}});
    } catch (const KernelError& error) {
      return error.what();
    }
    return "no complaint";
  };
  CHECK(complaint(0, 32, 2, 2) == "no complaint");
  CHECK(complaint(0, 33, 2, 2) == "kv_append: 33 tokens from position 0 on do not fit 2 blocks of 16 positions");
  CHECK(complaint(32, 1, 2, 2) == "kv_append: 1 tokens from position 32 on do not fit 2 blocks of 16 positions");
  CHECK(complaint(0, 0, 1, 1) == "kv_append: 0 tokens from position 0 on do not fit 1 blocks of 16 positions");
  CHECK(complaint(-1, 1, 1, 1) == "kv_append: 1 tokens from position -1 on do not fit 1 blocks of 16 positions");
  CHECK(complaint(0, 20, 2, 1) == "kv_append: 20 tokens from position 0 on do not fit 1 blocks of 16 positions");
}

}  // namespace mtsim::kernels
