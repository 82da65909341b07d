// SPDX-License-Identifier: Apache-2.0
// Y = X in the other element type, element by element.
#pragma once

#include "kernels/dtype.h"
#include "kernels/stream/stream.h"

namespace mtsim::kernels {

constexpr DType other(DType dtype) { return dtype == DType::f32 ? DType::f16 : DType::f32; }

/// `from`: the type of X. `tile`: elements, 0 for the default. Throws KernelError as plan_stream does.
StreamPlan plan_convert(std::int64_t elements, DType from, std::int64_t tile, const sim::MachineConfig& machine);
/// `x`, `y`: in cluster DDR, not overlapping.
sim::DspProgram convert(sim::Cluster& cluster, const StreamPlan& plan, DType from, sim::Pointer x, sim::Pointer y);

}  // namespace mtsim::kernels
