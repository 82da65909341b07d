// SPDX-License-Identifier: Apache-2.0
#include "kernels/convert/convert.h"
#include "scenarios/operands.h"
#include "scenarios/operator_stream.h"
#include "scenarios/operators.h"

namespace mtsim::scenarios {

const Operator& convert_operator() {
  static const StreamOperator op({
      .info = {.name = "convert",
               .summary = "Y[m,n] = X[m,n] in the other element type; --dtype is the type of X",
               .dimensions = matrix_dimensions(),
               .dtypes = {DType::f32, DType::f16},
               .variants = {},
               .tiles = "Elements a core works on at a time, e.g. elements=8192 (16 KB by default)",
               .examples = {"--m 720 --n 4096 --dtype f16", "--m 61 --n 129 --dtype f32 --verify"}},
      .tile_key = "elements",
      .inputs = {StreamInput::matrix},
      .result_dtype = kernels::other,
      .plan = [](std::int64_t m, std::int64_t n, DType dtype, std::int64_t tile,
                 const sim::MachineConfig& machine) { return kernels::plan_convert(m * n, dtype, tile, machine); },
      .program = [](sim::Cluster& cluster, const kernels::StreamPlan& plan, DType dtype,
                    const std::vector<sim::Pointer>& inputs,
                    sim::Pointer result) { return kernels::convert(cluster, plan, dtype, inputs[0], result); },
      // Exact to FP32; to FP16 one rounding, of which there is one right result.
      .reference =
          [](ReferenceRow& row) {
            for (std::size_t c = 0; c < row.values.size(); ++c) {
              const double x = row.inputs[0][c];
              row.values[c] = row.dtype == DType::f32 ? from_f16(to_f16(x)) : x;
              row.bounds[c] = 0;
            }
          },
  });
  return op;
}

}  // namespace mtsim::scenarios
