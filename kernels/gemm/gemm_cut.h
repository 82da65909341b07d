// SPDX-License-Identifier: Apache-2.0
// How a core cuts its part of Y into microkernel calls: the whole tiles of M1 x N1 for the microkernel written by hand,
// what is left of M and N for tiles of other sizes (gemm_tile.s). Private to kernels/gemm.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/gemm_tile.h"
#include "sim/config/machine.h"

namespace mtsim::kernels::gemm {

/// Columns of a strip from `column` on; without a tile those of the M1 x N1 microkernel, pads included.
struct CutBlock {
  std::int64_t column = 0;
  std::optional<GemmTile> tile;
};

struct CutStrip {
  std::int64_t row = 0, rows = 0;
  std::vector<CutBlock> blocks;
};

struct Cut {
  std::vector<CutStrip> strips;  // those of M1 rows first
  std::int64_t cycles = 0;       // of the calls for one K1, the jumps into them included
};

/// Cuts [rows, columns] of a plan's Y (GemmWeights::in_out) so that the calls take the fewest cycles by their own
/// estimates: gemm_main_cycles for M1 x N1, gemm_tile_cycles for the others, `call_cycles` and `loop_cycles` of the
/// machine for each. Tails are padded to M1 x N1 where that takes no longer, and in the paper's sequence, which has one
/// microkernel. A plan with an M1 x N1 of its own has nothing to choose: tails are its rest.
class Cutter {
 public:
  Cutter(const GemmPlan& plan, const sim::MachineConfig& machine);

  /// Positive sizes. The reference stays valid.
  const Cut& cut(std::int64_t rows, std::int64_t columns) const;

  /// Most k of one call, and the cycles of one k-step of tiles.k2.
  std::int64_t k_call() const { return m_k; }
  std::int64_t step_cycles(std::int64_t rows, std::int64_t columns) const;

 private:
  struct Strip {
    std::int64_t cycles = 0;
    std::vector<int> vectors;  // of each block, the first ones those of the M1 x N1 microkernel
    std::size_t main_blocks = 0;
  };
  Cut padded(std::int64_t rows, std::int64_t columns) const;
  Cut fitted(std::int64_t rows, std::int64_t columns) const;
  Cut of_main_tile(std::int64_t rows, std::int64_t columns) const;
  Strip best_strip(int rows, std::int64_t vectors) const;
  GemmTile tile(int rows, int vectors) const;
  std::int64_t cycles(const GemmTile& tile) const;

  bool m_paper;
  std::optional<GemmTile> m_main;  // of a plan that asks for another than the one written by hand
  DType m_dtype;
  bool m_promotes;
  std::int64_t m_calls = 1, m_k = 0;  // of a k-step, k of each
  std::int64_t m_jump = 0;            // into a microkernel
  isa::Pipeline m_pipeline;
  mutable std::map<std::pair<std::int64_t, std::int64_t>, Cut> m_cuts;
};

}  // namespace mtsim::kernels::gemm
