// SPDX-License-Identifier: Apache-2.0
// Operators that reduce rows. Errors as multiples of u = 2^-24, half a unit in the last place; the headers of the
// kernels say what is computed.
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "kernels/reduce/rows.h"
#include "kernels/rmsnorm/rmsnorm.h"
#include "kernels/softmax/softmax.h"
#include "scenarios/operator_stream.h"
#include "scenarios/operators.h"

namespace mtsim::scenarios {

namespace {

constexpr double k_u = unit_roundoff(DType::f32);
constexpr double k_second_order = 1.0001;  // for products of errors
constexpr std::string_view k_tile_help = "Rows a core works on at a time, e.g. rows=32 (16 KB by default)";

/// The rounding of a result to its type, below its normal numbers too.
double storage_error(double value, DType dtype) {
  return dtype == DType::f16 ? std::max(unit_roundoff(dtype) * std::abs(value), 0x1p-25) : 0x1p-150;
}

// (x - max) scale is off by 2 u of itself and so is exp of it, which adds 0.9 ULP = 1.8 u. A term goes through two
// additions a block, 2 of the lane sums and 5 of the reduction. 1 / sum: 0.51 ULP = 1.02 u, the product: u.
struct SoftmaxErrors {  // in u
  double exponential, additions, reciprocal_and_product;
};
SoftmaxErrors softmax_errors(std::int64_t columns) {
  return {1.8, static_cast<double>(2 * kernels::row_blocks(columns) + 7), 2.02};
}
/// The baseline adds one term after the other; its exp is within 4 u, 1 / sum and the last product within 3.
SoftmaxErrors naive_softmax_errors(std::int64_t columns) { return {4, static_cast<double>(columns), 3}; }

void softmax_row(ReferenceRow& row, double scale, const SoftmaxErrors& errors) {
  const std::span<const float> x = row.inputs[0];
  const double most = *std::max_element(x.begin(), x.end());
  const auto exponent = [&](std::size_t i) { return (x[i] - most) * scale; };
  const auto error = [&errors](double d) { return k_u * (2 * std::abs(d) + errors.exponential); };
  double sum = 0, sum_error = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double term = std::exp(exponent(i));
    sum += term;
    sum_error += term * error(exponent(i));
  }
  const double common = sum_error / sum + k_u * (errors.additions + errors.reciprocal_and_product);
  for (std::size_t i = 0; i < x.size(); ++i) {
    row.values[i] = std::exp(exponent(i)) / sum;
    row.bounds[i] = k_second_order * (error(exponent(i)) + common) * row.values[i] +
                    storage_error(row.values[i], row.dtype) + 0x1p-150;
  }
}

// Positive terms: one fused multiply-add a block, 3 additions of the lane sums and 5 of the reduction are the roundings
// of the sum; 2 more give the mean; the root halves them and adds 1.01 ULP = 2.02 u; then one product, or two.
struct RmsNormErrors {  // in u
  double sum, root, products;
};
RmsNormErrors rmsnorm_errors(std::int64_t columns, DType gamma) {
  return {static_cast<double>(kernels::row_blocks(columns) + 8), 2.02, gamma == DType::f16 ? 1.0 : 2.0};
}
/// The baseline adds one square after the other; its root is within 2 u and both products round.
RmsNormErrors naive_rmsnorm_errors(std::int64_t columns) { return {static_cast<double>(columns), 2.02, 2}; }

void rmsnorm_row(ReferenceRow& row, double eps, const RmsNormErrors& errors) {
  const std::span<const float> x = row.inputs[0], gamma = row.inputs[1];
  double sum = 0;
  for (const float v : x) sum += static_cast<double>(v) * static_cast<double>(v);
  const double factor = 1 / std::sqrt(sum / static_cast<double>(x.size()) + eps);
  const double relative = k_second_order * k_u * ((errors.sum + 2) / 2 + errors.root + errors.products);
  for (std::size_t i = 0; i < x.size(); ++i) {
    row.values[i] = static_cast<double>(x[i]) * factor * static_cast<double>(gamma[i]);
    row.bounds[i] = relative * std::abs(row.values[i]) + storage_error(row.values[i], row.dtype) + 0x1p-150;
  }
}

void complete_softmax(StreamOperatorInfo& op, const CaseSpec& spec) {
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(spec.shape[2])));
  const kernels::SoftmaxShape shape{spec.shape[0], spec.shape[1], spec.dtype, scale};
  op.plan = [shape](std::int64_t, std::int64_t, DType, std::int64_t tile, const sim::MachineConfig& machine) {
    return kernels::plan_softmax(shape, tile, machine).stream;
  };
  op.program = [shape](sim::Cluster& cluster, const kernels::StreamPlan& plan, DType,
                       const std::vector<sim::Pointer>& inputs, sim::Pointer result) {
    return kernels::softmax(cluster, {shape, plan}, {inputs[0], result});
  };
  const bool naive = is_naive(spec);
  if (naive) op.naive = kernels::NaiveRowsShape{.op = kernels::NaiveOp::softmax, .value = scale};
  const SoftmaxErrors errors = naive ? naive_softmax_errors(spec.shape[1]) : softmax_errors(spec.shape[1]);
  op.reference = [scale, errors](ReferenceRow& row) { softmax_row(row, static_cast<double>(scale), errors); };
}

void complete_rmsnorm(StreamOperatorInfo& op, const CaseSpec& spec) {
  const DType gamma = spec.variant[1] == "gamma_f32" ? DType::f32 : spec.dtype;
  const auto eps = static_cast<float>(1e-6 * static_cast<double>(spec.shape[2]));
  const kernels::RmsNormShape shape{spec.shape[0], spec.shape[1], spec.dtype, gamma, eps};
  op.input_dtypes = {std::nullopt, gamma};
  op.plan = [shape](std::int64_t, std::int64_t, DType, std::int64_t tile, const sim::MachineConfig& machine) {
    return kernels::plan_rmsnorm(shape, tile, machine).stream;
  };
  op.program = [shape](sim::Cluster& cluster, const kernels::StreamPlan& plan, DType,
                       const std::vector<sim::Pointer>& inputs, sim::Pointer result) {
    return kernels::rmsnorm(cluster, {shape, plan}, {inputs[0], inputs[1], result});
  };
  const bool naive = is_naive(spec);
  if (naive) op.naive = kernels::NaiveRowsShape{.op = kernels::NaiveOp::rmsnorm, .a_dtype = gamma, .value = eps};
  const RmsNormErrors errors = naive ? naive_rmsnorm_errors(spec.shape[1]) : rmsnorm_errors(spec.shape[1], gamma);
  op.reference = [eps, errors](ReferenceRow& row) { rmsnorm_row(row, static_cast<double>(eps), errors); };
}

}  // namespace

const Operator& softmax_operator() {
  static const StreamOperator op({
      .info = {.name = "softmax",
               .summary = "Y[m,n] = softmax(X[m,n] / sqrt(head_dim)) along the rows, FP32 inside",
               .dimensions = {{"m", "Rows", {}},
                              {"n", "Columns", {}},
                              {"head_dim", "X is divided by its square root", 1}},
               .dtypes = {DType::f32, DType::f16},
               .variants = {k_best_or_naive},
               .tiles = k_tile_help,
               .examples = {"--m 4096 --n 4096 --dtype f16", "--m 61 --n 129 --head_dim 128 --verify"}},
      .tile_key = "rows",
      .inputs = {StreamInput::matrix},
      .scale = {16},  // so that weights differ
      .complete = complete_softmax,
  });
  return op;
}

const Operator& rmsnorm_operator() {
  static const StreamOperator op({
      .info = {.name = "rmsnorm",
               .summary = "Y[m,n] = X / sqrt(mean(X^2) + eps) * gamma[n] along the rows, FP32 inside",
               .dimensions = {{"m", "Rows", {}}, {"n", "Columns", {}}, {"eps_millionths", "eps in units of 1e-6", 10}},
               .dtypes = {DType::f32, DType::f16},
               .variants = {k_best_or_naive, {{"gamma_as_x", "gamma_f32"}}},
               .tiles = k_tile_help,
               .examples = {"--m 4096 --n 4096 --dtype f16", "--m 61 --n 129 --eps_millionths 1 --verify"}},
      .tile_key = "rows",
      .inputs = {StreamInput::matrix, StreamInput::row},
      .complete = complete_rmsnorm,
  });
  return op;
}

}  // namespace mtsim::scenarios
