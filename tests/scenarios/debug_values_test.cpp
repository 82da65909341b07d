// SPDX-License-Identifier: Apache-2.0
// The numbers a debugger prints read back as the bits they came from.
#include <bit>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <random>

#include "scenarios/debug/values.h"
#include "scenarios/operands.h"

using namespace mtsim::scenarios;

TEST_CASE("every FP16 number is printed in digits that read back as it, and no fewer would", "[debug]") {
  const ValueType& type = value_type("f16");
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const std::string text = number_text(std::as_bytes(std::span(&half, 1)), type);
    CAPTURE(bits, text);
    if ((bits & 0x7C00) == 0x7C00 && (bits & 0x3FF) != 0) {
      REQUIRE((bits == 0x7E00 ? text == "nan" : text.starts_with("nan(0x")));
      continue;
    }
    REQUIRE(to_f16(std::strtod(text.c_str(), nullptr)) == half);
  }
  const auto text_of = [&](std::uint16_t half) { return number_text(std::as_bytes(std::span(&half, 1)), type); };
  CHECK(text_of(0x2E66) == "0.1");
  CHECK(text_of(0x7BFF) == "65500");
  CHECK(text_of(0x0001) == "6e-08");
  CHECK(text_of(0x8000) == "-0");
  CHECK(text_of(0xFC00) == "-inf");
}

TEST_CASE("FP32 and FP64 numbers are printed in digits that read back as they are", "[debug]") {
  std::mt19937_64 random(4);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t bits = random();
    const auto single = static_cast<std::uint32_t>(bits);
    const std::string f32 = number_text(std::as_bytes(std::span(&single, 1)), value_type("f32"));
    const std::string f64 = number_text(std::as_bytes(std::span(&bits, 1)), value_type("f64"));
    CAPTURE(bits, f32, f64);
    if (!f32.starts_with("nan")) REQUIRE(std::bit_cast<std::uint32_t>(std::strtof(f32.c_str(), nullptr)) == single);
    if (!f64.starts_with("nan")) REQUIRE(std::bit_cast<std::uint64_t>(std::strtod(f64.c_str(), nullptr)) == bits);
  }
}

TEST_CASE("a change of some numbers of many names them", "[debug]") {
  std::vector<float> before(8, 1), after(8, 1);
  after[2] = 1.5F;
  const auto text = [&] {
    return change_summary(std::as_bytes(std::span(before)), std::as_bytes(std::span(after)), value_type("f32"));
  };
  CHECK(text() == "[2] 1 -> 1.5");
  for (float& value : after) value += 1;
  CHECK(text() == "[0] 1 -> 2, [1] 1 -> 2, [2] 1 -> 2.5, [3] 1 -> 2, ... (8 of 8 f32 differ)");
  after = before;
  CHECK(text() == "8 x 1, as before");
  after.assign(8, -0.0F);
  CHECK(text() == "8 x 1 -> 8 x -0");
}
