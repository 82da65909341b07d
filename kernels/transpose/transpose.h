// SPDX-License-Identifier: Apache-2.0
// Y [columns, rows] = X [rows, columns] transposed, FP32 or FP16. What attention makes K^T with (docs/architecture.md).
#pragma once

#include <cstdint>
#include <string>

#include "kernels/dtype.h"
#include "sim/cluster.h"
#include "sim/config/machine.h"
#include "sim/dsp.h"

namespace mtsim::kernels {

struct TransposeShape {
  std::int64_t rows = 0, columns = 0;  // of X
  std::int64_t y_pitch = 0;            // elements from row to row of Y in DDR; 0: they lie one behind the other

  std::int64_t y_row() const { return y_pitch == 0 ? rows : y_pitch; }
};

/// What a core transposes at a time, in elements; multiples of what 128 B hold (FP32: 32, FP16: 64).
struct TransposeTiles {
  std::int64_t rows = 0, columns = 0;  // 0: chosen
};

struct TransposePlan {
  TransposeShape shape;
  DType dtype = DType::f32;
  TransposeTiles tiles;
  std::int64_t am_bytes = 0;

  double ideal_bytes() const {
    return 2.0 * static_cast<double>(bytes_of(dtype)) * static_cast<double>(shape.rows) *
           static_cast<double>(shape.columns);
  }
};

/// Elements in 128 B: rows of a panel and columns of a block of the microkernel `transpose`.
constexpr std::int64_t transpose_unit(DType dtype) { return 128 / bytes_of(dtype); }
/// AM that the microkernel works in.
constexpr std::int64_t transpose_scratch_bytes(DType dtype) { return 32 * 1024 / bytes_of(dtype); }

/// "rows=128,columns=128"; KernelError for an unknown key, for what is no positive multiple of the unit.
TransposeTiles parse_transpose_tiles(const std::string& text, DType dtype);

/// Throws KernelError when the tiles do not fit AM: bytes needed and available.
TransposePlan plan_transpose(const TransposeShape& shape, DType dtype, const TransposeTiles& tiles,
                             const sim::MachineConfig& machine);

struct TransposeOperands {  // row-major, in cluster DDR; they do not overlap
  sim::Pointer x;           // [rows, columns]
  sim::Pointer y;           // [columns, rows], written; rows y_pitch apart, what lies between them stays
};

/// The DSP program of the plan; launch it on any number of cores.
sim::DspProgram transpose(sim::Cluster& cluster, const TransposePlan& plan, const TransposeOperands& operands);

}  // namespace mtsim::kernels
