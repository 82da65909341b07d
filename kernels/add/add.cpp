// SPDX-License-Identifier: Apache-2.0
#include "kernels/add/add.h"

#include "kernels/library.h"

namespace mtsim::kernels {

StreamPlan plan_add(std::int64_t elements, DType dtype, std::int64_t tile, const sim::MachineConfig& machine) {
  const std::int64_t bytes = bytes_of(dtype);
  return plan_stream({.op = "add",
                      .items = elements,
                      .grain = k_stream_block / bytes,
                      .inputs = {{"x", bytes}, {"a", bytes}},
                      .outputs = {{"y", bytes}},
                      .constants = {},
                      .in_place = true},
                     tile, machine);
}

sim::DspProgram add(sim::Cluster& cluster, const StreamPlan& plan, DType dtype, const AddOperands& operands) {
  const sim::Kernel kernel =
      cluster.load(program("add", cluster.machine().pipeline), dtype == DType::f32 ? "add_f32" : "add_f16");
  return stream(cluster, plan, {{operands.x, operands.a}, {operands.y}, {}},
                [kernel, bytes = bytes_of(dtype)](sim::Dsp& dsp, const StreamTile& tile) {
                  dsp.call(kernel, {tile.inputs[0], tile.inputs[1], whole_blocks(tile.items * bytes)});
                });
}

}  // namespace mtsim::kernels
