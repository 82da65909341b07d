// SPDX-License-Identifier: Apache-2.0
#include "reference.h"

#include <cblas.h>

#include <bit>
#include <cmath>
#include <random>

namespace mtsim::kernels {

float fma_f32(float a, float b, float c) {
  const float result = std::fma(a, b, c);
  return std::isnan(result) ? std::bit_cast<float>(0x7FC00000u) : result;
}

bool same_bits(float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }

std::vector<float> random_matrix(std::int64_t rows, std::int64_t columns, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::vector<float> matrix(static_cast<std::size_t>(rows * columns));
  for (float& value : matrix) value = uniform(generator);
  return matrix;
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
  Product product{dgemm(a, b), dgemm(magnitude(a), magnitude(b))};
  const double ku = static_cast<double>(k) * 0x1p-24;
  for (double& bound : product.bound) bound *= ku / (1 - ku);
  return product;
}

}  // namespace mtsim::kernels
