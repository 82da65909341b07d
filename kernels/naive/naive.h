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

/// Types of the three matrices and where they lie, row-major: elements from row to row; 0 where nothing lies between
/// rows. W may be in parts, each a matrix of so many columns or so many rows (one of the two; 0: in one part), as K^T
/// and V are in the blocks of a cache.
struct NaiveGemmLayout {
  DType x = DType::f32, w = DType::f32, y = DType::f32;
  std::int64_t x_pitch = 0, w_pitch = 0, y_pitch = 0;
  std::int64_t part_columns = 0, part_rows = 0;
};

/// Y[m,n] = X[m,k] * W[k,n]: blocks of Y go round the cores, a block stays in SM while X and W tiles pass.
struct NaiveGemmPlan {
  GemmShape shape;
  NaiveGemmLayout layout;                         // none is 0 any more
  std::int64_t rows = 0, columns = 0, depth = 0;  // of a tile
  std::int64_t sm_bytes = 0;

  std::int64_t parts() const;  // of W
};

/// Throws KernelError for rows that overlap, for parts both ways, and when the tiles do not fit SM: needed, available.
NaiveGemmPlan plan_naive_gemm(const GemmShape& shape, const NaiveGemmLayout& layout, const sim::MachineConfig& machine);
/// All three of one type, dense, W in one part.
NaiveGemmPlan plan_naive_gemm(const GemmShape& shape, DType dtype, const sim::MachineConfig& machine);

struct NaiveGemmOperands {  // in cluster DDR
  sim::Pointer x;
  std::vector<sim::Pointer> w;  // of each part
  sim::Pointer y;               // written
};
/// Launch it on any number of cores. Throws KernelError when there are not as many parts as in the plan.
sim::DspProgram naive_gemm(sim::Cluster& cluster, const NaiveGemmPlan& plan, const NaiveGemmOperands& operands);

/// As gemm_error_bound: one fused rounding to FP32 a product, and one more at the end where Y is FP16.
GemmErrorBound naive_gemm_error_bound(const NaiveGemmPlan& plan);

/// Operators on rows; rows_naive.s says what each computes.
/// bias is an add of one row to each.
enum class NaiveOp : std::uint8_t { add, silu_mul, softmax, rmsnorm, rope_interleaved, rope_half, bias };

struct NaiveRowsShape {
  NaiveOp op = NaiveOp::add;
  std::int64_t rows = 0, columns = 0;
  DType dtype = DType::f32;    // of x, y and the rows of a (add, silu_mul)
  DType a_dtype = DType::f32;  // of the one row of a (bias; rmsnorm: gamma; rope: head_dim / 2 frequencies, FP32)
  float value = 0;             // scale of softmax, eps of rmsnorm
  std::int64_t heads = 1;      // of a row, rope alone
  std::int64_t position = 0;   // rope: of row 0, the others follow
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
  sim::Pointer a;           // add, silu_mul: as x; rmsnorm, bias: [columns]; rope: [columns / heads / 2]; softmax: none
  sim::Pointer y;           // as x, written; may be x
};
sim::DspProgram naive_rows(sim::Cluster& cluster, const NaiveRowsPlan& plan, const NaiveRowsOperands& operands);

}  // namespace mtsim::kernels
