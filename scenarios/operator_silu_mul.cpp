// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernels/silu_mul/silu_mul.h"
#include "scenarios/operator_stream.h"
#include "scenarios/operators.h"

namespace mtsim::scenarios {

namespace {

/// y = (g * (t * r)) * u with z = e^-|g|, r = 1 / (1 + z) and t = 1 or z. Relative, in units of 2^-24: z is within 0.9
/// ULP (2), 1 + z has at most half of that and a rounding (2), r is within 0.51 ULP (1.02), the products round three
/// times: 8.02 and less than 1 for terms of second order. Below 2^-126, z is off by up to 2^-149 and each product by
/// 2^-150, which the factors behind it magnify. FP16 rounds once more.
constexpr double k_roundings = 9;
/// The baseline's z is off by 4 units, 1 + z and its inverse by 4, three products by 3: 11, and less than 3 of second
/// order.
constexpr double k_naive_roundings = 14;

void silu_mul_row(ReferenceRow& row, double roundings) {
  const double relative = roundings * 0x1p-24, subnormal = 0x1p-149;
  for (std::size_t c = 0; c < row.values.size(); ++c) {
    const double g = row.inputs[0][c], u = row.inputs[1][c];
    const double y = g / (1 + std::exp(-g)) * u;
    row.values[c] = y;
    row.bounds[c] = relative * std::abs(y) + subnormal * (std::abs(g * u) + std::abs(u) + 1);
    if (row.dtype == DType::f16) row.bounds[c] += 0x1p-11 * (1 + relative) * std::abs(y) + 0x1p-25;
  }
}

}  // namespace

const Operator& silu_mul_operator() {
  static const StreamOperator op({
      .info = {.name = "silu_mul",
               .summary = "Y[m,n] = SiLU(G[m,n]) * U[m,n], SiLU(g) = g / (1 + e^-g)",
               .dimensions = matrix_dimensions(),
               .dtypes = {DType::f32, DType::f16},
               .variants = {k_best_or_naive},
               .tiles = "Elements a core works on at a time, e.g. elements=8192 (16 KB by default)",
               .examples = {"--m 720 --n 11008 --dtype f16", "--m 61 --n 129 --verify"}},
      .tile_key = "elements",
      .inputs = {StreamInput::matrix, StreamInput::matrix},
      .plan = [](std::int64_t m, std::int64_t n, DType dtype, std::int64_t tile,
                 const sim::MachineConfig& machine) { return kernels::plan_silu_mul(m * n, dtype, tile, machine); },
      .program =
          [](sim::Cluster& cluster, const kernels::StreamPlan& plan, DType dtype,
             const std::vector<sim::Pointer>& inputs, sim::Pointer result) {
            return kernels::silu_mul(cluster, plan, dtype, {inputs[0], inputs[1], result});
          },
      .reference = [](ReferenceRow& row) { silu_mul_row(row, k_roundings); },
      .scale = {20},  // from e^-20 to where SiLU is the identity
      .complete =
          [](StreamOperatorInfo& info, const CaseSpec& spec) {
            if (!is_naive(spec)) return;
            info.naive = kernels::NaiveRowsShape{.op = kernels::NaiveOp::silu_mul};
            info.reference = [](ReferenceRow& row) { silu_mul_row(row, k_naive_roundings); };
          },
  });
  return op;
}

}  // namespace mtsim::scenarios
