// SPDX-License-Identifier: Apache-2.0
// Operand values on the host: random ones, and their bytes in each element type. FP16 is converted here by arithmetic
// in FP64, which shares nothing with the simulated conversions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/dtype.h"
#include "sim/cluster.h"

namespace mtsim::scenarios {

/// Uniform in [-1, 1), the same on every host (splitmix64, 24 bits). `first`: from that one of the sequence on.
std::vector<float> random_values(std::int64_t count, std::uint64_t seed, std::uint64_t first = 0);

/// Nearest FP16, ties to even, from a double (one rounding); overflow gives infinity, NaN 0x7E00.
std::uint16_t to_f16(double value);
double from_f16(std::uint16_t bits);

/// The nearest values an element type has.
std::vector<float> rounded(std::vector<float> values, kernels::DType dtype);

/// Row-major [rows, columns] with `columns` columns to [columns, rows].
std::vector<float> transposed(const std::vector<float>& matrix, std::int64_t columns);

/// Values to memory and back; `values` are rounded to the type.
void write_values(sim::Cluster& cluster, sim::Pointer destination, std::span<const float> values, kernels::DType dtype);
std::vector<float> read_values(const sim::Cluster& cluster, sim::Pointer source, std::int64_t count,
                               kernels::DType dtype);

}  // namespace mtsim::scenarios
