// SPDX-License-Identifier: Apache-2.0
// Every instruction that maps lanes to lanes, against its definition in double arithmetic and plain C++: the vector
// form on sixteen lanes and the scalar form on one, over all FP16 values, all upper halves of FP32 and the edges
// between them.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "bench_core.h"
#include "half.h"

using namespace mtsim::sim;

namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

// What one 64-bit lane of the result is, from the same lane of the sources.
using Reference = std::function<u64(u64 a, u64 b, u64 c)>;

u32 word(u64 lane, int i) { return static_cast<u32>(lane >> (32 * i)); }
u16 half(u64 lane, int i) { return static_cast<u16>(lane >> (16 * i)); }
u64 of_words(u32 w0, u32 w1) { return w0 | static_cast<u64>(w1) << 32; }
u64 of_halves(u16 e0, u16 e1, u16 e2, u16 e3) {
  return of_words(static_cast<u32>(e0 | e1 << 16), static_cast<u32>(e2 | e3 << 16));
}
float f32(u32 bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}
u32 bits(float x) { return std::isnan(x) ? 0x7FC00000u : BenchCore::bits(x); }

Reference words(std::function<u32(u32, u32, u32)> f) {
  return [f](u64 a, u64 b, u64 c) {
    return of_words(f(word(a, 0), word(b, 0), word(c, 0)), f(word(a, 1), word(b, 1), word(c, 1)));
  };
}
Reference halves(std::function<u16(u16, u16, u16)> f) {
  return [f](u64 a, u64 b, u64 c) {
    u16 e[4];
    for (int i = 0; i < 4; ++i) e[i] = f(half(a, i), half(b, i), half(c, i));
    return of_halves(e[0], e[1], e[2], e[3]);
  };
}
// A sum or product of two FP32 values, rounded once: double holds a product exactly and a sum closely enough.
Reference f32_of(double (*f)(double a, double b)) {
  return words([f](u32 a, u32 b, u32) { return bits(static_cast<float>(f(f32(a), f32(b)))); });
}
// Sums and products of two FP16 values are exact in double.
Reference f16_of(double (*f)(double a, double b)) {
  return halves([f](u16 a, u16 b, u16) { return nearest_half(f(half_value(a), half_value(b))); });
}
Reference f32_test(bool (*f)(double a, double b)) {
  return words([f](u32 a, u32 b, u32) { return f(f32(a), f32(b)) ? 0xFFFFFFFFu : 0u; });
}
Reference f16_test(bool (*f)(double a, double b)) {
  return halves([f](u16 a, u16 b, u16) -> u16 { return f(half_value(a), half_value(b)) ? 0xFFFF : 0; });
}

double add(double a, double b) { return a + b; }
double b_minus_a(double a, double b) { return b - a; }
double multiply(double a, double b) { return a * b; }
bool equal(double a, double b) { return a == b; }
bool greater(double a, double b) { return a > b; }
bool less(double a, double b) { return a < b; }

double maximum_number(double a, double b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
double minimum_number(double a, double b) { return -maximum_number(-a, -b); }

u16 fma_half(u16 a, u16 b, u16 c, float sign_of_c) {  // defined as an FP32 fma, rounded once more
  return nearest_half(std::fma(static_cast<float>(half_value(a)), static_cast<float>(half_value(b)),
                               sign_of_c * static_cast<float>(half_value(c))));
}
Reference fma_of_halves(int first) {
  return [first](u64 a, u64 b, u64 c) {
    u32 w[2];
    for (int i = 0; i < 2; ++i) {
      const double product = half_value(half(a, first + i)) * half_value(half(b, first + i));  // exact, in FP32 too
      w[i] = bits(std::fma(static_cast<float>(product), 1.0f, f32(word(c, i))));
    }
    return of_words(w[0], w[1]);
  };
}
Reference widen(int first) {
  return [first](u64 a, u64, u64) {
    return of_words(bits(static_cast<float>(half_value(half(a, first)))),
                    bits(static_cast<float>(half_value(half(a, first + 1)))));
  };
}
u32 saturated(double whole) {
  if (std::isnan(whole)) return 0;
  return static_cast<u32>(static_cast<std::int64_t>(std::clamp(whole, -2147483648.0, 2147483647.0)));
}
u64 replicate(u16 e) { return of_halves(e, e, e, e); }

struct Case {
  std::string vector;  // mnemonic, unit suffix, immediate operand; "" when there is no such form
  std::string scalar;
  int sources;
  int cycles;
  Reference reference;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"VFADDS32.M1", "SFADDS32.M1", 2, 3, f32_of(add)},
      {"VFSUBS32.M2", "SFSUBS32.M2", 2, 3, f32_of(b_minus_a)},
      {"VFMULS32.M3", "SFMULS32.M1", 2, 4, f32_of(multiply)},
      {"VFMULAS32.M1", "SFMULAS32.M2", 3, 6,
       words([](u32 a, u32 b, u32 c) { return bits(std::fma(f32(a), f32(b), f32(c))); })},
      {"VFMULBS32.M1", "", 3, 6, words([](u32 a, u32 b, u32 c) { return bits(std::fma(f32(a), f32(b), -f32(c))); })},
      {"VFADDH16.M1", "", 2, 3, f16_of(add)},
      {"VFSUBH16.M2", "", 2, 3, f16_of(b_minus_a)},
      {"VFMULH16.M3", "", 2, 4, f16_of(multiply)},
      {"VFMULAH16.M1", "", 3, 6, halves([](u16 a, u16 b, u16 c) { return fma_half(a, b, c, 1.0f); })},
      {"VFMULBH16.M1", "", 3, 6, halves([](u16 a, u16 b, u16 c) { return fma_half(a, b, c, -1.0f); })},
      {"VFMULAHLS.M1", "", 3, 6, fma_of_halves(0)},
      {"VFMULAHHS.M2", "", 3, 6, fma_of_halves(2)},

      {"VFHPSP16L", "SFHPSP16L", 1, 3, widen(0)},
      {"VFHPSP16H", "SFHPSP16H", 1, 3, widen(2)},
      {"VFSPHP16", "SFSPHP16", 2, 3,
       [](u64 a, u64 b, u64) {
         return of_halves(nearest_half(f32(word(a, 0))), nearest_half(f32(word(a, 1))), nearest_half(f32(word(b, 0))),
                          nearest_half(f32(word(b, 1))));
       }},
      {"VFSINT32", "SFSINT32", 1, 3, words([](u32 a, u32, u32) { return saturated(std::nearbyint(double{f32(a)})); })},
      {"VFSTRU32", "", 1, 3, words([](u32 a, u32, u32) { return saturated(std::trunc(double{f32(a)})); })},
      {"VFINTS32", "SFINTS32", 1, 3,
       words([](u32 a, u32, u32) { return bits(static_cast<float>(static_cast<double>(static_cast<std::int32_t>(a)))); })},

      {"VFMAXS32", "SFMAXS32", 2, 1, f32_of(maximum_number)},
      {"VFMINS32", "", 2, 1, f32_of(minimum_number)},
      {"VFMAX16", "", 2, 1, f16_of(maximum_number)},
      {"VFABSS32", "SFABSS32", 1, 1, words([](u32 a, u32, u32) { return a & 0x7FFFFFFFu; })},
      {"VFABSH16", "", 1, 1, halves([](u16 a, u16, u16) { return static_cast<u16>(a & 0x7FFF); })},
      {"VFCMPES32", "SFCMPES32", 2, 1, f32_test(equal)},
      {"VFCMPGS32", "SFCMPGS32", 2, 1, f32_test(greater)},
      {"VFCMPLS32", "SFCMPLS32", 2, 1, f32_test(less)},
      {"VFCMPEH16", "", 2, 1, f16_test(equal)},
      {"VFCMPGH16", "", 2, 1, f16_test(greater)},
      {"VFCMPLH16", "", 2, 1, f16_test(less)},

      {"VBALE2", "SBALE2", 2, 1, [](u64 a, u64 b, u64) { return of_words(word(a, 0), word(b, 0)); }},
      {"VBALE2H", "SBALE2H", 2, 1, [](u64 a, u64 b, u64) { return of_words(word(a, 1), word(b, 1)); }},
      {"VBALE2LH", "", 2, 1, [](u64 a, u64 b, u64) { return of_words(word(b, 1), word(a, 0)); }},
      {"VBALE2HL", "", 2, 1, [](u64 a, u64 b, u64) { return of_words(word(b, 0), word(a, 1)); }},
      {"VBALE4L", "", 2, 1,
       [](u64 a, u64 b, u64) { return of_halves(half(a, 0), half(b, 0), half(a, 1), half(b, 1)); }},
      {"VBALE4H", "", 2, 1,
       [](u64 a, u64 b, u64) { return of_halves(half(a, 2), half(b, 2), half(a, 3), half(b, 3)); }},
      {"VFEXTS32L", "SFEXTS32L", 1, 1, [](u64 a, u64, u64) { return of_words(word(a, 0), word(a, 0)); }},
      {"VFEXTS32H", "SFEXTS32H", 1, 1, [](u64 a, u64, u64) { return of_words(word(a, 1), word(a, 1)); }},
      {"VFEXTH16LL", "", 1, 1, [](u64 a, u64, u64) { return replicate(half(a, 0)); }},
      {"VFEXTH16LH", "", 1, 1, [](u64 a, u64, u64) { return replicate(half(a, 1)); }},
      {"VFEXTH16HL", "", 1, 1, [](u64 a, u64, u64) { return replicate(half(a, 2)); }},
      {"VFEXTH16HH", "", 1, 1, [](u64 a, u64, u64) { return replicate(half(a, 3)); }},
      {"VMOV", "SMOV", 1, 1, [](u64 a, u64, u64) { return a; }},

      {"VAND", "SAND", 2, 1, [](u64 a, u64 b, u64) { return a & b; }},
      {"VOR", "SOR", 2, 1, [](u64 a, u64 b, u64) { return a | b; }},
      {"VXOR", "SXOR", 2, 1, [](u64 a, u64 b, u64) { return a ^ b; }},
      {"VANDN", "", 2, 1, [](u64 a, u64 b, u64) { return ~a & b; }},
      {"VADD32", "", 2, 1, words([](u32 a, u32 b, u32) { return a + b; })},
      {"VSUB32", "", 2, 1, words([](u32 a, u32 b, u32) { return b - a; })},
      {"VSHFLL32 0,", "", 1, 1, words([](u32 a, u32, u32) { return a; })},
      {"VSHFLL32 23,", "", 1, 1, words([](u32 a, u32, u32) { return a * (1u << 23); })},
      {"VSHFLR32 31,", "", 1, 1, words([](u32 a, u32, u32) { return a / (1u << 31); })},
      {"VSHFLR32 7,", "", 1, 1, words([](u32 a, u32, u32) { return a / 128; })},
      {"VSHFAR32 7,", "", 1, 1,
       words([](u32 a, u32, u32) {
         return static_cast<u32>(static_cast<std::int64_t>(std::floor(static_cast<std::int32_t>(a) / 128.0)));
       })},
      {"", "SEQ", 2, 1, [](u64 a, u64 b, u64) -> u64 { return a == b; }},
      {"", "SMULIS32.M1", 2, 3,
       [](u64 a, u64 b, u64) {
         const std::int64_t product = std::int64_t{static_cast<std::int32_t>(a)} * static_cast<std::int32_t>(b);
         return static_cast<u64>(static_cast<std::int64_t>(static_cast<std::int32_t>(product)));
       }},
  };
  return all;
}

// Words whose neighbourhoods matter: FP32 and FP16 limits, ties of the roundings to integer and to FP16, NaNs.
const std::vector<u32> k_edges = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x3F800000, 0xBF800000, 0x3F000000,
    0x3FC00000, 0x40200000, 0xC0200000, 0x4AFFFFFF, 0x4B000000, 0x4B000001, 0x4EFFFFFF, 0x4F000000, 0xCF000000,
    0xCF000001, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC12345, 0x7F800001, 0x477FEFFF,
    0x477FF000, 0x38800000, 0x387FF000, 0x33800000, 0x33000000, 0x33000001, 0x3C003C00, 0x00010001, 0x7BFF8001,
    0x04000400, 0x7C00FC00, 0x7E007C01, 0x7FFFFFFF, 0xFFFFFFFF, 0x00008000, 0x0000FFFF};

struct Lanes {
  std::vector<u64> a, b, c;
};

// `a` takes every 16-bit value in every half, and so every upper half of an FP32 word; then every pair of edges.
const Lanes& lanes() {
  static const Lanes all = [] {
    Lanes made;
    std::mt19937_64 random(3);
    constexpr u32 k_odd[] = {40503, 25173, 13849, 1};  // i * odd runs through all 16-bit values
    for (u32 i = 0; i < 65536; ++i) {
      made.a.push_back(of_halves(static_cast<u16>(i * k_odd[0]), static_cast<u16>(i * k_odd[1]),
                                 static_cast<u16>(i * k_odd[2]), static_cast<u16>(i * k_odd[3])));
      made.b.push_back(random());
      // Near a*b for every third lane, so that the fused sums cancel.
      made.c.push_back(i % 3 == 0 ? f32_of(multiply)(made.a.back(), made.b.back(), 0) ^ 0x8000000080000000u : random());
    }
    for (const u32 first : k_edges) {
      for (const u32 second : k_edges) {
        made.a.push_back(of_words(first, second));
        made.b.push_back(of_words(second, first));
        made.c.push_back(of_words(second, k_edges[random() % k_edges.size()]));
      }
    }
    while (made.a.size() % mtsim::isa::k_vector_lanes != 0) {
      for (auto* operand : {&made.a, &made.b, &made.c}) operand->push_back(random());
    }
    return made;
  }();
  return all;
}

// "VFADDS32.M1 VR0, VR1, VR3", its result 3 registers behind the first source.
std::string line(const std::string& instruction, const char* file, int sources) {
  std::string text = " " + instruction;
  for (int i = 0; i < sources; ++i) text += (i == 0 ? " " : ", ") + std::string(file) + std::to_string(i);
  return text + ", " + file + "3\n";
}

DecodedProgram assembled(const std::string& text) { return {mtsim::isa::assemble(text, "values.s"), {}}; }

void check_vector(const Case& tested) {
  const Lanes& all = lanes();
  std::vector<u64> expected(all.a.size());
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = tested.reference(all.a[i], all.b[i], all.c[i]);
  const DecodedProgram program =
      assembled(line(tested.vector, "VR", tested.sources) + " SNOP " + std::to_string(tested.cycles) + k_return);
  for (const HostLevel level : supported_host_levels()) {
    BenchCore core(level);
    for (std::size_t i = 0; i < expected.size(); i += mtsim::isa::k_vector_lanes) {
      std::memcpy(core.vr(0).lane.data(), &all.a[i], 128);
      std::memcpy(core.vr(1).lane.data(), &all.b[i], 128);
      std::memcpy(core.vr(2).lane.data(), &all.c[i], 128);
      core.run(program);
      if (std::memcmp(core.vr(3).lane.data(), &expected[i], 128) == 0) continue;
      for (int l = 0; l < mtsim::isa::k_vector_lanes; ++l) {
        INFO(tested.vector << " at level " << to_string(level) << std::hex << ", a = " << all.a[i + l]
                           << ", b = " << all.b[i + l] << ", c = " << all.c[i + l] << ", got " << core.vr(3).lane[l]
                           << ", expected " << expected[i + l]);
        REQUIRE(core.vr(3).lane[l] == expected[i + l]);
      }
    }
  }
}

void check_scalar(const Case& tested) {
  const Lanes& all = lanes();
  const DecodedProgram program =
      assembled(line(tested.scalar, "R", tested.sources) + " SNOP " + std::to_string(tested.cycles) + k_return);
  for (const HostLevel level : supported_host_levels()) {
    BenchCore core(level);
    for (std::size_t i = 0; i < all.a.size(); i += 1 + 13 * (i < 65536)) {
      core.r(0) = all.a[i];
      core.r(1) = all.b[i];
      core.r(2) = all.c[i];
      core.run(program);
      const u64 expected = tested.reference(all.a[i], all.b[i], all.c[i]);
      if (core.r(3) == expected) continue;
      INFO(tested.scalar << " at level " << to_string(level) << std::hex << ", a = " << all.a[i] << ", b = " << all.b[i]
                         << ", c = " << all.c[i] << ", got " << core.r(3) << ", expected " << expected);
      REQUIRE(core.r(3) == expected);
    }
  }
}

// The rule of a seed, exactly: no number of 8 significant bits lies closer. long double holds every term.
void check_seed(float x, float seed, int power) {
  int exponent;
  const long double r = seed, significand = std::frexp(std::fabs(r), &exponent);
  REQUIRE(std::ldexp(significand, 8) == std::floor(std::ldexp(significand, 8)));
  const long double step = std::ldexp(1.0L, exponent - 8);
  const long double below = significand == 0.5L ? step / 2 : step;  // a power of two has closer neighbours below it
  const long double low = std::fabs(r) - below / 2, high = std::fabs(r) + step / 2,
                    a = std::fabs(static_cast<long double>(x));
  REQUIRE((power == 1 ? low : low * low) * a <= 1);
  REQUIRE((power == 1 ? high : high * high) * a >= 1);
}

}  // namespace

TEST_CASE("vector instructions compute what their definitions say, at every host level", "[core][values]") {
  for (const Case& tested : cases()) {
    if (!tested.vector.empty()) check_vector(tested);
  }
}

TEST_CASE("scalar instructions compute what their definitions say, at every host level", "[core][values]") {
  for (const Case& tested : cases()) {
    if (!tested.scalar.empty()) check_scalar(tested);
  }
}

TEST_CASE("the seeds of 1/x and 1/sqrt(x) are the exact values to 8 bits", "[core][values]") {
  const DecodedProgram program =
      assembled(" VFRCPS32 VR0, VR1\n| SFRCPS32 R0, R1\n VFRSQS32 VR0, VR2\n| SFRSQS32 R0, R2\n" + k_return);
  const Lanes& all = lanes();
  for (const HostLevel level : supported_host_levels()) {
    BenchCore core(level);
    for (std::size_t i = 0; i < all.a.size(); i += mtsim::isa::k_vector_lanes) {
      std::memcpy(core.vr(0).lane.data(), &all.a[i], 128);
      core.r(0) = all.a[i];
      core.run(program);
      REQUIRE(core.r(1) == core.vr(1).lane[0]);
      REQUIRE(core.r(2) == core.vr(2).lane[0]);
      for (int l = 0; l < 32; ++l) {
        const float x = core.f32(0, l), reciprocal = core.f32(1, l), rsqrt = core.f32(2, l);
        const float infinity = std::numeric_limits<float>::infinity();
        CAPTURE(x, reciprocal, rsqrt, to_string(level));
        if (std::isnan(x)) {
          REQUIRE(BenchCore::bits(reciprocal) == 0x7FC00000u);
          REQUIRE(BenchCore::bits(rsqrt) == 0x7FC00000u);
          continue;
        }
        REQUIRE(std::signbit(reciprocal) == std::signbit(x));
        if (std::fabs(x) < std::ldexp(1.0f, -128)) {
          REQUIRE(std::isinf(reciprocal));  // of zero, and of what lies beyond the largest FP32 number
        } else if (std::isinf(x)) {
          REQUIRE(reciprocal == 0);
        } else if (!std::isinf(reciprocal)) {
          check_seed(x, reciprocal, 1);
        } else {
          REQUIRE(1.0L / std::fabs(static_cast<long double>(x)) >= std::ldexp(511.0L, 119));
        }
        if (x < 0) {
          REQUIRE(BenchCore::bits(rsqrt) == 0x7FC00000u);
        } else if (x == 0) {
          REQUIRE(rsqrt == std::copysign(infinity, x));
        } else if (std::isinf(x)) {
          REQUIRE(BenchCore::bits(rsqrt) == 0);
        } else {
          check_seed(x, rsqrt, 2);
        }
      }
    }
  }
}

TEST_CASE("an immediate takes the place of a scalar's first operand", "[core][values]") {
  BenchCore core;
  core.r(1) = 0xFFFF0000FFFF0006ull;
  core.run(" SAND 3, R1, R2\n SOR -8, R1, R3\n SXOR -1, R1, R4\n SMULIS32.M1 -7, R1, R5\n SNOP 3\n" + k_return);
  CHECK(core.r(2) == 2);
  CHECK(core.r(3) == ~u64{1});
  CHECK(core.r(4) == 0x0000FFFF0000FFF9ull);
  CHECK(core.r(5) == 7 * 65530);
}

TEST_CASE("SVBCAST2 broadcasts the low register into the low vector and the high one into the high vector",
          "[core][values]") {
  BenchCore core;
  core.r(4) = 0x1122334455667788ull;
  core.r(5) = 0x99AABBCCDDEEFF00ull;
  core.run(" SVBCAST2.M2 R5:R4, VR9:VR8\n SNOP 4\n" + k_return);
  for (int lane = 0; lane < 16; ++lane) {
    CHECK(core.vr(8).lane[lane] == core.r(4));
    CHECK(core.vr(9).lane[lane] == core.r(5));
  }
}

TEST_CASE("VMVCGC puts the sixteen lanes into SVR0..SVR15 after 3 cycles, and SMVCCG fetches one in 2",
          "[core][values]") {
  BenchCore core;
  for (int lane = 0; lane < 16; ++lane) core.vr(7).lane[lane] = 1000 + static_cast<u64>(lane);
  core.registers().svr.fill(7);
  core.run(" VMVCGC.M3 VR7, SVR0\n SNOP 1\n SMVCCG.M1 SVR4, R1\n SMVCCG.M1 SVR4, R2\n| SMVCCG.M2 SVR15, R3\n SNOP 2\n" +
           k_return);
  CHECK(core.r(1) == 7);  // read one cycle too early
  CHECK(core.r(2) == 1004);
  CHECK(core.r(3) == 1015);
  for (int lane = 0; lane < 16; ++lane) CHECK(core.registers().svr[lane] == 1000 + static_cast<u64>(lane));
}

TEST_CASE("VLDDW0M2 deals alternate 8 bytes to two vectors and VSTDW0M32 deals them back", "[core][values]") {
  BenchCore core(GENERATE(from_range(supported_host_levels())));
  for (u64 i = 0; i < 32; ++i) core.poke(core.am, 1040 + 8 * i, i);
  core.ar(0) = 1024;
  core.ar(1) = 2048;
  core.run(" VLDDW0M2 *+AR0[1], VR3:VR2\n SNOP 8\n VSTDW0M32 VR3:VR2, *AR1++[16]\n VSTDW VR3:VR2, *AR1\n" + k_return);
  for (u64 l = 0; l < 16; ++l) {
    CHECK(core.vr(2).lane[l] == 2 * l);
    CHECK(core.vr(3).lane[l] == 2 * l + 1);
    CHECK(core.peek<u64>(core.am, 2304 + 8 * l) == 2 * l);
  }
  CHECK(std::memcmp(&core.am[2048], &core.am[1040], 256) == 0);
}
