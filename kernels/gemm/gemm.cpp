// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/gemm.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/gemm/gemm_program.h"

namespace mtsim::kernels {
namespace gemm {
namespace {

constexpr std::int64_t k_word = 8;  // what the SM is cleared in

Kernels load_kernels(sim::Cluster& cluster, const GemmPlan& plan) {
  const auto load = [&](const char* name, const char* entry = "") {
    return cluster.load(program(name, cluster.machine().pipeline), entry);
  };
  Kernels kernels;
  kernels.zero_sm_column = load("zero_sm_column");
  kernels.zero_am = load("zero_am");
  if (plan.dtype == DType::f32) {
    kernels.accumulate = load("gemm_f32_6x128", "accumulate");
    kernels.write_only = load("gemm_f32_6x128", "write_only");
    return kernels;
  }
  const bool f16 = plan.sums == GemmSums::f16;
  kernels.accumulate = load("gemm_f16_6x256", f16 ? "accumulate" : "accumulate_f32");
  kernels.write_only = load("gemm_f16_6x256", f16 ? "write_only" : "write_only_f32");
  kernels.narrow = load("gemm_narrow_6x256", "narrow");
  kernels.merge = load("gemm_narrow_6x256", "merge");
  return kernels;
}

}  // namespace

void CoreProgram::zero_x_pad(sim::Pointer x, std::int64_t pitch, std::int64_t rows, std::int64_t k) {
  if (m_format.padded_k(k) == k) return;
  for (std::int64_t at = k * m_bytes / k_word * k_word; at < m_format.padded_k(k) * m_bytes; at += k_word) {
    m_dsp.loop_iteration();
    m_dsp.call(m_kernels.zero_sm_column, {x + at, round_up(rows, k_gemm_m1), pitch});
  }
}

void CoreProgram::zero_w_pad(sim::Pointer w, std::int64_t pitch, std::int64_t k) {
  const std::int64_t pad = m_format.padded_k(k) - k;
  if (pad > 0) m_dsp.call(m_kernels.zero_am, {w + k * pitch, pad * pitch});
}

void CoreProgram::multiply_strip(const CoreTile& tile, std::int64_t strip) {
  const sim::Pointer x = tile.x + strip * k_gemm_m1 * tile.x_pitch;
  const sim::Pointer sums = tile.sums + strip * k_gemm_m1 * tile.sums_pitch;
  const std::int64_t padded = m_format.padded_k(tile.k);
  for (std::int64_t column = 0; column < tile.columns; column += m_format.n1) {
    bool accumulate = tile.accumulate;
    for (std::int64_t k = 0, part = 0; k < padded; k += part) {
      part = std::min(m_k_call, padded - k);
      // The kernel needs k_least: a shorter rest takes from the part before it.
      if (const std::int64_t rest = padded - k - part; rest > 0 && rest < m_format.k_least) part -= m_format.k_unit;
      m_dsp.loop_iteration();
      m_dsp.call(accumulate ? m_kernels.accumulate : m_kernels.write_only,
                 {x + k * m_bytes, tile.w + k * tile.w_pitch + column * m_bytes, sums + column * m_sum_bytes, part,
                  tile.x_pitch, tile.w_pitch, tile.sums_pitch});
      accumulate = true;
    }
  }
}

void CoreProgram::narrow_strip(const CoreTile& tile, const NarrowTile& narrow, std::int64_t strip) {
  const std::int64_t row = strip * k_gemm_m1;
  for (std::int64_t column = 0; column < tile.columns; column += m_format.n1) {
    m_dsp.loop_iteration();
    m_dsp.call(narrow.merge ? m_kernels.merge : m_kernels.narrow,
               {tile.sums + row * tile.sums_pitch + column * m_sum_bytes,
                narrow.y + row * narrow.y_pitch + column * m_bytes, tile.sums_pitch, narrow.y_pitch});
  }
}

}  // namespace gemm

sim::DspProgram gemm_program(sim::Cluster& cluster, const GemmPlan& plan, const GemmOperands& operands) {
  const gemm::Kernels kernels = gemm::load_kernels(cluster, plan);
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
  gemm::Scratch scratch{cluster.gsm_malloc(plan.gsm_bytes), {}};
  if (plan.scratch_bytes > 0) scratch.sums = cluster.ddr_malloc(plan.scratch_bytes);
  return [=](sim::Dsp& dsp) {
    check_cores(dsp);
    gemm::run_large_m(dsp, plan, operands, kernels, scratch);
  };
}

}  // namespace mtsim::kernels
