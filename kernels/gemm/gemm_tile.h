// SPDX-License-Identifier: Apache-2.0
// Microkernels of any tile size, generated from the template gemm_tile.s for the machine in use: what is left of M and
// N beside the whole tiles, and what an architect wants to try.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "isa/instruction_table.h"
#include "kernels/dtype.h"
#include "kernels/library.h"
#include "sim/cluster.h"

namespace mtsim::kernels {

/// Y1 of `rows` x `vectors` registers: 32 columns a vector in FP32, 64 in FP16.
struct GemmTile {
  int rows = 6;
  int vectors = 4;
  DType dtype = DType::f32;
  // What a GEMM calls: one sum an element, so that values do not depend on the tile; K as the microkernels written by
  // hand take it, which saves the loop that is not pipelined.
  bool in_order = false;
  bool promotes = false;  // FP16 with Y1 in FP32, as the _f32 entries of gemm_f16_6x256 have it

  std::int64_t columns() const { return std::int64_t{16} * lanes_per_word(dtype) * vectors; }
  int sums() const { return rows * vectors; }
  auto operator<=>(const GemmTile&) const = default;
};

inline constexpr int k_max_tile_rows = 16;

/// What K a microkernel of a GEMM takes: a multiple of `unit`, at least `least`.
struct GemmK {
  int unit, least;
};
constexpr GemmK gemm_k(DType dtype) { return dtype == DType::f32 ? GemmK{2, 4} : GemmK{4, 8}; }

/// Tiles that leave registers enough for W and X on the machine we know, and for pairs that promote sums.
inline constexpr int k_max_tile_vectors = 8, k_max_tile_sums = 44;
constexpr bool gemm_tile_fits(const GemmTile& tile) {
  return tile.rows <= k_max_tile_rows && tile.vectors <= k_max_tile_vectors && tile.sums() <= k_max_tile_sums &&
         (!tile.promotes || tile.sums() + tile.vectors < 48);
}

/// How the template is filled in for a tile: k-steps of one loop pass (K must be a multiple), partial sums an element,
/// and passes a call has at least.
struct GemmTileLoop {
  int steps = 2;
  int parts = 1;
  int passes = 1;
};

/// The loop with the best bound whose registers fit: sums of Y1, W1 of each step in flight, X1. Throws KernelError when
/// there is none: registers needed, available.
GemmTileLoop gemm_tile_loop(const GemmTile& tile, const isa::Pipeline& pipeline);

/// The tile's microkernel, entries accumulate and write_only; contract in gemm_tile.s.
const isa::Program& gemm_tile_program(const GemmTile& tile, const isa::Pipeline& pipeline);

/// The tile that a program of gemm_tile_program was generated for. Throws KernelError for any other.
const GemmTile& gemm_tile_of(const isa::Program& program);

/// Generated tiles, decoded for the cluster's machine when they are first called.
class TileKernels {
 public:
  explicit TileKernels(sim::Cluster& cluster) : m_cluster(&cluster) {}
  const sim::Kernel& kernel(const GemmTile& tile, bool accumulate);

 private:
  sim::Cluster* m_cluster;
  std::map<std::pair<GemmTile, bool>, sim::Kernel> m_loaded;
};

/// Cycles of an in_order tile's call, estimated without generating it: never less than it takes, and at most a tenth
/// more where K is 64 or more (gemm_tile_test.cpp). gemm_main_cycles: of the microkernel written by hand, exact.
std::int64_t gemm_tile_cycles(const GemmTile& tile, std::int64_t k, const isa::Pipeline& pipeline);
std::int64_t gemm_main_cycles(std::int64_t k, bool promotes);
/// The same from below, on the machine we know: it takes more, by a tenth at most where K is 64 or more.
std::int64_t gemm_tile_least_cycles(const GemmTile& tile, std::int64_t k, const isa::Pipeline& pipeline);

}  // namespace mtsim::kernels
