// SPDX-License-Identifier: Apache-2.0
#include "kernels/rope/rope.h"

#include <fmt/format.h>

#include "kernels/library.h"

namespace mtsim::kernels {
RopePlan plan_rope(const RopeShape& shape, RopePairs pairs, DType dtype, const RopePositions& positions,
                   std::int64_t tile_rows, const sim::MachineConfig& machine) {
  RopePlan plan{shape, positions, RopeLayout::of(shape.heads, shape.head_dim, pairs, dtype), {}};
  if (shape.rows < 1) throw KernelError(fmt::format("rope: {} rows; at least 1", shape.rows));
  positions.check(shape.rows);
  const RopeLayout& layout = plan.layout;
  // An item is a row; with pads, what lies between two of them, so that the transfers leave room for them.
  const std::int64_t parts = layout.dense ? 1 : layout.heads * (pairs == RopePairs::half ? 2 : 1);
  const StreamOperand part{.name = "x",
                           .item_bytes = shape.heads * shape.head_dim * bytes_of(dtype) / parts,
                           .am_pitch = layout.dense ? 0 : layout.row_bytes() / parts};
  plan.stream = plan_stream({.op = "rope",
                             .items = shape.rows * parts,
                             .grain = parts,
                             .inputs = {part},
                             .outputs = {part},
                             .constants = {{.name = "frequencies", .bytes = layout.angles * 4}},
                             .in_place = true,
                             .scratch_item_bytes = (layout.table_pitch() + parts - 1) / parts},
                            tile_rows * parts, machine);
  return plan;
}

sim::DspProgram rope(sim::Cluster& cluster, const RopePlan& plan, const RopeOperands& operands) {
  const RopeTile tile(cluster, plan.layout);
  const std::int64_t parts = plan.stream.shape.grain;
  return stream(cluster, plan.stream, {{operands.x}, {operands.y}, {operands.frequencies}},
                [=, positions = plan.positions](sim::Dsp& dsp, const StreamTile& now) {
                  const std::int64_t rows = now.items / parts;
                  tile.tabulate(dsp, positions, now.first / parts, rows, now.constants[0], now.scratch_items);
                  tile.rotate(dsp, now.inputs[0], tile.layout().row_bytes(), rows, tile.layout().heads,
                              now.scratch_items);
                });
}

}  // namespace mtsim::kernels
