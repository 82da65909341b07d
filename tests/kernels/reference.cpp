// SPDX-License-Identifier: Apache-2.0
#include "reference.h"

#include <cblas.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace mtsim::kernels {

float fma_f32(float a, float b, float c) {
  const float result = std::fma(a, b, c);
  return std::isnan(result) ? std::bit_cast<float>(0x7FC00000u) : result;
}

namespace {

constexpr int k_fraction_bits = 10, k_least_exponent = -14, k_bias = 15;
constexpr double k_f16_overflow = 65520;  // half way between the largest FP16 and 2^16

}  // namespace

std::uint16_t to_f16(double value) {
  if (std::isnan(value)) return 0x7E00;
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::abs(value);
  if (magnitude >= k_f16_overflow) return sign | 0x7C00;
  const int exponent = magnitude == 0 ? k_least_exponent : std::max(std::ilogb(magnitude), k_least_exponent);
  const double spacing = std::ldexp(1.0, exponent - k_fraction_bits);
  const auto multiples = static_cast<int>(std::nearbyint(magnitude / spacing));  // 2^10 .. 2^11 if normal
  return sign | static_cast<std::uint16_t>(multiples + ((exponent - k_least_exponent) << k_fraction_bits));
}

double from_f16(std::uint16_t bits) {
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  const int exponent = (bits >> k_fraction_bits) & 31, fraction = bits & 1023;
  if (exponent == 31) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, k_least_exponent - k_fraction_bits);
  return sign * std::ldexp(1024 + fraction, exponent - k_bias - k_fraction_bits);
}

float fma_f16(float a, float b, float c) { return static_cast<float>(from_f16(to_f16(std::fma(a, b, c)))); }

bool same_bits(float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }

std::vector<float> random_matrix(std::int64_t rows, std::int64_t columns, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::vector<float> matrix(static_cast<std::size_t>(rows * columns));
  for (float& value : matrix) value = uniform(generator);
  return matrix;
}

std::vector<float> normal_matrix(std::int64_t rows, std::int64_t columns, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> matrix(static_cast<std::size_t>(rows * columns));
  for (float& value : matrix) value = normal(generator);
  return matrix;
}

std::vector<std::uint16_t> bits_f16(const std::vector<float>& values) {
  std::vector<std::uint16_t> bits(values.size());
  std::transform(values.begin(), values.end(), bits.begin(), to_f16);
  return bits;
}

std::vector<float> values_f16(const std::vector<std::uint16_t>& bits) {
  std::vector<float> values(bits.size());
  std::transform(bits.begin(), bits.end(), values.begin(),
                 [](std::uint16_t b) { return static_cast<float>(from_f16(b)); });
  return values;
}

std::vector<float> rounded(std::vector<float> values, DType dtype) {
  return dtype == DType::f16 ? values_f16(bits_f16(values)) : values;
}

std::vector<float> transposed(const std::vector<float>& matrix, std::int64_t columns) {
  std::vector<float> result;
  result.reserve(matrix.size());
  for (std::int64_t column = 0; column < columns; ++column) {
    for (std::size_t i = static_cast<std::size_t>(column); i < matrix.size(); i += static_cast<std::size_t>(columns))
      result.push_back(matrix[i]);
  }
  return result;
}

Product multiply_f64(const std::vector<float>& x, const std::vector<float>& w, std::int64_t m, std::int64_t n,
                     std::int64_t k) {
  const auto dgemm = [&](const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> c(static_cast<std::size_t>(m * n));
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<int>(m), static_cast<int>(n),
                static_cast<int>(k), 1.0, a.data(), static_cast<int>(k), b.data(), static_cast<int>(n), 0.0, c.data(),
                static_cast<int>(n));
    return c;
  };
  const auto magnitude = [](std::vector<double> a) {
    for (double& value : a) value = std::abs(value);
    return a;
  };
  const std::vector<double> a(x.begin(), x.end()), b(w.begin(), w.end());
  return {dgemm(a, b), dgemm(magnitude(a), magnitude(b))};
}

}  // namespace mtsim::kernels
