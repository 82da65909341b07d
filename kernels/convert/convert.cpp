// SPDX-License-Identifier: Apache-2.0
#include "kernels/convert/convert.h"

#include "kernels/library.h"

namespace mtsim::kernels {

StreamPlan plan_convert(std::int64_t elements, DType from, std::int64_t tile, const sim::MachineConfig& machine) {
  return plan_stream({.op = "convert",
                      .items = elements,
                      .grain = k_stream_block / bytes_of(DType::f16),
                      .inputs = {{"x", bytes_of(from)}},
                      .outputs = {{"y", bytes_of(other(from))}},
                      .constants = {}},
                     tile, machine);
}

sim::DspProgram convert(sim::Cluster& cluster, const StreamPlan& plan, DType from, sim::Pointer x, sim::Pointer y) {
  const sim::Kernel kernel =
      cluster.load(program("convert", cluster.machine().pipeline), from == DType::f16 ? "f16_to_f32" : "f32_to_f16");
  return stream(cluster, plan, {{x}, {y}, {}}, [kernel](sim::Dsp& dsp, const StreamTile& tile) {
    dsp.call(kernel, {tile.inputs[0], tile.outputs[0], whole_blocks(tile.items * bytes_of(DType::f32))});
  });
}

}  // namespace mtsim::kernels
