// SPDX-License-Identifier: Apache-2.0
// Microkernels of any tile size, generated from the template gemm_tile.s for the machine in use: what is left of M and
// N beside the whole tiles, and what an architect wants to try.
#pragma once

#include <cstdint>

#include "isa/instruction_table.h"
#include "kernels/dtype.h"
#include "kernels/library.h"

namespace mtsim::kernels {

/// Y1 of `rows` x `vectors` registers: 32 columns a vector in FP32, 64 in FP16.
struct GemmTile {
  int rows = 6;
  int vectors = 4;
  DType dtype = DType::f32;

  std::int64_t columns() const { return std::int64_t{16} * lanes_per_word(dtype) * vectors; }
  auto operator<=>(const GemmTile&) const = default;
};

inline constexpr int k_max_tile_rows = 16;

/// How the template is filled in for a tile: k-steps of one loop pass (K must be a multiple) and partial sums an
/// element.
struct GemmTileLoop {
  int steps = 2;
  int parts = 1;
};

/// The loop with the best bound whose registers fit: sums of Y1, W1 of each step in flight, X1. Throws KernelError when
/// there is none: registers needed, available.
GemmTileLoop gemm_tile_loop(const GemmTile& tile, const isa::Pipeline& pipeline);

/// The tile's microkernel, entries accumulate and write_only; contract in gemm_tile.s.
const isa::Program& gemm_tile_program(const GemmTile& tile, const isa::Pipeline& pipeline);

}  // namespace mtsim::kernels
