// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding: its sine and cosine against libm, its rotations against FP64 with a bound derived from the
// arithmetic, on the bare executor and on the cluster.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "bench_cluster.h"
#include "kernels/gemm/gemm.h"
#include "kernels/library.h"
#include "kernels/rope/rope.h"
#include "reference.h"
#include "sim/core/executor.h"

namespace mtsim::kernels {
namespace {

constexpr double k_ulps = 3.5;  // what the paper's vm_sinf32_u35 and vm_cosf32_u35 promise

/// rope_angles on one core's memories.
class Angles {
 public:
  static constexpr std::int64_t k_columns = 32, k_most_rows = 1024;

  struct Row {
    std::array<float, k_columns> cosine, sine;
  };

  Angles() : m_decoded(program("rope_angles"), {}) {}

  /// The 32 frequencies at `rows` consecutive positions.
  std::vector<Row> run(const std::array<float, k_columns>& frequencies, float position, std::int64_t rows) {
    constexpr std::uint64_t k_from = 0, k_cosine = 1024, k_sine = k_cosine + 128 * k_most_rows;
    std::memcpy(m_am.data() + k_from, frequencies.data(), sizeof frequencies);
    const std::uint64_t bits = std::bit_cast<std::uint32_t>(position);
    const std::uint64_t arguments[] = {
        bits << 32 | bits, k_from, k_cosine, k_sine, static_cast<std::uint64_t>(rows), 128};
    for (std::size_t i = 0; i < std::size(arguments); ++i)
      m_executor.registers().r[m_decoded.program().parameters[i].reg.index] = arguments[i];
    m_executor.registers().r[63] = sim::k_return_address;
    REQUIRE(m_executor.run(m_decoded).status == sim::RunStatus::done);
    std::vector<Row> result(static_cast<std::size_t>(rows));
    for (std::size_t row = 0; row < result.size(); ++row) {
      std::memcpy(result[row].cosine.data(), m_am.data() + k_cosine + 128 * row, 128);
      std::memcpy(result[row].sine.data(), m_am.data() + k_sine + 128 * row, 128);
    }
    return result;
  }

 private:
  std::vector<std::byte> m_sm = std::vector<std::byte>(65536), m_am = std::vector<std::byte>(786432);
  sim::DecodedProgram m_decoded;
  sim::Executor m_executor{m_sm, m_am};
};

/// Distance from the exact value in units of its last place in FP32.
double ulps(float value, double exact) {
  const int exponent = std::max(std::ilogb(exact), -126);
  return std::abs(static_cast<double>(value) - exact) / std::ldexp(1.0, exponent - 23);
}

struct WorstUlps {
  double sine = 0, cosine = 0;
  std::int64_t angles = 0;

  void add(const std::array<float, Angles::k_columns>& frequencies, float position,
           const std::vector<Angles::Row>& rows) {
    for (std::size_t row = 0; row < rows.size(); ++row) {
      for (std::size_t i = 0; i < frequencies.size(); ++i) {
        const float angle = (position + static_cast<float>(row)) * frequencies[i];
        sine = std::max(sine, angle == 0 ? std::abs(static_cast<double>(rows[row].sine[i]))
                                         : ulps(rows[row].sine[i], std::sin(static_cast<double>(angle))));
        cosine = std::max(cosine, ulps(rows[row].cosine[i], std::cos(static_cast<double>(angle))));
        ++angles;
      }
    }
  }
};

double to_double(float value) { return static_cast<double>(value); }

/// What an element must be, and how far the arithmetic may put it away.
struct Expected {
  double value = 0, bound = 0;
};

/// x cos - y sin, or with a negative sine x cos + y sin. Cosine and sine are off by 3.5 ULP each, at most 3.5 * 2^-23
/// relative; the product x cos is rounded to FP32 and the fused sum again; FP16 rounds once more. Below the normal
/// range a rounding is off by half the smallest subnormal instead.
Expected rotated(double x, double y, double cosine, double sine, DType dtype) {
  const double u32 = 0x1p-24, u16 = 0x1p-11;
  Expected result{x * cosine - y * sine, 0};
  const double off = 2 * k_ulps * u32, terms = std::abs(x * cosine) + std::abs(y * sine);
  result.bound = off * terms + u32 * (1 + off) * std::abs(x * cosine) + 0x1p-149;
  result.bound += u32 * (std::abs(result.value) + result.bound);
  if (dtype == DType::f16) result.bound += u16 * (std::abs(result.value) + result.bound) + 0x1p-25;
  return result;
}

struct Case {
  RopeShape shape;
  RopePairs pairs = RopePairs::interleaved;
  DType dtype = DType::f32;
  RopePositions positions;
  std::int64_t tile_rows = 0;

  std::int64_t columns() const { return shape.heads * shape.head_dim; }
  std::size_t elements() const { return static_cast<std::size_t>(shape.rows * columns()); }
};

std::vector<Expected> reference(const Case& c, const std::vector<float>& x, const std::vector<float>& inv_freq) {
  std::vector<Expected> result(c.elements());
  const std::int64_t half = c.shape.head_dim / 2;
  for (std::int64_t row = 0; row < c.shape.rows; ++row) {
    for (std::int64_t head = 0; head < c.shape.heads; ++head) {
      for (std::int64_t i = 0; i < half; ++i) {
        const float angle = static_cast<float>(c.positions.at(row)) * inv_freq[static_cast<std::size_t>(i)];
        const double cosine = std::cos(to_double(angle)), sine = std::sin(to_double(angle));
        const std::int64_t start = row * c.columns() + head * c.shape.head_dim;
        const auto a = static_cast<std::size_t>(start + (c.pairs == RopePairs::half ? i : 2 * i));
        const auto b = static_cast<std::size_t>(c.pairs == RopePairs::half ? start + i + half : start + 2 * i + 1);
        result[a] = rotated(to_double(x[a]), to_double(x[b]), cosine, sine, c.dtype);
        result[b] = rotated(to_double(x[b]), to_double(x[a]), cosine, -sine, c.dtype);
      }
    }
  }
  return result;
}

std::vector<std::byte> to_bytes(const std::vector<float>& values, DType dtype) {
  std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(bytes_of(dtype)));
  if (dtype == DType::f32) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
  } else {
    std::memcpy(bytes.data(), bits_f16(values).data(), bytes.size());
  }
  return bytes;
}
std::vector<float> from_bytes(std::span<const std::byte> bytes, DType dtype) {
  std::vector<float> values(bytes.size() / static_cast<std::size_t>(bytes_of(dtype)));
  if (dtype == DType::f32) {
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  std::vector<std::uint16_t> bits(values.size());
  std::memcpy(bits.data(), bytes.data(), bytes.size());
  return values_f16(bits);
}

struct Run {
  sim::LaunchResult result;
  std::vector<float> y;
  bool guards_intact = true;
};

Run run(const Case& c, const std::vector<float>& x, const std::vector<float>& inv_freq,
        sim::Depth depth = sim::Depth::functional) {
  const RopePlan plan = plan_rope(c.shape, c.pairs, c.dtype, c.positions, c.tile_rows, machine());
  sim::Cluster& cluster = fresh({depth});
  constexpr std::int64_t k_guard = 512;
  const std::vector<std::byte> bytes = to_bytes(x, c.dtype);
  const auto size = static_cast<std::int64_t>(bytes.size());
  const sim::Pointer guarded = cluster.ddr_malloc(size + 2 * k_guard);
  const RopeOperands operands{cluster.ddr_malloc(size), cluster.ddr_malloc(4 * plan.layout.angles), guarded + k_guard};
  std::vector<std::byte> area(static_cast<std::size_t>(size + 2 * k_guard), std::byte{0x5A});
  cluster.write(guarded, area);
  cluster.write(operands.x, bytes);
  const std::vector<float> frequencies = plan.layout.frequencies(inv_freq);
  cluster.write(operands.frequencies, std::as_bytes(std::span(frequencies)));
  Run run{cluster.launch(rope(cluster, plan, operands)), {}};
  if (depth == sim::Depth::timing) return run;
  cluster.read(guarded, area);
  const auto untouched = [](std::byte b) { return b == std::byte{0x5A}; };
  run.guards_intact = std::all_of(area.begin(), area.begin() + k_guard, untouched) &&
                      std::all_of(area.end() - k_guard, area.end(), untouched);
  run.y = from_bytes(std::span(area).subspan(k_guard, static_cast<std::size_t>(size)), c.dtype);
  return run;
}

void check_against_reference(const Case& c, const std::vector<float>& values) {
  const std::vector<float> x = rounded(values, c.dtype);
  const std::vector<float> inv_freq = rope_inv_freq(c.shape.head_dim, 10000);
  const Run got = run(c, x, inv_freq);
  CHECK_FALSE(got.result.fault);
  CHECK(got.result.findings.empty());
  CHECK(got.guards_intact);
  const std::vector<Expected> expected = reference(c, x, inv_freq);
  double worst = 0;  // error over bound
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double value = to_double(got.y[i]);
    if (!std::isfinite(expected[i].value)) {
      wrong += std::isnan(expected[i].value) ? !std::isnan(value) : value != expected[i].value;
    } else {
      worst = std::max(worst, std::abs(value - expected[i].value) / expected[i].bound);
    }
  }
  CHECK(wrong == 0);
  CHECK(worst <= 1);
  CHECK(run(c, x, inv_freq, sim::Depth::timing).result.cycles == got.result.cycles);
}

std::string name_of(const Case& c) {
  return fmt::format("{} x {} heads of {}, {}, {}", c.shape.rows, c.shape.heads, c.shape.head_dim,
                     c.pairs == RopePairs::half ? "half" : "interleaved", to_string(c.dtype));
}

}  // namespace

TEST_CASE("sine and cosine of rope_angles are right to 3.5 ULP for angles up to 2^17", "[rope]") {
  Angles angles;
  WorstUlps worst;
  std::mt19937 random(1);
  std::array<float, Angles::k_columns> frequencies;

  // Positions 0 to 131071 times random frequencies of all sizes, both signs.
  for (std::int64_t first = 0; first < k_rope_max_position; first += Angles::k_most_rows) {
    for (float& f : frequencies) {
      f = std::ldexp(std::uniform_real_distribution<float>(0.5, 1)(random),
                     std::uniform_int_distribution(-20, 0)(random));
      if (random() % 2 == 0) f = -f;
    }
    const auto position = static_cast<float>(first);
    worst.add(frequencies, position, angles.run(frequencies, position, Angles::k_most_rows));
  }
  // Where sine or cosine is nearly 0: the FP32 next to each multiple of pi/2, and their neighbours.
  std::size_t filled = 0;
  for (std::int64_t n = 1; static_cast<double>(n) * M_PI_2 < static_cast<double>(k_rope_max_position); ++n) {
    const auto nearest = static_cast<float>(static_cast<double>(n) * M_PI_2);
    for (const float angle : {std::nextafter(nearest, 0.0f), nearest, std::nextafter(nearest, 1e6f)}) {
      frequencies[filled++] = n % 2 == 0 ? angle : -angle;
      if (filled < frequencies.size()) continue;
      worst.add(frequencies, 1.0f, angles.run(frequencies, 1.0f, 1));
      filled = 0;
    }
  }
  WARN(fmt::format("rope_angles: at most {:.3f} ULP (sine), {:.3f} ULP (cosine) over {} angles", worst.sine,
                   worst.cosine, worst.angles));
  CHECK(worst.sine <= k_ulps);
  CHECK(worst.cosine <= k_ulps);
  CHECK(worst.angles > 4'000'000);
}

TEST_CASE("rope_angles gives 0 and 1 for 0, a subnormal angle for itself, and NaN for infinite ones", "[rope]") {
  using limits = std::numeric_limits<float>;
  std::array<float, Angles::k_columns> frequencies{};
  const float special[] = {0.0f, -0.0f, limits::denorm_min(), -limits::min(), limits::infinity(), limits::quiet_NaN()};
  std::copy(std::begin(special), std::end(special), frequencies.begin());
  Angles angles;
  const Angles::Row row = angles.run(frequencies, 1.0f, 1)[0];
  CHECK(same_bits(row.sine[0], 0.0f));
  CHECK(row.sine[1] == 0.0f);
  CHECK(row.sine[2] == limits::denorm_min());
  CHECK(row.sine[3] == -limits::min());
  for (int i = 0; i < 4; ++i) CHECK(row.cosine[i] == 1.0f);
  for (int i = 4; i < 6; ++i) {
    CHECK(std::isnan(row.sine[i]));
    CHECK(std::isnan(row.cosine[i]));
  }
}

TEST_CASE("rope equals FP64 within the bound of its arithmetic, and takes the same cycles in both depths", "[rope]") {
  const auto pairs = GENERATE(RopePairs::interleaved, RopePairs::half);
  const DType dtype = GENERATE(DType::f32, DType::f16);
  // Whole vectors, padded heads, small heads that count as one, one row, a last tile that is shorter.
  const auto [rows, heads, head_dim, tile_rows] =
      GENERATE(std::array<std::int64_t, 4>{5, 3, 128, 0}, std::array<std::int64_t, 4>{61, 2, 64, 2},
               std::array<std::int64_t, 4>{30, 8, 8, 0}, std::array<std::int64_t, 4>{7, 5, 80, 0},
               std::array<std::int64_t, 4>{1, 9, 256, 0}, std::array<std::int64_t, 4>{49, 3, 6, 1},
               std::array<std::int64_t, 4>{3, 1, 2, 0}, std::array<std::int64_t, 4>{26, 5, 192, 0});
  const Case c{{rows, heads, head_dim}, pairs, dtype, {k_rope_max_position - rows, {}}, tile_rows};
  INFO(name_of(c));
  check_against_reference(c, random_matrix(rows, heads * head_dim, 7));
}

TEST_CASE("rope takes a position a row", "[rope]") {
  const auto pairs = GENERATE(RopePairs::interleaved, RopePairs::half);
  const Case c{{8, 4, 128}, pairs, DType::f32, {0, {131071, 5, 6, 7, 0, 0, 1000, 999}}};
  check_against_reference(c, random_matrix(8, 512, 3));
}

TEST_CASE("rope may write over its input", "[rope]") {
  const RopePlan plan = plan_rope({50, 4, 64}, RopePairs::half, DType::f32, {}, 1, machine());
  const std::vector<float> x = random_matrix(50, 256, 1), inv_freq = rope_inv_freq(64, 10000);
  const Run apart = run({plan.shape, RopePairs::half}, x, inv_freq);
  sim::Cluster& cluster = fresh();
  const RopeOperands operands{cluster.ddr_malloc(50 * 1024), cluster.ddr_malloc(4 * plan.layout.angles), {}};
  cluster.write(operands.x, std::as_bytes(std::span(x)));
  const std::vector<float> frequencies = plan.layout.frequencies(inv_freq);
  cluster.write(operands.frequencies, std::as_bytes(std::span(frequencies)));
  const sim::LaunchResult result = cluster.launch(rope(cluster, plan, {operands.x, operands.frequencies, operands.x}));
  CHECK(result.findings.empty());
  std::vector<float> y(x.size());
  cluster.read(operands.x, std::as_writable_bytes(std::span(y)));
  CHECK(std::equal(y.begin(), y.end(), apart.y.begin(), same_bits));
}

TEST_CASE("rope passes infinities, NaN, signed zeros and subnormals on", "[rope]") {
  using limits = std::numeric_limits<float>;
  const auto pairs = GENERATE(RopePairs::interleaved, RopePairs::half);
  const DType dtype = GENERATE(DType::f32, DType::f16);
  const Case c{{4, 2, 128}, pairs, dtype, {0, {0, 1, 50000, 3}}};
  const float large = dtype == DType::f16 ? 65504.0f : limits::max() / 2;  // of FP32 twice that would overflow inside
  const std::vector<float> special = {limits::infinity(),
                                      -limits::infinity(),
                                      limits::quiet_NaN(),
                                      -0.0f,
                                      0.0f,
                                      1.0f,
                                      dtype == DType::f16 ? 0x1p-24f : limits::denorm_min(),
                                      large};
  std::vector<float> x(c.elements());
  std::mt19937 random(5);
  std::generate(x.begin(), x.end(), [&] { return special[random() % (dtype == DType::f16 ? 7 : 8)]; });
  check_against_reference(c, x);
}

TEST_CASE("RoPE fused into a GEMM gives the bits of a GEMM with rope behind it, in the same cycles in both depths",
          "[rope][gemm]") {
  struct Fused {
    GemmShape shape;
    DType dtype;
    GemmChoice choice;
    std::string tiles;
    RopeEpilogue rope;
  };
  using enum GemmDataflow;
  const RopePositions listed{0, {5, 6, 7, 131071, 0, 9, 10, 3}};
  const auto c = GENERATE_COPY(values<Fused>({
      // Rows, columns and k that end within tiles; two blocks of rows; values behind the heads.
      {{100, 640, 300}, DType::f32, {large_m}, "mg=60,kg=200,k2=100", {RopePairs::interleaved, 128, 512, {7, {}}}},
      {{100, 640, 300}, DType::f32, {large_m, GemmVariant::paper}, "mg=60,k2=100", {RopePairs::half, 64, 512, {7, {}}}},
      // Angles strip by strip: Y fills the AM.
      {{720, 2048, 256}, DType::f32, {large_m}, "", {RopePairs::interleaved, 128, 0, {500, {}}}},
      // FP16: sums that stay in AM, that move as FP16, that move as FP32; FP16 sums.
      {{50, 768, 264}, DType::f16, {large_m}, "k2=128,n2=256", {RopePairs::half, 128, 0, {99000, {}}}},
      {{50, 768, 264},
       DType::f16,
       {large_m, GemmVariant::paper},
       "kg=128,k2=128,n2=256",
       {RopePairs::interleaved, 128}},
      {{50, 768, 264},
       DType::f16,
       {large_m, GemmVariant::paper, GemmSums::f32},
       "kg=128,k2=128,n2=256",
       {RopePairs::half, 256}},
      {{50, 768, 72}, DType::f16, {large_m, GemmVariant::best, GemmSums::f16}, "n2=256", {RopePairs::interleaved, 64}},
      // One row of a batch a position; small heads that count together.
      {{8, 4096, 200}, DType::f32, {small_m}, "", {RopePairs::half, 128, 3072, listed}},
      {{8, 2048, 200}, DType::f16, {small_m}, "", {RopePairs::interleaved, 16, 0, listed}},
  }));
  const auto [m, n, k] = c.shape;
  INFO(fmt::format("m={} n={} k={} {} heads of {}", m, n, k, to_string(c.dtype), c.rope.head_dim));
  const std::vector<float> x = rounded(random_matrix(m, k, 1), c.dtype), w = rounded(random_matrix(k, n, 2), c.dtype);
  const std::vector<float> inv_freq = rope_inv_freq(c.rope.head_dim, 10000);
  const GemmTiles tiles = parse_gemm_tiles(c.tiles, c.dtype);
  GemmChoice choice = c.choice;
  const GemmRun plain = run_gemm(fresh(), plan_gemm(c.shape, c.dtype, tiles, choice, machine()), x, w);
  choice.epilogue = c.rope;
  const GemmPlan plan = plan_gemm(c.shape, c.dtype, tiles, choice, machine());
  const GemmRun fused = run_gemm(fresh(), plan, x, w, inv_freq);
  CHECK_FALSE(fused.result.fault);
  CHECK(fused.result.findings.empty());
  CHECK(fused.guards_intact);

  const std::int64_t columns = c.rope.columns == 0 ? n : c.rope.columns;
  const Case behind{{m, columns / c.rope.head_dim, c.rope.head_dim}, c.rope.pairs, c.dtype, c.rope.positions};
  std::vector<float> expected = plain.y, heads;
  for (std::int64_t row = 0; row < m; ++row)
    heads.insert(heads.end(), expected.begin() + row * n, expected.begin() + row * n + columns);
  heads = run(behind, heads, inv_freq).y;
  for (std::int64_t row = 0; row < m; ++row)
    std::copy_n(heads.begin() + row * columns, columns, expected.begin() + row * n);
  CHECK(std::equal(expected.begin(), expected.end(), fused.y.begin(), same_bits));

  const GemmRun timing = run_gemm(fresh({sim::Depth::timing}), plan, x, w, inv_freq);
  CHECK(timing.result.cycles == fused.result.cycles);
}

TEST_CASE("the angles of all rows of a core are prepared at once where the buffers of Y leave room in AM",
          "[rope][gemm]") {
  const auto rows = [](std::int64_t n) {
    const GemmPlan plan =
        plan_gemm({720, n, 4096}, DType::f32, {},
                  {.dataflow = GemmDataflow::large_m, .epilogue = RopeEpilogue{.head_dim = 128}}, machine());
    CHECK(plan.am_bytes <= machine().core.am_bytes);
    return plan.epilogue_rows;
  };
  CHECK(rows(1024) == 30);
  CHECK(rows(2048) == 6);  // all eight rounds of Y stay in AM
}

TEST_CASE("a GEMM says which heads it cannot rotate itself", "[rope][gemm]") {
  using Catch::Matchers::Contains;
  const auto plan = [](const RopeEpilogue& rope, DType dtype, GemmDataflow dataflow) {
    plan_gemm({8, 768, 256}, dtype, GemmTiles::of(dtype), {.dataflow = dataflow, .epilogue = rope}, machine());
  };
  using enum GemmDataflow;
  CHECK_THROWS_WITH(plan({RopePairs::half, 128, 700}, DType::f32, large_m),
                    Contains("700 columns to rotate are no whole heads of Y; use a multiple of 128 up to 768"));
  CHECK_THROWS_WITH(plan({RopePairs::half, 64}, DType::f16, large_m), Contains("or run rope behind the gemm"));
  CHECK_THROWS_WITH(plan({RopePairs::half, 192}, DType::f32, large_m),
                    Contains("n2=256 cuts a head; use a multiple of 192"));
  CHECK_THROWS_WITH(plan({RopePairs::half, 256}, DType::f32, small_m), Contains("N1=128 cuts a head"));
  CHECK_THROWS_WITH(plan({RopePairs::half, 128, 0, {-1, {}}}, DType::f32, large_m), Contains("row 0 has position -1"));
}

TEST_CASE("rope says what it cannot take", "[rope]") {
  const auto plan = [](const RopeShape& shape, const RopePositions& positions) {
    plan_rope(shape, RopePairs::half, DType::f32, positions, 0, machine());
  };
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(plan({4, 2, 63}, {}), Contains("heads of 63 elements") && Contains("even"));
  CHECK_THROWS_WITH(plan({4, 2, 512}, {}), Contains("2 to 256"));
  CHECK_THROWS_WITH(plan({4, 2, 64}, {k_rope_max_position, {}}), Contains("row 1 has position 131073"));
  CHECK_THROWS_WITH(plan({4, 2, 64}, {0, {1, 2}}), Contains("2 positions for 4 rows"));
}

}  // namespace mtsim::kernels
