// SPDX-License-Identifier: Apache-2.0
// Y[m,n] = X / sqrt(mean(X^2) + eps) * gamma[n] along the rows, FP32 inside. Rows are streamed; up to 32 of a tile are
// reduced together (paper, Fig. 9). Y may be X.
//
// As FP32 arithmetic has it: a row whose squares sum to more than FP32 holds gives 0, and with eps = 0 a row of zeros
// NaN.
#pragma once

#include <cstdint>

#include "kernels/dtype.h"
#include "kernels/stream/stream.h"

namespace mtsim::kernels {

struct RmsNormShape {
  std::int64_t rows = 0, columns = 0;
  DType dtype = DType::f32;        // of X and Y
  DType gamma_dtype = DType::f32;  // f16 only where X is
  float eps = 1e-5F;               // at least 0
};

struct RmsNormPlan {
  RmsNormShape shape;
  StreamPlan stream;  // items are rows
};

/// `tile_rows`: rows a core holds at a time, 0 for the default. Throws KernelError for an eps below 0 or not finite,
/// for FP16 gamma beside FP32 rows, and as plan_stream does: when not even one row fits AM, with the bytes.
RmsNormPlan plan_rmsnorm(const RmsNormShape& shape, std::int64_t tile_rows, const sim::MachineConfig& machine);

struct RmsNormOperands {
  sim::Pointer x;      // [rows, columns] in cluster DDR
  sim::Pointer gamma;  // [columns]
  sim::Pointer y;      // [rows, columns], written
};
/// The DSP program; launch it on any number of cores of `cluster`.
sim::DspProgram rmsnorm(sim::Cluster& cluster, const RmsNormPlan& plan, const RmsNormOperands& operands);

/// Z = X + A and Y = RMSNorm(Z) in one pass over the rows: the end of a block of layers, as add() and rmsnorm() one
/// behind the other have it, bit for bit. Plan it with plan_add_rmsnorm.
struct AddRmsNormOperands {
  sim::Pointer x, a;   // [rows, columns] in cluster DDR or GSM
  sim::Pointer gamma;  // [columns]
  sim::Pointer z, y;   // [rows, columns], written; z may be x
};
RmsNormPlan plan_add_rmsnorm(const RmsNormShape& shape, std::int64_t tile_rows, const sim::MachineConfig& machine);
sim::DspProgram add_rmsnorm(sim::Cluster& cluster, const RmsNormPlan& plan, const AddRmsNormOperands& operands);

}  // namespace mtsim::kernels
