// SPDX-License-Identifier: Apache-2.0
#include "scenarios/operands.h"

#include <cmath>
#include <limits>

namespace mtsim::scenarios {

using kernels::DType;

std::vector<float> random_values(std::int64_t count, std::uint64_t seed, std::uint64_t first) {
  constexpr std::uint64_t k_step = 0x9E37'79B9'7F4A'7C15;
  std::vector<float> values(static_cast<std::size_t>(count));
  seed += first * k_step;
  for (float& value : values) {
    std::uint64_t z = (seed += k_step);
    z = (z ^ (z >> 30)) * 0xBF58'476D'1CE4'E5B9;
    z = (z ^ (z >> 27)) * 0x94D0'49BB'1331'11EB;
    value = static_cast<float>((z ^ (z >> 31)) >> 40) * 0x1p-23F - 1.0F;
  }
  return values;
}

namespace {

constexpr int k_significand_bits = 10;  // stored
constexpr int k_lowest_exponent = -14;  // of normal numbers
constexpr double k_overflow = 65520;    // half way from the largest number to 2^16
constexpr std::uint16_t k_nan = 0x7E00, k_infinity = 0x7C00, k_sign = 0x8000;

}  // namespace

std::uint16_t to_f16(double value) {
  if (std::isnan(value)) return k_nan;
  const std::uint16_t sign = std::signbit(value) ? k_sign : 0;
  const double magnitude = std::abs(value);
  if (magnitude >= k_overflow) return sign | k_infinity;
  const int exponent = magnitude == 0 ? k_lowest_exponent : std::max(std::ilogb(magnitude), k_lowest_exponent);
  // In units of the last place; a carry into the next exponent comes out right, since the codes are consecutive.
  const auto units = static_cast<std::uint16_t>(std::nearbyint(std::ldexp(magnitude, k_significand_bits - exponent)));
  return sign | static_cast<std::uint16_t>(((exponent - k_lowest_exponent) << k_significand_bits) + units);
}

double from_f16(std::uint16_t bits) {
  const double sign = (bits & k_sign) != 0 ? -1 : 1;
  const int exponent = bits >> k_significand_bits & 0x1F;
  const int fraction = bits & 0x3FF;
  if (exponent == 0x1F) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  }
  const int significand = exponent == 0 ? fraction : fraction + 0x400;
  return sign * std::ldexp(significand, std::max(exponent, 1) - 1 + k_lowest_exponent - k_significand_bits);
}

std::vector<float> rounded(std::vector<float> values, DType dtype) {
  if (dtype == DType::f16) {
    for (float& value : values) value = static_cast<float>(from_f16(to_f16(value)));
  }
  return values;
}

std::vector<float> transposed(const std::vector<float>& matrix, std::int64_t columns) {
  std::vector<float> result;
  result.reserve(matrix.size());
  for (std::int64_t column = 0; column < columns; ++column) {
    for (auto i = static_cast<std::size_t>(column); i < matrix.size(); i += static_cast<std::size_t>(columns))
      result.push_back(matrix[i]);
  }
  return result;
}

void write_values(sim::Cluster& cluster, sim::Pointer destination, std::span<const float> values, DType dtype) {
  if (dtype == DType::f32) return cluster.write(destination, std::as_bytes(values));
  std::vector<std::uint16_t> bits;
  bits.reserve(values.size());
  for (const float value : values) bits.push_back(to_f16(value));
  cluster.write(destination, std::as_bytes(std::span(bits)));
}

std::vector<float> read_values(const sim::Cluster& cluster, sim::Pointer source, std::int64_t count, DType dtype) {
  std::vector<float> values(static_cast<std::size_t>(count));
  if (dtype == DType::f32) {
    cluster.read(source, std::as_writable_bytes(std::span(values)));
    return values;
  }
  std::vector<std::uint16_t> bits(values.size());
  cluster.read(source, std::as_writable_bytes(std::span(bits)));
  for (std::size_t i = 0; i < bits.size(); ++i) values[i] = static_cast<float>(from_f16(bits[i]));
  return values;
}

}  // namespace mtsim::scenarios
