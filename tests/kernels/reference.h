// SPDX-License-Identifier: Apache-2.0
// What kernels are compared with: plain scalar arithmetic and OpenBLAS in FP64; neither knows the simulator.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/dtype.h"

namespace mtsim::kernels {

/// a * b + c, rounded once; every NaN result is 0x7FC00000.
float fma_f32(float a, float b, float c);

/// The nearest FP16, ties to even, found by its definition: a multiple of the spacing at that magnitude.
std::uint16_t to_f16(double value);
double from_f16(std::uint16_t bits);
/// What VFMULAH16 computes: a * b + c rounded to FP32 and then to FP16. All four are FP16 values.
float fma_f16(float a, float b, float c);

/// Equal bits, so that -0, +0 and NaN patterns count.
bool same_bits(float a, float b);

/// Row-major [rows, columns], values in [-1, 1).
std::vector<float> random_matrix(std::int64_t rows, std::int64_t columns, std::uint32_t seed);
/// Normally distributed, mean 0 and deviation 1.
std::vector<float> normal_matrix(std::int64_t rows, std::int64_t columns, std::uint32_t seed);
/// The nearest values of a type, and their bits.
std::vector<float> rounded(std::vector<float> values, DType dtype);
std::vector<std::uint16_t> bits_f16(const std::vector<float>& values);
std::vector<float> values_f16(const std::vector<std::uint16_t>& bits);

/// Row-major [rows, columns] with `columns` columns to [columns, rows].
std::vector<float> transposed(const std::vector<float>& matrix, std::int64_t columns);

struct Product {
  std::vector<double> value;      // X * W
  std::vector<double> magnitude;  // |X| |W|: what rounding errors are relative to
};
/// X [m, k] times W [k, n], row-major, by OpenBLAS dgemm.
Product multiply_f64(const std::vector<float>& x, const std::vector<float>& w, std::int64_t m, std::int64_t n,
                     std::int64_t k);

}  // namespace mtsim::kernels
