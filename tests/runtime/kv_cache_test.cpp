// SPDX-License-Identifier: Apache-2.0
// Blocks of the KV cache and bytes of the activations: who has what, and that nobody has what another has.
#include "runtime/kv/kv_cache.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "runtime/lower/arena.h"
#include "tests/runtime/support.h"

using namespace mtsim;
using namespace mtsim::runtime;
using namespace mtsim::runtime::test;

namespace {

/// 2 layers of K and V of 2 heads of 32: 256 elements a position.
const models::LlamaConfig& config() {
  static const models::LlamaConfig small = small_model().config;
  return small;
}
constexpr std::int64_t k_position = 2 * 2 * 2 * 32 * 2;  // bytes in FP16

KvOptions options(KvMode mode, std::int64_t block) {
  KvOptions result;
  result.mode = mode;
  result.block = block;
  return result;
}

}  // namespace

TEST_CASE("the options of the cache are read as they are written, or refused", "[kv]") {
  CHECK(parse_kv_options("reserve").mode == KvMode::reserve);
  CHECK(parse_kv_options("reserve").block == 0);
  CHECK(parse_kv_options("paged").mode == KvMode::paged);
  CHECK(parse_kv_options("paged").block == 0);
  CHECK(parse_kv_options("paged(16)").mode == KvMode::paged);
  CHECK(parse_kv_options("paged(16)").block == 16);
  for (const char* text : {"", "Reserve", "paged(", "paged()", "paged(6)", "paged(0)", "paged(-4)", "paged(16",
                           "paged(16))", "paged( 16)", "paged(16) ", "paged(4e1)", "paged(99999999999999999999)"}) {
    INFO(text);
    CHECK(error_of([&] { parse_kv_options(text); }) ==
          "KV cache '" + std::string(text) +
              "': reserve, paged or paged(BLOCK), BLOCK positions being a multiple of 4");
  }
}

TEST_CASE("bytes of a position are those of K and V in all layers", "[kv]") {
  CHECK(config().kv_bytes_per_token(2) == k_position);
  CHECK(config().kv_bytes_per_token(4) == 2 * k_position);
  models::LlamaConfig llama = config();  // Llama-2-7B: 0.5 MB a position in FP16
  llama.layers = llama.heads = llama.kv_heads = 32;
  llama.head_dim = 128;
  CHECK(llama.kv_bytes_per_token(2) == 524288);
}

TEST_CASE("reserve gives a sequence its longest context when it begins", "[kv]") {
  KvCache cache(config(), options(KvMode::reserve, 0), 2, 5 * 104 * k_position, 101);
  CHECK(cache.block() == 104);  // attention loads four keys together
  CHECK(cache.block_bytes() == 104 * k_position);
  CHECK(cache.blocks() == 5);
  for (std::int64_t sequence = 0; sequence < 5; ++sequence) CHECK(cache.begin(sequence, 1));
  CHECK(cache.free_blocks() == 0);
  CHECK_FALSE(cache.begin(5, 1));
  cache.end(3);
  CHECK(cache.begin(5, 101));
  CHECK(cache.grow(5, 101));
  CHECK(cache.table(5).size() == 1);

  KvCache blocks(config(), options(KvMode::reserve, 16), 2, 10 * 16 * k_position, 100);
  CHECK(blocks.blocks() == 10);
  CHECK(blocks.begin(0, 100));
  CHECK(blocks.table(0).size() == 7);
  CHECK_FALSE(blocks.begin(1, 49));  // four blocks; three are there
  CHECK(blocks.free_blocks() == 3);
  CHECK(blocks.begin(1, 48));  // the refused one left nothing behind
}

TEST_CASE("paged gives blocks as they are needed", "[kv]") {
  KvCache cache(config(), options(KvMode::paged, 16), 2, 10 * 16 * k_position + 1, 160);
  CHECK(cache.blocks() == 10);
  for (std::int64_t sequence = 0; sequence < 20; ++sequence) CHECK(cache.begin(sequence, 160));
  CHECK(cache.free_blocks() == 10);
  CHECK(cache.grow(0, 1));
  CHECK(cache.grow(0, 16));
  CHECK(cache.table(0).size() == 1);
  CHECK(cache.grow(0, 17));
  CHECK(cache.table(0).size() == 2);
  CHECK(cache.grow(1, 128));
  CHECK(cache.free_blocks() == 0);
  CHECK_FALSE(cache.grow(2, 1));
  CHECK_FALSE(cache.grow(0, 33));
  CHECK(cache.table(0).size() == 2);  // it keeps what it has
  CHECK(cache.grow(0, 32));
  cache.end(1);
  CHECK(cache.grow(2, 128));
  KvCache usual(config(), options(KvMode::paged, 0), 2, 4 * k_kv_block * k_position, 600);
  CHECK(usual.block() == k_kv_block);
}

TEST_CASE("a context that does not fit the DDR is refused with the bytes of eq. 16", "[kv]") {
  const auto complaint = [](const KvOptions& how, std::int64_t budget, std::int64_t longest) {
    return error_of([&] { KvCache(config(), how, 2, budget, longest); });
  };
  CHECK(complaint(options(KvMode::reserve, 0), 100 * k_position, 100) == "");
  CHECK_THAT(complaint(options(KvMode::reserve, 0), 100 * k_position - 1, 100),
             Catch::StartsWith("KV cache: a context of 100 positions needs 51200 bytes of DDR (512 a position), 51199 "
                               "are left beside the weights; "));
  CHECK(complaint(options(KvMode::paged, 64), 128 * k_position, 100) == "");
  CHECK_THAT(complaint(options(KvMode::paged, 64), 128 * k_position - 1, 100),
             Catch::Contains("a context of 100 positions needs 65536 bytes of DDR (512 a position), 65535 are left"));
  CHECK_THAT(complaint(options(KvMode::reserve, 0), -5, 100), Catch::Contains("0 are left"));
  KvCache cache(config(), options(KvMode::reserve, 0), 2, 1000 * k_position, 100);
  CHECK(error_of([&] { cache.begin(0, 101); }) == "KV cache: a sequence of 101 positions, made for at most 100");
  CHECK(cache.begin(0, 50));
  CHECK(error_of([&] { cache.begin(0, 1); }) == "KV cache: sequence 0 has begun already");
  CHECK(error_of([&] { cache.grow(0, 51); }) == "KV cache: 51 positions of sequence 0, which began with room for 50");
  cache.end(77);  // that never began
}

TEST_CASE("whatever sequences come, grow and go, no block is in two of them, and all are free at the end", "[kv]") {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&](std::int64_t end) { return static_cast<std::int64_t>(random()) % end; };
    const KvMode mode = seed % 2 == 0 ? KvMode::paged : KvMode::reserve;
    const std::int64_t block = 4 * (1 + below(5)), longest = 1 + below(150);
    const std::int64_t blocks = (longest + block - 1) / block + below(40);
    KvCache cache(config(), options(mode, block), 2, blocks * block * k_position, longest);
    REQUIRE(cache.blocks() == blocks);
    struct Sequence {
      std::int64_t most, length = 0;
    };
    std::map<std::int64_t, Sequence> running;
    std::size_t refused = 0;
    const auto needs = [&](std::int64_t positions) { return (positions + block - 1) / block; };
    for (int step = 0; step < 300; ++step) {
      const std::int64_t sequence = below(12), free = cache.free_blocks();
      const auto it = running.find(sequence);
      if (it == running.end()) {
        const std::int64_t most = 1 + below(longest);
        const bool fits = mode == KvMode::paged || needs(most) <= free;
        REQUIRE(cache.begin(sequence, most) == fits);
        if (fits) running[sequence] = {most};
        refused += fits ? 0 : 1;
      } else if (below(5) == 0) {
        cache.end(sequence);
        running.erase(it);
      } else {
        const std::int64_t to = std::min(it->second.most, it->second.length + 1 + below(20));
        const bool fits = needs(to) - std::ssize(cache.table(sequence)) <= free;
        REQUIRE(cache.grow(sequence, to) == fits);
        if (fits) it->second.length = to;
        refused += fits ? 0 : 1;
        if (mode == KvMode::reserve) REQUIRE(fits);  // that is what it reserved for
      }
      std::set<std::int64_t> taken;
      std::int64_t count = 0;
      for (const auto& [id, its] : running) {
        REQUIRE(std::ssize(cache.table(id)) == needs(mode == KvMode::reserve ? its.most : its.length));
        for (const std::int64_t number : cache.table(id)) {
          REQUIRE(number >= 0);
          REQUIRE(number < blocks);
          REQUIRE(taken.insert(number).second);
          ++count;
        }
      }
      REQUIRE(cache.free_blocks() == blocks - count);
    }
    for (const auto& [id, its] : running) cache.end(id);
    REQUIRE(cache.free_blocks() == blocks);
    if (seed == 1 || seed == 2) CHECK(blocks > 0);
  }
}

TEST_CASE("values that live at the same time share no byte of the arena", "[arena]") {
  std::int64_t sum_of_all = 0, sum_of_plans = 0;
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&](int end) { return static_cast<int>(random() % static_cast<std::uint32_t>(end)); };
    const std::int64_t alignment = seed % 3 == 0 ? 64 : 256;
    std::vector<Lifetime> values(static_cast<std::size_t>(below(40)));
    for (Lifetime& value : values) {
      value.bytes = 1 + below(seed % 2 == 0 ? 5000 : 300);
      value.first = below(20);
      value.last = value.first + below(6);
    }
    const ArenaPlan plan = plan_arena(values, alignment);
    REQUIRE(plan.offsets.size() == values.size());
    std::int64_t most = 0;  // at a time, the least any plan needs
    for (int step = 0; step < 26; ++step) {
      std::int64_t now = 0;
      for (const Lifetime& value : values) now += value.first <= step && step <= value.last ? value.bytes : 0;
      most = std::max(most, now);
    }
    CHECK(plan.bytes >= most);
    for (std::size_t a = 0; a < values.size(); ++a) {
      REQUIRE(plan.offsets[a] >= 0);
      REQUIRE(plan.offsets[a] % alignment == 0);
      REQUIRE(plan.offsets[a] + values[a].bytes <= plan.bytes);
      sum_of_all += values[a].bytes;
      for (std::size_t b = 0; b < a; ++b) {
        if (values[a].last < values[b].first || values[b].last < values[a].first) continue;
        REQUIRE((plan.offsets[a] + values[a].bytes <= plan.offsets[b] ||
                 plan.offsets[b] + values[b].bytes <= plan.offsets[a]));
      }
    }
    sum_of_plans += plan.bytes;
  }
  CHECK(sum_of_plans < sum_of_all / 2);  // memory is used again: a value lives 4.5 of 23 steps at most
  CHECK(plan_arena({}, 256).bytes == 0);
  CHECK(plan_arena({{300, 0, 0}, {300, 1, 1}}, 256).bytes == 512);
  CHECK(plan_arena({{300, 0, 1}, {300, 1, 1}}, 256).bytes == 1024);
}
