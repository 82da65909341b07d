// SPDX-License-Identifier: Apache-2.0
#include "kernels/rmsnorm/rmsnorm.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "kernels/library.h"
#include "kernels/reduce/rows.h"

namespace mtsim::kernels {

namespace {

RmsNormPlan plan(const RmsNormShape& shape, bool adds, std::int64_t tile_rows, const sim::MachineConfig& machine) {
  if (!(shape.eps >= 0) || std::isinf(shape.eps)) {
    throw KernelError(fmt::format("rmsnorm: eps {} must be at least 0 and finite", shape.eps));
  }
  if (shape.dtype == DType::f32 && shape.gamma_dtype == DType::f16) {
    throw KernelError("rmsnorm: FP16 weights need FP16 rows; convert them to FP32");
  }
  const std::int64_t row = shape.columns * bytes_of(shape.dtype), pitch = row_pitch(shape.columns, shape.dtype);
  StreamShape stream{.op = adds ? "add_rmsnorm" : "rmsnorm",
                     .items = shape.rows,
                     .inputs = {{"x", row, pitch}},
                     .outputs = {{"y", row, pitch}},
                     .constants = {{"gamma", shape.columns * bytes_of(shape.gamma_dtype), 0,
                                    row_pitch(shape.columns, shape.gamma_dtype)}},
                     .in_place = adds,
                     .scratch_bytes = k_rows_area_bytes};
  if (adds) {
    stream.inputs.push_back({"a", row, pitch});
    stream.outputs.insert(stream.outputs.begin(), {"z", row, pitch});
  }
  return {shape, plan_stream(stream, tile_rows, machine)};
}

/// Normalises the rows of a tile in AM.
StreamKernel rows_kernel(sim::Cluster& cluster, const RmsNormShape& shape) {
  const bool half = shape.dtype == DType::f16;
  const sim::Kernel kernel =
      cluster.load(program("rmsnorm", cluster.machine().pipeline,
                           {{"half", half ? 1 : 0}, {"wide_gamma", half && shape.gamma_dtype == DType::f32 ? 1 : 0}}));
  const auto bits = [](float value) { return std::uint64_t{std::bit_cast<std::uint32_t>(value)}; };
  const float per_column = 1.0F / static_cast<float>(shape.columns);
  return [=, pitch = row_pitch(shape.columns, shape.dtype), blocks = row_blocks(shape.columns), mean = bits(per_column),
          eps = bits(shape.eps)](sim::Dsp& dsp, const StreamTile& tile) {
    for_each_row_group(tile.items, [&](std::int64_t first, std::int64_t count) {
      dsp.call(kernel, {tile.inputs[0] + first * pitch, tile.outputs.back() + first * pitch, tile.constants[0],
                        tile.scratch, count, blocks, mean, eps});
    });
  };
}

}  // namespace

RmsNormPlan plan_rmsnorm(const RmsNormShape& shape, std::int64_t tile_rows, const sim::MachineConfig& machine) {
  return plan(shape, false, tile_rows, machine);
}
RmsNormPlan plan_add_rmsnorm(const RmsNormShape& shape, std::int64_t tile_rows, const sim::MachineConfig& machine) {
  return plan(shape, true, tile_rows, machine);
}

sim::DspProgram rmsnorm(sim::Cluster& cluster, const RmsNormPlan& plan, const RmsNormOperands& operands) {
  return stream(cluster, plan.stream, {{operands.x}, {operands.y}, {operands.gamma}}, rows_kernel(cluster, plan.shape));
}

sim::DspProgram add_rmsnorm(sim::Cluster& cluster, const RmsNormPlan& plan, const AddRmsNormOperands& operands) {
  const sim::Kernel add =
      cluster.load(program("add", cluster.machine().pipeline), plan.shape.dtype == DType::f32 ? "add_f32" : "add_f16");
  return stream(cluster, plan.stream, {{operands.x, operands.a}, {operands.z, operands.y}, {operands.gamma}},
                [add, norm = rows_kernel(cluster, plan.shape), pitch = row_pitch(plan.shape.columns, plan.shape.dtype)](
                    sim::Dsp& dsp, const StreamTile& tile) {
                  dsp.call(add, {tile.inputs[0], tile.inputs[1], whole_blocks(tile.items * pitch)});
                  norm(dsp, tile);
                });
}

}  // namespace mtsim::kernels
