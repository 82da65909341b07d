// SPDX-License-Identifier: Apache-2.0
// The three attentions on the cluster against softmax and products in long double with libm.
#include "kernels/attention/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "bench_cluster.h"
#include "kernels/library.h"
#include "reference.h"
#include "row_reference.h"

namespace mtsim::kernels {
namespace {

constexpr float k_infinity = std::numeric_limits<float>::infinity();
constexpr long double k_u = 0x1p-24L;

/// Rows in the order of AttentionShape's tensors, K not transposed: q and o [batch, seq_q, heads, d], k and v
/// [batch, kv_heads, seq_k, d]. Rounded to the type.
struct Tensors {
  std::vector<float> q, k, v;
};

Tensors random_tensors(const AttentionShape& s, float q_scale = 1) {
  const std::int64_t keys = s.batch * s.kv_heads * s.seq_k;
  Tensors t{random_matrix(s.batch * s.seq_q * s.heads, s.head_dim, 1), random_matrix(keys, s.head_dim, 2),
            random_matrix(keys, s.head_dim, 3)};
  for (float& value : t.q) value *= q_scale;
  for (auto* values : {&t.q, &t.k, &t.v}) *values = rounded(std::move(*values), s.dtype);
  return t;
}

/// [heads, seq_k, d] to the cache's blocks: [heads, blocks, block, d], or with `transpose` [heads, blocks, d, block].
/// What no key fills is NaN, which nobody may read.
std::vector<float> cache(const AttentionShape& s, const std::vector<float>& values, bool transpose) {
  const std::int64_t d = s.head_dim, block = s.block(), heads = s.batch * s.kv_heads;
  std::vector<float> out(static_cast<std::size_t>(s.kv_elements()), std::numeric_limits<float>::quiet_NaN());
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t key = 0; key < s.seq_k; ++key) {
      const std::int64_t start = (h * s.blocks() + key / block) * block * d, at = key % block;
      for (std::int64_t i = 0; i < d; ++i)
        out[static_cast<std::size_t>(start + (transpose ? i * block + at : at * d + i))] =
            values[static_cast<std::size_t>((h * s.seq_k + key) * d + i)];
    }
  }
  return out;
}

/// Bounds, u = 2^-24. A score has d fused multiply-adds and up to three additions of partial sums: it is off by at most
/// e = (d + 3) u |q||k|, the paper's by u |scale s| more, which scales it apart. With x = scale (s - m), the weight
/// exp(x) is off relatively by scale e, by 2 u |x| (two roundings of x; over several passes the distances of the maxima
/// add up to x too), and in each of P passes by the exponential of the rescaling (1.8 u), two products and its own
/// exponential: E = exp(scale e + 2 u |x| + 6 (P + 1) u) - 1. What is below exp(-87) is exp(-87). With n keys the
/// products with V are n fused multiply-adds (3 additions more), the sum of weights goes through n / 32 + 8 additions
/// and P products, 1 / sum and the last product take 3 u. Hence, for weights w that sum to 1:
///   |O - o| <= (sum w |v| (E + (n + 3 + P) u) + |o| (sum w E + (n / 32 + 11 + P) u)) / (1 - sum w E) + exp(-87) (sum
///   |v| + n |o|)
/// and 2^-11 |o| or 2^-25 of FP16. Scores that are stored in FP16 are off by 2^-11 |s| more, weights by 2^-11 w or
/// 2^-25.
void expect_row(const AttentionShape& s, const AttentionChoice& choice, std::int64_t passes, std::span<const float> q,
                std::span<const float> k, std::span<const float> v, std::int64_t keys, std::span<const float> o,
                const std::string& where) {
  const std::int64_t d = s.head_dim;
  const long double apart = choice.sequence == AttentionSequence::paper ? k_u : 0;
  const long double stored = choice.scores == DType::f16 ? 0x1p-11L : 0;
  const auto at = [](std::span<const float> x, std::int64_t i) {
    return static_cast<long double>(x[static_cast<std::size_t>(i)]);
  };
  std::vector<long double> score, error;
  bool bad = false;
  long double most = -std::numeric_limits<long double>::infinity();
  for (std::int64_t j = 0; j < keys; ++j) {
    long double sum = 0, magnitude = 0;
    for (std::int64_t i = 0; i < d; ++i) {
      sum += at(q, i) * at(k, j * d + i);
      magnitude += std::abs(at(q, i) * at(k, j * d + i));
    }
    bad = bad || std::isnan(sum) || (std::isinf(sum) && sum > 0);
    score.push_back(sum);
    error.push_back(std::isinf(magnitude) ? 0
                                          : s.scale * ((d + 3) * k_u * magnitude + (apart + stored) * std::abs(sum)));
    most = std::max(most, sum);
  }
  const bool masked = std::isinf(most) && most < 0;
  long double total = 0, total_error = 0;
  std::vector<long double> weight, weight_error;
  for (std::int64_t j = 0; j < keys && !bad && !masked; ++j) {
    const auto i = static_cast<std::size_t>(j);
    const bool none = std::isinf(score[i]);
    const long double x = none ? 0 : s.scale * (score[i] - most);
    const long double p = none ? 0 : std::exp(x);
    const long double e =
        std::exp(error[i] + 2 * k_u * std::min<long double>(std::abs(x), 90) + 6 * (passes + 1) * k_u) - 1;
    weight.push_back(p);
    weight_error.push_back(p * e);
    total += p;
    total_error += p * e;
  }
  const auto n = static_cast<long double>(keys);
  for (std::int64_t c = 0; c < d; ++c) {
    const float actual = o[static_cast<std::size_t>(c)];
    if (bad) {
      if (!std::isnan(actual)) FAIL_CHECK(fmt::format("{} column {}: {} and not NaN", where, c, actual));
      continue;
    }
    if (masked) {
      if (actual != 0) FAIL_CHECK(fmt::format("{} column {}: {} in a row that is all masked", where, c, actual));
      continue;
    }
    long double value = 0, first = 0, sum_v = 0;
    for (std::int64_t j = 0; j < keys; ++j) {
      const long double x = at(v, j * d + c);
      const auto i = static_cast<std::size_t>(j);
      if (weight[i] > 0) value += weight[i] / total * x;
      first += (weight_error[i] + weight[i] * ((n + 3 + passes) * k_u + stored)) / total * std::abs(x);
      if (stored > 0) first += 0x1p-25L * std::abs(x);
      sum_v += std::abs(x);
    }
    if (std::isnan(value) || std::isinf(value)) {
      const bool right = std::isnan(value) ? std::isnan(actual) : actual == value;
      if (!right) FAIL_CHECK(fmt::format("{} column {}: {} and not {}", where, c, actual, static_cast<double>(value)));
      continue;
    }
    const long double relative = total_error / total;
    REQUIRE(relative < 0.5L);
    long double bound = (first + std::abs(value) * (relative + (n / 32 + 11 + passes) * k_u)) / (1 - relative) +
                        std::exp(-87.0L) * (sum_v + n * std::abs(value)) + 0x1p-149L;
    if (s.dtype == DType::f16) bound += std::max(0x1p-11L * (std::abs(value) + bound), 0x1p-25L);
    if (!(std::abs(actual - value) <= bound)) {
      FAIL_CHECK(fmt::format("{} column {}: {} and not {} within {}", where, c, actual, static_cast<double>(value),
                             static_cast<double>(bound)));
      return;
    }
  }
}

std::span<const float> part(const std::vector<float>& all, std::int64_t first, std::int64_t count) {
  return std::span(all).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
}

struct Run {
  std::int64_t cycles = 0;
  std::vector<float> o;
};

Run launch(sim::Cluster& cluster, const AttentionPlan& plan, const AttentionOperands& operands) {
  Run run;
  for (const sim::DspProgram& program : attention_programs(cluster, plan, operands)) {
    const sim::LaunchResult result = cluster.launch(program);
    expect_clean(result);
    run.cycles += result.cycles;
  }
  return run;
}

/// Every element, the bytes around O, findings, and the cycles of the timing depth.
std::vector<float> check(const AttentionShape& shape, const AttentionChoice& choice, const Tensors& tensors,
                         const AttentionTiles& tiles = {}) {
  const AttentionPlan plan = plan_attention(shape, tiles, choice, machine());
  INFO(fmt::format("{} {} {} scores: {} heads of {}, {} x {}, {}, mr={} mc={} pass={}", to_string(choice.variant),
                   choice.sequence == AttentionSequence::paper ? "paper" : "best", to_string(choice.scores),
                   shape.heads, shape.head_dim, shape.seq_q, shape.seq_k, to_string(shape.dtype), plan.tiles.mr,
                   plan.tiles.mc, plan.tiles.pass));
  sim::Cluster& cluster = fresh({sim::Depth::functional, false});
  AttentionOperands operands{upload(cluster, tensors.q, shape.dtype),
                             upload(cluster, cache(shape, tensors.k, true), shape.dtype),
                             upload(cluster, cache(shape, tensors.v, false), shape.dtype),
                             {}};
  const ResultArea area(cluster, shape.q_elements(), shape.dtype);
  operands.o = area.data();
  const Run functional = launch(cluster, plan, operands);
  const std::vector<float> o = area.read(cluster);

  const std::int64_t d = shape.head_dim, passes = (shape.seq_k + 127) / 128;
  for (std::int64_t row = 0; row < shape.batch * shape.seq_q * shape.heads; ++row) {
    const std::int64_t head = row % shape.heads, token = row / shape.heads % shape.seq_q;
    const std::int64_t batch = row / shape.heads / shape.seq_q;
    const std::int64_t kv = (batch * shape.kv_heads + head / shape.group()) * shape.seq_k * d;
    const std::int64_t keys =
        shape.causal ? std::clamp<std::int64_t>(shape.seq_k - shape.seq_q + token + 1, 0, shape.seq_k) : shape.seq_k;
    expect_row(shape, choice, passes, part(tensors.q, row * d, d), part(tensors.k, kv, shape.seq_k * d),
               part(tensors.v, kv, shape.seq_k * d), keys, part(o, row * d, d),
               fmt::format("batch {} token {} head {}", batch, token, head));
  }

  sim::Cluster& timing = fresh({sim::Depth::timing});
  const std::int64_t bytes = bytes_of(shape.dtype);
  const AttentionOperands nothing{
      timing.ddr_malloc(shape.q_elements() * bytes), timing.ddr_malloc(shape.kv_elements() * bytes),
      timing.ddr_malloc(shape.kv_elements() * bytes), timing.ddr_malloc(shape.q_elements() * bytes)};
  CHECK(launch(timing, plan, nothing).cycles == functional.cycles);
  return o;
}

AttentionShape shape_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t seq_q, std::int64_t seq_k,
                        std::int64_t head_dim, bool causal, DType dtype = DType::f32) {
  AttentionShape shape;
  shape.heads = heads;
  shape.kv_heads = kv_heads;
  shape.seq_q = seq_q;
  shape.seq_k = seq_k;
  shape.head_dim = head_dim;
  shape.causal = causal;
  shape.dtype = dtype;
  shape.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(head_dim)));
  return shape;
}

AttentionChoice any_choice() {
  using enum AttentionVariant;
  using enum AttentionSequence;
  return GENERATE(values<AttentionChoice>({{mt, best},
                                           {mt, paper},
                                           {flash, best},
                                           {flash, paper},
                                           {unfused, best},
                                           {unfused, paper},
                                           {unfused, best, DType::f16},
                                           {unfused, paper, DType::f16}}));
}

}  // namespace

TEST_CASE("attention of odd shapes agrees with libm in every variant", "[attention]") {
  const AttentionChoice choice = any_choice();
  const DType dtype = GENERATE(DType::f32, DType::f16);
  const bool causal = GENERATE(false, true);
  for (const auto& [heads, kv_heads, seq_q, seq_k, d] : std::vector<std::array<std::int64_t, 5>>{
           {1, 1, 1, 1, 16}, {2, 1, 5, 7, 48}, {2, 2, 67, 131, 64}, {8, 1, 19, 40, 80}, {1, 1, 1, 300, 128}}) {
    AttentionShape shape = shape_of(heads, kv_heads, seq_q, seq_k, d, causal, dtype);
    shape.batch = seq_q == 5 ? 2 : 1;
    check(shape, choice, random_tensors(shape, 4));
  }
}

TEST_CASE("attention over several blocks of keys, rounds of rows and passes", "[attention]") {
  const AttentionChoice choice = any_choice();
  const DType dtype = GENERATE(DType::f32, DType::f16);
  const bool causal = GENERATE(false, true);
  const AttentionShape shape = shape_of(1, 1, 83, 430, 32, causal, dtype);
  check(shape, choice, random_tensors(shape, 8), {.mr = 2, .mc = 128});
  if (choice.variant == AttentionVariant::mt)
    check(shape, choice, random_tensors(shape, 8), {.mr = 2, .mc = 128, .pass = 3});
}

TEST_CASE("attention over a cache of blocks, by eight query heads each", "[attention]") {
  const AttentionChoice choice = any_choice();
  const DType dtype = GENERATE(DType::f32, DType::f16);
  AttentionShape shape = shape_of(16, 2, 3, 210, 64, true, dtype);
  shape.kv_block = 64;
  check(shape, choice, random_tensors(shape, 8));
  shape = shape_of(8, 1, 1, 210, 128, true, dtype);  // a token is decoded
  shape.kv_block = 128;
  check(shape, choice, random_tensors(shape, 8));
}

TEST_CASE("scores that AM does not hold wait in GSM", "[attention]") {
  const AttentionSequence sequence = GENERATE(AttentionSequence::best, AttentionSequence::paper);
  const AttentionShape shape = shape_of(1, 1, 60, 1300, 128, false);
  const AttentionChoice choice{AttentionVariant::mt, sequence};
  const AttentionTiles tiles{.mr = 64, .mc = 512, .pass = 2};
  const AttentionPlan plan = plan_attention(shape, tiles, choice, machine());
  CHECK(plan.homes == 8);
  CHECK(plan.score_tiles < plan.homes);
  check(shape, choice, random_tensors(shape, 8), tiles);
}

TEST_CASE("attention takes every head_dim that is a multiple of 16 up to 256", "[attention]") {
  const AttentionChoice choice = any_choice();
  const std::int64_t d = GENERATE(16, 32, 96, 112, 144, 160, 208, 240, 256);
  const AttentionShape shape = shape_of(1, 1, 30, 140, d, d % 32 == 0, d % 96 == 16 ? DType::f16 : DType::f32);
  check(shape, choice, random_tensors(shape, 4));
}

TEST_CASE("scores up to 1e4 before scaling choose the largest", "[attention]") {
  const AttentionChoice choice = any_choice();
  AttentionShape shape = shape_of(1, 1, 40, 150, 64, false);
  Tensors tensors = random_tensors(shape);
  // Row r points along key r: a score of 1e4 there, and up to 1e4 of either sign elsewhere. In FP16 such scores are off
  // by 5, so that weights are by a factor of 2: there they go up to 1e3.
  const float length = choice.scores == DType::f16 ? 48 : 480;
  for (std::int64_t r = 0; r < shape.seq_q; ++r) {
    for (std::int64_t i = 0; i < shape.head_dim; ++i) {
      const auto at = static_cast<std::size_t>(r * 64 + i);
      tensors.q[at] = length * tensors.k[at];
    }
  }
  check(shape, choice, tensors);
  shape.causal = true;
  check(shape, choice, tensors);
}

TEST_CASE("a row whose keys are all masked is zero", "[attention]") {
  const AttentionChoice choice = any_choice();
  const DType dtype = GENERATE(DType::f32, DType::f16);
  const AttentionShape shape = shape_of(2, 1, 150, 40, 32, true, dtype);  // the first 110 tokens see nothing
  const std::vector<float> o = check(shape, choice, random_tensors(shape, 4));
  CHECK(o.front() == 0);
}

TEST_CASE("infinities and NaN come out as the reference propagates them", "[attention]") {
  const AttentionChoice choice = any_choice();
  const AttentionShape shape = shape_of(1, 1, 30, 150, 32, false);
  const auto k_at = [](std::int64_t key, std::int64_t i) { return static_cast<std::size_t>(key * 32 + i); };
  Tensors tensors = random_tensors(shape, 4);
  tensors.k[k_at(140, 5)] = k_infinity;  // a score of +inf or -inf, by the sign of q: NaN, or no weight
  check(shape, choice, tensors);
  tensors = random_tensors(shape, 4);
  tensors.k[k_at(3, 0)] = std::numeric_limits<float>::quiet_NaN();
  check(shape, choice, tensors);
  tensors = random_tensors(shape, 4);
  tensors.v[k_at(7, 2)] = k_infinity;
  tensors.v[k_at(130, 3)] = -k_infinity;
  tensors.v[k_at(9, 4)] = k_infinity;
  tensors.v[k_at(10, 4)] = -k_infinity;
  tensors.v[k_at(11, 6)] = std::numeric_limits<float>::quiet_NaN();
  check(shape, choice, tensors);
  tensors = random_tensors(shape, 4);
  for (std::int64_t i = 0; i < 32; ++i)
    tensors.q[static_cast<std::size_t>(i)] = std::numeric_limits<float>::quiet_NaN();
  check(shape, choice, tensors);
}

TEST_CASE("one launch decodes requests whose caches have any lengths", "[attention]") {
  const DType dtype = GENERATE(DType::f32, DType::f16);
  const bool many = GENERATE(false, true);  // more items than cores, or fewer
  const std::vector<std::int64_t> lengths =
      many ? std::vector<std::int64_t>{1, 700, 64, 65, 300, 2, 130, 640, 33} : std::vector<std::int64_t>{90, 513};
  AttentionShape shape = shape_of(many ? 8 : 16, many ? 4 : 2, 1, many ? 700 : 513, 64, false, dtype);
  shape.batch = static_cast<std::int64_t>(lengths.size());
  shape.kv_block = 64;
  const AttentionPlan plan = plan_attention_decode(shape, {}, machine());
  CHECK(plan.share == shape.group());  // a KV head is read once
  std::vector<Tensors> tensors;
  std::vector<float> q;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    AttentionShape one = shape;
    one.batch = 1;
    one.seq_k = lengths[i];
    tensors.push_back(random_tensors(one, 4 + static_cast<float>(i)));
    q.insert(q.end(), tensors[i].q.begin(), tensors[i].q.end());
    bytes += 2 * lengths[i] * shape.kv_heads * shape.head_dim * bytes_of(dtype);
  }
  const auto run = [&](sim::Cluster& cluster, const ResultArea& area) {
    std::vector<AttentionCache> caches;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      AttentionShape one = shape;
      one.batch = 1;
      one.seq_k = lengths[i];
      caches.push_back({lengths[i], upload(cluster, cache(one, tensors[i].k, true), dtype),
                        upload(cluster, cache(one, tensors[i].v, false), dtype)});
    }
    const sim::LaunchResult result =
        cluster.launch(attention_decode(cluster, plan, upload(cluster, q, dtype), area.data(), caches));
    expect_clean(result);
    const auto ddr = static_cast<std::size_t>(sim::Space::ddr), am = static_cast<std::size_t>(sim::Space::am);
    // In FP16, Q comes to AM too.
    CHECK(result.bytes.read[ddr][am] == bytes + (dtype == DType::f16 ? shape.q_elements() * 2 : 0));
    return result.cycles;
  };
  sim::Cluster& cluster = fresh({sim::Depth::functional, false});
  const ResultArea area(cluster, shape.q_elements(), dtype);
  const std::int64_t cycles = run(cluster, area);
  const std::vector<float> o = area.read(cluster);
  const std::int64_t d = shape.head_dim;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      const std::int64_t kv = head / shape.group() * lengths[i] * d;
      expect_row(shape, {}, (lengths[i] + 127) / 128, part(tensors[i].q, head * d, d),
                 part(tensors[i].k, kv, lengths[i] * d), part(tensors[i].v, kv, lengths[i] * d), lengths[i],
                 part(o, (static_cast<std::int64_t>(i) * shape.heads + head) * d, d),
                 fmt::format("request {} head {}", i, head));
    }
  }
  sim::Cluster& timing = fresh({sim::Depth::timing});
  const ResultArea timed(timing, shape.q_elements(), dtype);
  CHECK(run(timing, timed) == cycles);
}

TEST_CASE("decode waits for the DDR alone", "[attention]") {
  AttentionShape shape = shape_of(32, 8, 1, 4096, 128, false, DType::f16);
  shape.batch = 8;
  shape.kv_block = 512;
  sim::Cluster& cluster = fresh({sim::Depth::timing});
  std::vector<AttentionCache> caches;
  std::int64_t bytes = 0;
  for (std::int64_t i = 0; i < shape.batch; ++i) {
    const std::int64_t length = 4096 - 400 * i, size = 8 * ((length + 511) / 512) * 512 * 128 * 2;
    caches.push_back({length, cluster.ddr_malloc(size), cluster.ddr_malloc(size)});
    bytes += 2 * 8 * length * 128 * 2;
  }
  const AttentionPlan plan = plan_attention_decode(shape, {}, machine());
  const std::int64_t q_bytes = shape.q_elements() * 2;
  const sim::Pointer q = cluster.ddr_malloc(q_bytes), o = cluster.ddr_malloc(q_bytes);
  const std::int64_t cycles = cluster.launch(attention_decode(cluster, plan, q, o, caches)).cycles;
  const sim::MachineConfig config = machine();
  const double running = static_cast<double>(cycles) - config.cluster.launch_us * config.cycles_per_us();
  const double least = static_cast<double>(bytes) / config.bytes_per_cycle(config.ddr.bandwidth_gb_s);
  INFO(least / running);
  CHECK(least / running >= 0.9);
}

TEST_CASE("what attention cannot do is refused with the reason", "[attention]") {
  const auto complaint = [](const AttentionShape& shape, const AttentionTiles& tiles,
                            AttentionVariant variant) -> std::string {
    try {
      plan_attention(shape, tiles, {variant, AttentionSequence::best}, machine());
    } catch (const KernelError& error) {
      return error.what();
    }
    return "no complaint";
  };
  using enum AttentionVariant;
  const AttentionShape shape = shape_of(4, 4, 512, 512, 128, false);
  CHECK(complaint(shape_of(4, 3, 8, 8, 64, false), {}, mt) ==
        "attention: 4 heads cannot share 3 kv_heads; kv_heads must divide heads");
  CHECK(complaint(shape_of(4, 4, 8, 8, 40, false), {}, mt) ==
        "attention: head_dim 40 is no multiple of 16 from 16 to 256");
  CHECK(complaint(shape, {.mr = 64}, mt) == "no complaint");
  CHECK(complaint(shape, {.mr = 96}, mt) ==
        "attention mt: needs 73728 bytes of SM, 65536 available (mr=96 rows of Q take 49152, two chunks of weights "
        "24576); use a smaller mr, mc, pass or head_dim");
  CHECK(complaint(shape, {.mc = 1024}, flash).starts_with("attention flash: needs 1"));
  CHECK(complaint(shape, {.mc = 100}, mt) == "attention: mc=100 is no multiple of 128");
  CHECK(complaint(shape, {.pass = 2}, flash) == "attention flash: pass=2 is of mt alone");
  CHECK(complaint(shape, {.mr = 64, .pass = 9}, mt).find("bytes of GSM, 6291456 available") != std::string::npos);
}

}  // namespace mtsim::kernels
