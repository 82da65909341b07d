// SPDX-License-Identifier: Apache-2.0
#include "kernels/softmax/softmax.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "kernels/library.h"
#include "kernels/reduce/rows.h"

namespace mtsim::kernels {
namespace {

/// Copies of -infinity, which neither the maximum nor the sum of a row sees.
std::uint64_t pad(DType dtype) { return dtype == DType::f32 ? 0xFF800000'FF800000 : 0xFC00FC00'FC00FC00; }

}  // namespace

SoftmaxPlan plan_softmax(const SoftmaxShape& shape, std::int64_t tile_rows, const sim::MachineConfig& machine) {
  if (!(shape.scale > 0) || std::isinf(shape.scale)) {
    throw KernelError(fmt::format("softmax: scale {} must be above 0 and finite", shape.scale));
  }
  const std::int64_t row = shape.columns * bytes_of(shape.dtype), pitch = row_pitch(shape.columns, shape.dtype);
  const StreamShape stream{.op = "softmax",
                           .items = shape.rows,
                           .inputs = {{"x", row, pitch, 0, pad(shape.dtype)}},
                           .outputs = {{"y", row, pitch}},
                           .constants = {},
                           .scratch_bytes = k_rows_area_bytes,
                           // FP32 storage: the exponentials are kept in Y.
                           .scratch_item_bytes = shape.dtype == DType::f32 ? 0 : row_pitch(shape.columns, DType::f32)};
  return {shape, plan_stream(stream, tile_rows, machine)};
}

sim::DspProgram softmax(sim::Cluster& cluster, const SoftmaxPlan& plan, const SoftmaxOperands& operands) {
  const SoftmaxShape& shape = plan.shape;
  const bool half = shape.dtype == DType::f16;
  const sim::Kernel kernel = cluster.load(program("softmax", cluster.machine().pipeline, {{"half", half ? 1 : 0}}));
  const std::int64_t pitch = row_pitch(shape.columns, shape.dtype), wide_pitch = row_pitch(shape.columns, DType::f32);
  const auto rows_kernel = [=, blocks = row_blocks(shape.columns),
                            scale = std::uint64_t{std::bit_cast<std::uint32_t>(shape.scale)}](sim::Dsp& dsp,
                                                                                              const StreamTile& tile) {
    for_each_row_group(tile.items, [&](std::int64_t first, std::int64_t count) {
      const sim::Pointer y = tile.outputs[0] + first * pitch;
      const sim::Pointer e = half ? tile.scratch_items + first * wide_pitch : y;
      dsp.call(kernel, {tile.inputs[0] + first * pitch, y, e, tile.scratch, count, blocks, scale});
    });
  };
  return stream(cluster, plan.stream, {{operands.x}, {operands.y}, {}}, rows_kernel);
}

}  // namespace mtsim::kernels
