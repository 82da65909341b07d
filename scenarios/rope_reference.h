// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding in FP64, and what the FP32 arithmetic of the kernels may be off by.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/rope/rope_tile.h"

namespace mtsim::scenarios {

/// theta^(-2 i / head_dim) for i < head_dim / 2, each rounded once to FP32.
std::vector<float> reference_inv_freq(std::int64_t head_dim, double theta);

/// Rotates the heads of one row; `values` are exact and the microcode's inputs differ by at most `bounds`, both are
/// replaced by those of the result. A head has twice as many elements as inv_freq.
void rotate_reference(std::int64_t position, std::span<const float> inv_freq, kernels::RopePairs pairs,
                      kernels::DType dtype, std::span<double> values, std::span<double> bounds);

}  // namespace mtsim::scenarios
