// SPDX-License-Identifier: Apache-2.0
// Y = X + A, element by element: the residual add. Y may be X.
#pragma once

#include "kernels/dtype.h"
#include "kernels/stream/stream.h"

namespace mtsim::kernels {

struct AddOperands {  // `elements` each, in cluster DDR
  sim::Pointer x, a;
  sim::Pointer y;  // written
};

/// `tile`: elements, 0 for the default. Throws KernelError as plan_stream does.
StreamPlan plan_add(std::int64_t elements, DType dtype, std::int64_t tile, const sim::MachineConfig& machine);
sim::DspProgram add(sim::Cluster& cluster, const StreamPlan& plan, DType dtype, const AddOperands& operands);

}  // namespace mtsim::kernels
