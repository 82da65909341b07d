// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/gemm.h"

#include <fmt/format.h>

#include "kernels/gemm/gemm_program.h"

namespace mtsim::kernels {
namespace gemm {

void zero_k_pad(sim::Dsp& dsp, const Kernels& kernels, const CoreTile& tile) {
  const std::int64_t padded = padded_k(tile.k);
  if (padded == tile.k) return;
  for (std::int64_t k = tile.k; k < padded; ++k) {
    dsp.loop_iteration();
    dsp.call(kernels.zero_sm_column, {tile.x + k * k_f32_bytes, tile.strips() * k_gemm_m1, tile.x_pitch});
  }
  dsp.call(kernels.zero_am, {tile.w + tile.k * tile.w_pitch, (padded - tile.k) * tile.w_pitch});
}

void multiply_strip(sim::Dsp& dsp, const Kernels& kernels, const CoreTile& tile, std::int64_t strip) {
  const sim::Kernel& kernel = tile.accumulate ? kernels.accumulate : kernels.write_only;
  const sim::Pointer x = tile.x + strip * k_gemm_m1 * tile.x_pitch;
  const sim::Pointer y = tile.y + strip * k_gemm_m1 * tile.y_pitch;
  for (std::int64_t column = 0; column < tile.columns; column += k_gemm_n1) {
    dsp.loop_iteration();
    const std::int64_t offset = column * k_f32_bytes;
    dsp.call(kernel, {x, tile.w + offset, y + offset, padded_k(tile.k), tile.x_pitch, tile.w_pitch, tile.y_pitch});
  }
}

}  // namespace gemm

sim::DspProgram gemm_f32(sim::Cluster& cluster, const GemmPlan& plan, const GemmOperands& operands) {
  const isa::Program& microkernel = program("gemm_f32_6x128");
  const gemm::Kernels kernels{cluster.load(microkernel, "accumulate"), cluster.load(microkernel, "write_only"),
                              cluster.load(program("zero_sm_column_f32")), cluster.load(program("zero_am_f32"))};
  const auto check_cores = [](sim::Dsp& dsp) {
    if (dsp.group_size() != dsp.machine().cluster.cores) {
      throw KernelError(fmt::format("gemm was planned for {} cores and launched on {}; launch it on all cores",
                                    dsp.machine().cluster.cores, dsp.group_size()));
    }
  };
  if (plan.dataflow == GemmDataflow::small_m) {
    return [=](sim::Dsp& dsp) {
      check_cores(dsp);
      gemm::run_small_m(dsp, plan, operands, kernels);
    };
  }
  const sim::Pointer gsm = cluster.gsm_malloc(plan.gsm_bytes);
  return [=](sim::Dsp& dsp) {
    check_cores(dsp);
    gemm::run_large_m(dsp, plan, operands, kernels, gsm);
  };
}

}  // namespace mtsim::kernels
