// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/gemm.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/gemm/gemm_program.h"

namespace mtsim::kernels {
namespace gemm {
namespace {

Kernels load_kernels(sim::Cluster& cluster, const GemmPlan& plan) {
  const auto load = [&](const char* name, const char* entry = "", const Defines& defines = {}) {
    return cluster.load(program(name, cluster.machine().pipeline, defines), entry);
  };
  Kernels kernels;
  kernels.zero_am = load("zero_am");
  kernels.zero_vectors = load("zero_am_column");
  if (const auto layout = rope_layout(plan)) kernels.rope.emplace(cluster, *layout);
  if (plan.weights == GemmWeights::out_in) {
    kernels.zero_x_pad = kernels.zero_w_pad = kernels.zero_vectors;
    kernels.accumulate = load("gemm_dot_1x32", "", {{"F16", plan.dtype == DType::f16 ? 1 : 0}});
    kernels.narrow = load("gemm_narrow_row");
    return kernels;
  }
  kernels.cutter = std::make_shared<Cutter>(plan, cluster.machine());
  kernels.tiles = std::make_shared<TileKernels>(cluster);
  kernels.zero_x_pad = load("zero_sm_column");
  kernels.zero_w_pad = kernels.zero_am;
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
  const std::int64_t end = m_format.padded_k(k) * m_bytes, word = m_by_rows ? k_vector_bytes : k_sm_word_bytes;
  if (k * m_bytes == end) return;
  // zero_sm_column takes whole strips: the last one overlaps, fewer rows are strips of one and the same row.
  const std::int64_t padded = round_up(rows, m_row_unit), strip = m_by_rows ? 1 : k_zero_rows;
  const std::int64_t whole = padded / strip * strip;
  for (std::int64_t at = k * m_bytes / word * word; at < end; at += word) {
    m_dsp.loop_iteration();
    if (whole > 0) m_dsp.call(m_kernels.zero_x_pad, {x + at, whole, pitch});
    if (whole == padded) continue;
    if (whole > 0) {
      m_dsp.call(m_kernels.zero_x_pad, {x + at + (padded - strip) * pitch, strip, pitch});
      continue;
    }
    for (std::int64_t row = 0; row < padded; ++row) {
      m_dsp.loop_iteration();
      m_dsp.call(m_kernels.zero_x_pad, {x + at + row * pitch, strip, 0});
    }
  }
}

void CoreProgram::zero_w_pad(sim::Pointer w, std::int64_t pitch, std::int64_t columns, std::int64_t k) {
  const std::int64_t pad = m_format.padded_k(k) - k;
  if (pad == 0) return;
  if (m_by_rows)
    m_dsp.call(m_kernels.zero_w_pad, {w + k * m_bytes / k_vector_bytes * k_vector_bytes, columns, pitch});
  else if (pad * pitch % k_zero_unit == 0)
    m_dsp.call(m_kernels.zero_w_pad, {w + k * pitch, pad * pitch});
  else
    m_dsp.call(m_kernels.zero_vectors, {w + k * pitch, pad * pitch / k_vector_bytes, k_vector_bytes});
}

void CoreProgram::multiply_strip(const CoreTile& tile, const CutStrip& strip) {
  const sim::Pointer x = tile.x + strip.row * tile.x_pitch;
  const sim::Pointer sums = tile.sums + strip.row * tile.sums_pitch;
  const std::int64_t padded = m_format.padded_k(tile.k);
  if (m_by_rows) {
    for (std::int64_t column = 0; column < tile.columns; column += k_dot_n1) {
      m_dsp.loop_iteration();
      m_dsp.call(m_kernels.accumulate,
                 {x, tile.w + column * tile.w_pitch, sums + column * m_sum_bytes, padded, tile.w_pitch, tile.scratch});
    }
    return;
  }
  for (const CutBlock& block : strip.blocks) {
    const auto kernel = [&](bool accumulate) -> const sim::Kernel& {
      if (block.tile) return m_kernels.tiles->kernel(*block.tile, accumulate);
      return accumulate ? m_kernels.accumulate : m_kernels.write_only;
    };
    bool accumulate = tile.accumulate;
    for (std::int64_t k = 0, part = 0; k < padded; k += part) {
      part = std::min(m_k_call, padded - k);
      // The kernel needs k_least: a shorter rest takes from the part before it.
      if (const std::int64_t rest = padded - k - part; rest > 0 && rest < m_format.k_least) part -= m_format.k_unit;
      m_dsp.loop_iteration();
      m_dsp.call(kernel(accumulate),
                 {x + k * m_bytes, tile.w + k * tile.w_pitch + block.column * m_bytes,
                  sums + block.column * m_sum_bytes, part, tile.x_pitch, tile.w_pitch, tile.sums_pitch});
      accumulate = true;
    }
  }
}

void CoreProgram::narrow_rows(const CoreTile& tile, const NarrowTile& narrow, std::int64_t first, std::int64_t last) {
  for (std::int64_t row = first; row < last; row += m_format.m1) {
    const sim::Pointer sums = tile.sums + row * tile.sums_pitch;
    const sim::Pointer y = narrow.y + row * narrow.y_pitch;
    if (m_by_rows) {
      m_dsp.call(m_kernels.narrow, {sums, y, round_up(tile.columns, m_format.n1)});
      continue;
    }
    for (std::int64_t column = 0; column < tile.columns; column += m_format.n1) {
      m_dsp.loop_iteration();
      m_dsp.call(narrow.merge ? m_kernels.merge : m_kernels.narrow,
                 {sums + column * m_sum_bytes, y + column * m_bytes, tile.sums_pitch, narrow.y_pitch});
    }
  }
}

}  // namespace gemm

std::vector<float> gemm_frequencies(const GemmPlan& plan, std::span<const float> inv_freq) {
  const auto layout = gemm::rope_layout(plan);
  return layout ? layout->frequencies(inv_freq) : std::vector<float>{};
}

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
  const auto run = plan.dataflow == GemmDataflow::w_stationary ? gemm::run_w_stationary : gemm::run_large_m;
  return [=](sim::Dsp& dsp) {
    check_cores(dsp);
    run(dsp, plan, operands, kernels, scratch);
  };
}

}  // namespace mtsim::kernels
