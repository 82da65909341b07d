// SPDX-License-Identifier: Apache-2.0
// The baseline of the ablation: operators as scalar code that a compiler makes of plain loops. Tiles go DDR -> SM,
// through a scalar microkernel, SM -> DDR; no vectors, no AM, no GSM, no broadcast, nothing overlaps. FP32 inside; FP16
// operands are widened and narrowed in SM, since there are no loads and stores of 16 bits.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/gemm/gemm.h"
#include "sim/cluster.h"
#include "sim/config/machine.h"
#include "sim/dsp.h"

namespace mtsim::kernels {

/// Y[m,n] = X[m,k] * W[k,n]: blocks of Y go round the cores, a block stays in SM while X and W tiles pass.
struct NaiveGemmPlan {
  GemmShape shape;
  DType dtype = DType::f32;
  std::int64_t rows = 0, columns = 0, depth = 0;  // of a tile
  std::int64_t sm_bytes = 0;
};

/// Throws KernelError when the tiles do not fit SM: needed, available.
NaiveGemmPlan plan_naive_gemm(const GemmShape& shape, DType dtype, const sim::MachineConfig& machine);
/// Row-major operands of the plan's dtype in cluster DDR. Launch it on any number of cores.
sim::DspProgram naive_gemm(sim::Cluster& cluster, const NaiveGemmPlan& plan, const GemmOperands& operands);

/// As gemm_error_bound: one fused rounding to FP32 a product, and of FP16 one more at the end.
GemmErrorBound naive_gemm_error_bound(const NaiveGemmPlan& plan);

/// Operators on rows; rows_naive.s says what each computes.
enum class NaiveOp : std::uint8_t { add, silu_mul, softmax, rmsnorm, rope_interleaved, rope_half };

struct NaiveRowsShape {
  NaiveOp op = NaiveOp::add;
  std::int64_t rows = 0, columns = 0;
  DType dtype = DType::f32;             // of x, y and the rows of a (add, silu_mul)
  DType a_dtype = DType::f32;           // of the one row of a (rmsnorm: gamma; rope: head_dim / 2 frequencies, FP32)
  float value = 0;                      // scale of softmax, eps of rmsnorm
  std::int64_t heads = 1;               // of a row, rope alone
  std::int64_t position = 0;            // rope: of row 0, the others follow
  std::vector<std::int64_t> positions;  // rope: or one for each row

  bool is_elementwise() const { return op == NaiveOp::add || op == NaiveOp::silu_mul; }
  bool is_rope() const { return op == NaiveOp::rope_interleaved || op == NaiveOp::rope_half; }
};

struct NaiveRowsPlan {
  NaiveRowsShape shape;
  std::int64_t tile = 0;  // rows of a tile; elements of one where rows do not matter
  std::int64_t sm_bytes = 0;
};

/// Throws KernelError when not even one row fits SM: needed, available.
NaiveRowsPlan plan_naive_rows(const NaiveRowsShape& shape, const sim::MachineConfig& machine);

struct NaiveRowsOperands {  // in cluster DDR
  sim::Pointer x;           // [rows, columns]
  sim::Pointer a;           // add, silu_mul: as x; rmsnorm: [columns]; rope: [columns / heads / 2]; softmax: none
  sim::Pointer y;           // as x, written; may be x
};
sim::DspProgram naive_rows(sim::Cluster& cluster, const NaiveRowsPlan& plan, const NaiveRowsOperands& operands);

}  // namespace mtsim::kernels
