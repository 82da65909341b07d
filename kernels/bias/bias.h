// SPDX-License-Identifier: Apache-2.0
// Y[i][j] = X[i][j] + B[j]: a bias added to every row. Y may be X.
#pragma once

#include "kernels/dtype.h"
#include "kernels/stream/stream.h"

namespace mtsim::kernels {

struct BiasOperands {  // row-major, in cluster DDR
  sim::Pointer x;      // [rows, columns]
  sim::Pointer b;      // [columns]
  sim::Pointer y;      // [rows, columns], written
};

/// `tile`: rows, 0 for the default. Throws KernelError as plan_stream does: a row three times and the bias fit AM.
StreamPlan plan_bias(std::int64_t rows, std::int64_t columns, DType dtype, std::int64_t tile,
                     const sim::MachineConfig& machine);
sim::DspProgram bias(sim::Cluster& cluster, const StreamPlan& plan, DType dtype, const BiasOperands& operands);

}  // namespace mtsim::kernels
