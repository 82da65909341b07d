// SPDX-License-Identifier: Apache-2.0
// What the DSP programs of the two GEMM dataflows share; private to kernels/gemm.
#pragma once

#include <cstdint>

#include "kernels/gemm/gemm.h"
#include "sim/cluster.h"
#include "sim/dsp.h"

namespace mtsim::kernels::gemm {

inline constexpr std::int64_t k_f32_bytes = 4;

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return ceil_div(a, b) * b; }
/// What the microkernel takes: even and at least 4.
constexpr std::int64_t padded_k(std::int64_t k) { return k < 4 ? 4 : round_up(k, 2); }

// DMA channels of a core. What the device library gives out (X, W) stays below the first channel of each dataflow's own
// numbering; the machine needs all of them.
struct LargeMChannels {
  static constexpr int k_y_in = 4, k_y_out = 5, k_first_strip = 6, k_strips = 4;
  static constexpr int k_first_chunk = 8, k_chunks = 8;  // strips leave when no chunk is in flight any more
  static constexpr int k_needed = k_first_chunk + k_chunks;
};
struct SmallMChannels {
  static constexpr int k_first_w = 4, k_ws = 2, k_first_y = k_first_w + k_ws, k_ys = 8;
  static constexpr int k_needed = k_first_y + k_ys;
};

/// The microcode of one GEMM, decoded for the cluster's machine.
struct Kernels {
  sim::Kernel accumulate;      // Y1 += X1 * W1
  sim::Kernel write_only;      // Y1 = X1 * W1
  sim::Kernel zero_sm_column;  // pad of X behind the last k
  sim::Kernel zero_am;         // pad of W behind the last k
};

/// X2 [rows, k] * W2 [k, columns] (+)= Y2 [rows, columns], all in this core's SM and AM, buffers padded to whole
/// microkernel tiles: rows to 6, columns to 128, k to padded_k(k). Pitches in bytes.
struct CoreTile {
  sim::Pointer x, w, y;
  std::int64_t x_pitch = 0, w_pitch = 0, y_pitch = 0;
  std::int64_t rows = 0, columns = 0, k = 0;
  bool accumulate = false;

  std::int64_t strips() const { return ceil_div(rows, k_gemm_m1); }
};

/// Sets what X2 and W2 hold behind the last k to zero. Both: with zeros on one side only, an inf on the other gives
/// NaN.
void zero_k_pad(sim::Dsp& dsp, const Kernels& kernels, const CoreTile& tile);

/// Rows [6 strip, 6 strip + 6) of Y2.
void multiply_strip(sim::Dsp& dsp, const Kernels& kernels, const CoreTile& tile, std::int64_t strip);

void run_large_m(sim::Dsp& dsp, const GemmPlan& plan, const GemmOperands& operands, const Kernels& kernels,
                 sim::Pointer gsm);
void run_small_m(sim::Dsp& dsp, const GemmPlan& plan, const GemmOperands& operands, const Kernels& kernels);

/// How small_m splits its work; derived from a plan whose tiles.kg is the columns of X that SM holds at a time.
struct SmallMSplit {
  std::int64_t tiles = 0;          // column tiles of 128 in Y
  std::int64_t block_tiles = 0;    // of one core that fit AM at a time
  std::int64_t column_blocks = 0;  // passes over K for that
  std::int64_t x_blocks = 0;       // of kg columns in one pass
  std::int64_t x_buffers = 0;      // 1 when all of X fits SM, else 2
  std::int64_t x_pitch = 0;        // bytes of a row of X in SM

  std::int64_t first_tile(int core, std::int64_t cores) const { return tiles * core / cores; }
};
SmallMSplit split_small_m(const GemmPlan& plan, const sim::MachineConfig& machine);

}  // namespace mtsim::kernels::gemm
