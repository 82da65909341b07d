// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding of X [rows, heads * head_dim]: each pair of elements of a head rotated by the angle
// position(row) * inv_freq[pair], rounded to FP32. FP32 inside; FP16 operands are rounded once more at the end.
#pragma once

#include <cstdint>

#include "kernels/rope/rope_tile.h"
#include "kernels/stream/stream.h"

namespace mtsim::kernels {

struct RopeShape {
  std::int64_t rows = 0, heads = 0, head_dim = 0;
};

struct RopePlan {
  RopeShape shape;
  RopePositions positions;
  RopeLayout layout;
  StreamPlan stream;

  std::int64_t tile_rows() const { return stream.tile_items / stream.shape.grain; }
};

/// `tile_rows` of 0: chosen. Throws KernelError for a head_dim the microcode does not take, a position that is negative
/// or above k_rope_max_position, a list of another length than the rows, and tiles that do not fit AM.
RopePlan plan_rope(const RopeShape& shape, RopePairs pairs, DType dtype, const RopePositions& positions,
                   std::int64_t tile_rows, const sim::MachineConfig& machine);

struct RopeOperands {        // in cluster DDR
  sim::Pointer x;            // [rows, heads * head_dim], row-major, of the plan's dtype
  sim::Pointer frequencies;  // [layout.angles] FP32: layout.frequencies(inv_freq)
  sim::Pointer y;            // as x; may be x
};

/// The DSP program of the plan; launch it on any number of cores.
sim::DspProgram rope(sim::Cluster& cluster, const RopePlan& plan, const RopeOperands& operands);

}  // namespace mtsim::kernels
