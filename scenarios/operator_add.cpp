// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernels/add/add.h"
#include "kernels/bias/bias.h"
#include "scenarios/operator_stream.h"
#include "scenarios/operators.h"

namespace mtsim::scenarios {

namespace {

/// FP32: one rounding. FP16: the sum in FP32, which may round, then the rounding to FP16.
void add_rows(ReferenceRow& row) {
  const double u = unit_roundoff(DType::f32);
  const double relative = row.dtype == DType::f32 ? u : unit_roundoff(DType::f16) + 2 * u;
  for (std::size_t c = 0; c < row.values.size(); ++c) {
    row.values[c] = static_cast<double>(row.inputs[0][c]) + static_cast<double>(row.inputs[1][c]);
    row.bounds[c] = relative * std::abs(row.values[c]);
  }
}

}  // namespace

const Operator& add_operator() {
  static const StreamOperator op({
      .info = {.name = "add",
               .summary = "Y[m,n] = X[m,n] + A[m,n], the residual add",
               .dimensions = matrix_dimensions(),
               .dtypes = {DType::f32, DType::f16},
               .variants = {k_best_or_naive},
               .tiles = "Elements a core works on at a time, e.g. elements=8192 (16 KB by default)",
               .examples = {"--m 720 --n 4096 --dtype f16", "--m 61 --n 129 --verify"}},
      .tile_key = "elements",
      .inputs = {StreamInput::matrix, StreamInput::matrix},
      .plan = [](std::int64_t m, std::int64_t n, DType dtype, std::int64_t tile,
                 const sim::MachineConfig& machine) { return kernels::plan_add(m * n, dtype, tile, machine); },
      .program =
          [](sim::Cluster& cluster, const kernels::StreamPlan& plan, DType dtype,
             const std::vector<sim::Pointer>& inputs, sim::Pointer result) {
            return kernels::add(cluster, plan, dtype, {inputs[0], inputs[1], result});
          },
      .reference = add_rows,
      .scale = {1, 0.7F},  // sums round
      .complete =
          [](StreamOperatorInfo& info, const CaseSpec& spec) {
            if (is_naive(spec)) info.naive = kernels::NaiveRowsShape{.op = kernels::NaiveOp::add};
          },
  });
  return op;
}

const Operator& bias_operator() {
  static const StreamOperator op({
      .info = {.name = "bias",
               .summary = "Y[m,n] = X[m,n] + B[n], a bias added to every row",
               .dimensions = matrix_dimensions(),
               .dtypes = {DType::f32, DType::f16},
               .variants = {},
               .tiles = "Rows a core works on at a time, e.g. rows=4 (16 KB by default)",
               .examples = {"--m 720 --n 4096 --dtype f16", "--m 61 --n 129 --verify"}},
      .tile_key = "rows",
      .inputs = {StreamInput::matrix, StreamInput::row},
      .plan = kernels::plan_bias,
      .program =
          [](sim::Cluster& cluster, const kernels::StreamPlan& plan, DType dtype,
             const std::vector<sim::Pointer>& inputs, sim::Pointer result) {
            return kernels::bias(cluster, plan, dtype, {inputs[0], inputs[1], result});
          },
      .reference = add_rows,
      .scale = {1, 0.7F},  // sums round
  });
  return op;
}

}  // namespace mtsim::scenarios
