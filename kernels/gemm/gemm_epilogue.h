// SPDX-License-Identifier: Apache-2.0
// What a linear layer does to its Y in AM before it leaves: fused operators of low density (paper III-C1).
#pragma once

#include <cstdint>
#include <variant>

#include "kernels/rope/rope_tile.h"

namespace mtsim::kernels {

/// Algorithm 1: the heads of queries and keys are rotated. Y must hold whole heads wherever it is cut
/// (RopeLayout::dense, N2, N1); else plan_gemm throws, and rope() after the GEMM takes them.
struct RopeEpilogue {
  RopePairs pairs = RopePairs::interleaved;
  std::int64_t head_dim = 0;
  std::int64_t columns = 0;  // of Y that hold heads to rotate, from the first on; those behind, values, stay. 0: all
  RopePositions positions;   // of the rows of Y
};

/// None by default.
using GemmEpilogue = std::variant<std::monostate, RopeEpilogue>;

}  // namespace mtsim::kernels
