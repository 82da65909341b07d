// SPDX-License-Identifier: Apache-2.0
// Y = SiLU(G) * U element by element, SiLU(g) = g / (1 + e^-g): the gated activation of a feed-forward layer. Y may be
// G.
#pragma once

#include "kernels/dtype.h"
#include "kernels/stream/stream.h"

namespace mtsim::kernels {

struct SiluMulOperands {  // `elements` each, in cluster DDR
  sim::Pointer gate, up;
  sim::Pointer y;  // written
};

/// `tile`: elements, 0 for the default. Throws KernelError as plan_stream does.
StreamPlan plan_silu_mul(std::int64_t elements, DType dtype, std::int64_t tile, const sim::MachineConfig& machine);
sim::DspProgram silu_mul(sim::Cluster& cluster, const StreamPlan& plan, DType dtype, const SiluMulOperands& operands);

}  // namespace mtsim::kernels
