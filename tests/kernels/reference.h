// SPDX-License-Identifier: Apache-2.0
// What kernels are compared with: plain scalar arithmetic and OpenBLAS in FP64; neither knows the simulator.
#pragma once

#include <cstdint>
#include <vector>

namespace mtsim::kernels {

/// a * b + c, rounded once; every NaN result is 0x7FC00000.
float fma_f32(float a, float b, float c);

/// Equal bits, so that -0, +0 and NaN patterns count.
bool same_bits(float a, float b);

/// Row-major [rows, columns], values in [-1, 1).
std::vector<float> random_matrix(std::int64_t rows, std::int64_t columns, std::uint32_t seed);

struct Product {
  std::vector<double> value;  // X * W
  std::vector<double> bound;  // gamma_k (|X| |W|): what k FP32 roundings can do to each element
};
/// X [m, k] times W [k, n], row-major, by OpenBLAS dgemm. gamma_k = k u / (1 - k u), u = 2^-24.
Product multiply_f64(const std::vector<float>& x, const std::vector<float>& w, std::int64_t m, std::int64_t n,
                     std::int64_t k);

}  // namespace mtsim::kernels
