// SPDX-License-Identifier: Apache-2.0
// Values: each instruction against an independent computation, extremes included, at every host level.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "bench_core.h"
#include "half.h"

using namespace mtsim::sim;

namespace {

const std::vector<float> k_extremes = {0.0f,
                                       -0.0f,
                                       1.0f,
                                       -1.5f,
                                       1e-45f,
                                       -1e-45f,
                                       1.17549435e-38f,
                                       3.4028235e38f,
                                       -3.4028235e38f,
                                       std::numeric_limits<float>::infinity(),
                                       -std::numeric_limits<float>::infinity(),
                                       std::numeric_limits<float>::quiet_NaN(),
                                       16777217.0f,
                                       0.1f};

std::uint32_t canonical_bits(float x) { return std::isnan(x) ? 0x7FC00000u : BenchCore::bits(x); }

}  // namespace

TEST_CASE("VFMULAS32 is a fused a*b + c on 32 lanes with one canonical NaN", "[core][semantics]") {
  BenchCore core(GENERATE(from_range(supported_host_levels())));
  std::mt19937 random(1);
  std::uniform_int_distribution<std::uint32_t> any_bits;
  for (int round = 0; round < 400; ++round) {
    std::array<std::array<float, 32>, 3> in;
    for (auto& operand : in) {
      for (float& value : operand) {
        const std::uint32_t bits = any_bits(random);
        if (round % 2) {
          value = k_extremes[bits % k_extremes.size()];
        } else {
          std::memcpy(&value, &bits, 4);
        }
      }
    }
    for (int i = 0; i < 3; ++i) std::memcpy(core.vr(i).lane.data(), in[i].data(), 128);
    core.run(" VFMULAS32.M1 VR0, VR1, VR2, VR3\n SNOP 6\n" + k_return);
    for (int lane = 0; lane < 32; ++lane) {
      CAPTURE(in[0][lane], in[1][lane], in[2][lane]);
      REQUIRE(BenchCore::bits(core.f32(3, lane)) == canonical_bits(std::fma(in[0][lane], in[1][lane], in[2][lane])));
    }
  }
}

TEST_CASE("VFMULAD is a fused a*b + c on 16 FP64 lanes", "[core][semantics]") {
  BenchCore core(GENERATE(from_range(supported_host_levels())));
  const double a = 1.0 + 1e-9, b = 1.0 - 1e-9, c = -1.0;
  for (int lane = 0; lane < 16; ++lane) {
    std::memcpy(&core.vr(0).lane[lane], &a, 8);
    std::memcpy(&core.vr(1).lane[lane], &b, 8);
    std::memcpy(&core.vr(2).lane[lane], &c, 8);
  }
  core.vr(0).lane[3] = 0xFFF8000000000001ull;  // some NaN
  core.run(" VFMULAD.M2 VR0, VR1, VR2, VR3\n SNOP 6\n" + k_return);
  double value;
  std::memcpy(&value, &core.vr(3).lane[7], 8);
  CHECK(value == std::fma(a, b, c));
  CHECK(core.vr(3).lane[3] == 0x7FF8000000000000ull);
}

TEST_CASE("VFMULAH16 is an FP32 fma rounded once to FP16: every FP16 value survives times one, plus zero",
          "[core][semantics]") {
  BenchCore core(GENERATE(from_range(supported_host_levels())));
  core.fill(1, 0x3C003C003C003C00ull);  // 1.0
  for (int base = 0; base < 65536; base += 64) {
    for (int i = 0; i < 64; ++i) {
      const auto half = static_cast<std::uint16_t>(base + i);
      std::memcpy(reinterpret_cast<char*>(core.vr(0).lane.data()) + 2 * i, &half, 2);
    }
    core.fill(2, 0x8000800080008000ull);  // -0: keeps the sign of zero
    core.run(" VFMULAH16.M1 VR0, VR1, VR2, VR3\n SNOP 6\n" + k_return);
    for (int i = 0; i < 64; ++i) {
      std::uint16_t got;
      std::memcpy(&got, reinterpret_cast<const char*>(core.vr(3).lane.data()) + 2 * i, 2);
      const auto half = static_cast<std::uint16_t>(base + i);
      REQUIRE(got == (std::isnan(half_value(half)) ? 0x7E00 : half));
    }
  }
}

TEST_CASE("VFMULAH16 agrees with the definition on random bits", "[core][semantics]") {
  BenchCore core(GENERATE(from_range(supported_host_levels())));
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    std::uint16_t in[3][64];
    for (auto& operand : in) {
      for (auto& half : operand) half = static_cast<std::uint16_t>(random() & (round % 3 == 0 ? 0x83FF : 0xFFFF));
    }
    for (int i = 0; i < 3; ++i) std::memcpy(core.vr(i).lane.data(), in[i], 128);
    core.run(" VFMULAH16.M1 VR0, VR1, VR2, VR3\n SNOP 6\n" + k_return);
    for (int i = 0; i < 64; ++i) {
      std::uint16_t got;
      std::memcpy(&got, reinterpret_cast<const char*>(core.vr(3).lane.data()) + 2 * i, 2);
      const float fma = std::fma(static_cast<float>(half_value(in[0][i])), static_cast<float>(half_value(in[1][i])),
                                 static_cast<float>(half_value(in[2][i])));
      CAPTURE(in[0][i], in[1][i], in[2][i]);
      REQUIRE(got == nearest_half(fma));
    }
  }
}

TEST_CASE("SFMULS32 multiplies two FP32 lanes of a scalar", "[core][semantics]") {
  BenchCore core;
  core.r(1) = BenchCore::pair_of(3, -5);
  core.r(2) = BenchCore::pair_of(7, 0.5f);
  core.run(" SFMULS32.M1 R1, R2, R3\n SNOP 4\n" + k_return);
  CHECK(core.r(3) == BenchCore::pair_of(21, -2.5f));
}

TEST_CASE("SVBCAST copies all 64 bits into each of 16 lanes", "[core][semantics]") {
  BenchCore core;
  core.r(1) = 0x1122334455667788ull;
  core.run(" SVBCAST.M2 R1, VR3\n SNOP 4\n" + k_return);
  for (int lane = 0; lane < 16; ++lane) CHECK(core.vr(3).lane[lane] == 0x1122334455667788ull);
}

TEST_CASE("the packs join halves: VBALE2 low, VBALE2H high, SBALE2 low; first operand into the low word",
          "[core][semantics]") {
  BenchCore core;
  core.fill(1, 0x11112222'33334444ull);
  core.fill(2, 0x55556666'77778888ull);
  core.r(1) = 0x11112222'33334444ull;
  core.r(2) = 0x55556666'77778888ull;
  core.run(" VBALE2 VR1, VR2, VR3\n| SBALE2 R1, R2, R3\n VBALE2H VR1, VR2, VR4\n" + k_return);
  CHECK(core.vr(3).lane[9] == 0x77778888'33334444ull);
  CHECK(core.vr(4).lane[9] == 0x55556666'11112222ull);
  CHECK(core.r(3) == 0x77778888'33334444ull);
}

TEST_CASE("scalar arithmetic is 64-bit and signed; SSUB is b - a", "[core][semantics]") {
  BenchCore core;
  core.r(1) = 5;
  core.r(2) = static_cast<std::uint64_t>(-3);
  core.run(
      " SADD.M1 R1, R2, R10\n| SSUB.M2 R1, R2, R11\n"
      " SADD.M1 -7, R1, R12\n| SLT R2, R1, R13\n"
      " SLT R1, R2, R14\n SEQ 5, R1, R15\n SSHFLL 33, R1, R16\n SSHFLR 60, R2, R17\n"
      " SMOVI24 -2, R18\n SMOVI 0x123456789ABCDEF0, R19\n SADD 1, R1, R20\n SMOV R1, R21\n" +
      k_return);
  CHECK(core.r(10) == 2);
  CHECK(core.r(11) == static_cast<std::uint64_t>(-8));
  CHECK(core.r(12) == static_cast<std::uint64_t>(-2));
  CHECK(core.r(13) == 1);
  CHECK(core.r(14) == 0);
  CHECK(core.r(15) == 1);
  CHECK(core.r(16) == (5ull << 33));
  CHECK(core.r(17) == 15);
  CHECK(core.r(18) == static_cast<std::uint64_t>(-2));
  CHECK(core.r(19) == 0x123456789ABCDEF0ull);
  CHECK(core.r(20) == 6);
  CHECK(core.r(21) == 5);
}

TEST_CASE("VMOVI puts a 64-bit immediate into every lane, on VIEU and on VMAC", "[core][semantics]") {
  BenchCore core;
  core.run(" VMOVI.M1 0x3F8000003F800000, VR1\n| VMOVI 0x4000000040000000, VR2\n| VMOVI.M2 5, VR3\n" + k_return);
  CHECK(core.f32(1, 31) == 1.0f);
  CHECK(core.f32(2, 0) == 2.0f);
  CHECK(core.vr(3).lane[15] == 5);
}
