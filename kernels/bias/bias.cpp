// SPDX-License-Identifier: Apache-2.0
#include "kernels/bias/bias.h"

#include "kernels/library.h"

namespace mtsim::kernels {

StreamPlan plan_bias(std::int64_t rows, std::int64_t columns, DType dtype, std::int64_t tile,
                     const sim::MachineConfig& machine) {
  const std::int64_t bytes = columns * bytes_of(dtype);
  return plan_stream({.op = "bias",
                      .items = rows,
                      .inputs = {{"x", bytes, whole_blocks(bytes)}},
                      .outputs = {{"y", bytes, whole_blocks(bytes)}},
                      .constants = {{"b", bytes}},
                      .in_place = true},
                     tile, machine);
}

sim::DspProgram bias(sim::Cluster& cluster, const StreamPlan& plan, DType dtype, const BiasOperands& operands) {
  // A row is a residual add of the bias: pads are 0 + 0.
  const sim::Kernel kernel =
      cluster.load(program("add", cluster.machine().pipeline), dtype == DType::f32 ? "add_f32" : "add_f16");
  return stream(cluster, plan, {{operands.x}, {operands.y}, {operands.b}},
                [kernel, pitch = plan.shape.inputs[0].pitch()](sim::Dsp& dsp, const StreamTile& tile) {
                  for (std::int64_t row = 0; row < tile.items; ++row) {
                    dsp.loop_iteration();
                    dsp.call(kernel, {tile.inputs[0] + row * pitch, tile.constants[0], pitch});
                  }
                });
}

}  // namespace mtsim::kernels
