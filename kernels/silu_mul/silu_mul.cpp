// SPDX-License-Identifier: Apache-2.0
#include "kernels/silu_mul/silu_mul.h"

#include "kernels/library.h"

namespace mtsim::kernels {

StreamPlan plan_silu_mul(std::int64_t elements, DType dtype, std::int64_t tile, const sim::MachineConfig& machine) {
  const std::int64_t bytes = bytes_of(dtype);
  return plan_stream({.op = "silu_mul",
                      .items = elements,
                      .grain = k_stream_block / bytes,
                      .inputs = {{"gate", bytes}, {"up", bytes}},
                      .outputs = {{"y", bytes}},
                      .constants = {},
                      .in_place = true},
                     tile, machine);
}

sim::DspProgram silu_mul(sim::Cluster& cluster, const StreamPlan& plan, DType dtype, const SiluMulOperands& operands) {
  const sim::Kernel kernel =
      cluster.load(program("silu_mul", cluster.machine().pipeline, {{"F16", dtype == DType::f16}}));
  return stream(cluster, plan, {{operands.gate, operands.up}, {operands.y}, {}},
                [kernel, bytes = bytes_of(dtype)](sim::Dsp& dsp, const StreamTile& tile) {
                  dsp.call(kernel, {tile.inputs[0], tile.inputs[1], whole_blocks(tile.items * bytes)});
                });
}

}  // namespace mtsim::kernels
