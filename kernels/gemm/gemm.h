// SPDX-License-Identifier: Apache-2.0
// Y[M,N] = X[M,K] * W[K,N] on one cluster (paper III-B2, Figs. 5 and 7; block sizes under eq. (8)).
#pragma once

#include <cstdint>
#include <string>

#include "kernels/library.h"
#include "sim/cluster.h"
#include "sim/config/machine.h"
#include "sim/dsp.h"

namespace mtsim::kernels {

struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;
  double macs() const { return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
};

// large_m: X blocks in GSM, rows split over the cores, W broadcast, Y stationary in AM. small_m: X broadcast, N split.
enum class GemmDataflow : std::uint8_t { automatic, large_m, small_m };

// best: the fastest sequence we know. paper: the sequence of Figs. 5-7 as printed, where it is slower (gemm_large_m.cpp
// says how they differ); small_m has one sequence.
enum class GemmVariant : std::uint8_t { best, paper };

/// Block sizes in elements. The defaults are the paper's for FP32: M1 x N1 = 6 x 128, Mg 720, Kg 2048, K2 = N2 = 256.
struct GemmTiles {
  std::int64_t mg = 720;   // rows of X in GSM
  std::int64_t kg = 2048;  // columns of X in GSM
  std::int64_t k2 = 256;   // k-step: columns of X2 in SM, rows of W2 in AM
  std::int64_t n2 = 256;   // columns of W2 and Y2 in AM
};

inline constexpr std::int64_t k_gemm_m1 = 6;
inline constexpr std::int64_t k_gemm_n1 = 128;

struct GemmPlan {  // what a call will do: resolved dataflow and tiles, and the memory they take
  GemmShape shape;
  GemmDataflow dataflow = GemmDataflow::large_m;
  GemmVariant variant = GemmVariant::best;
  GemmTiles tiles;
  std::int64_t m2 = 0;  // rows of one core in SM/AM
  std::int64_t y_buffers =
      0;  // Y2 in AM: large_m three, or more where that keeps all of a block's Y2 there; small_m one
  std::int64_t sm_bytes = 0, am_bytes = 0, gsm_bytes = 0;
};

/// "mg=720,k2=128" over the defaults; unknown key or non-positive value: KernelError.
GemmTiles parse_gemm_tiles(const std::string& text);

/// Resolves dataflow and checks eqs. (4)-(8) and the DMA channels. Throws KernelError that names the equation and the
/// bytes, or the channels: needed, available.
GemmPlan plan_gemm_f32(const GemmShape& shape, const GemmTiles& tiles, GemmDataflow dataflow,
                       const sim::MachineConfig& machine, GemmVariant variant = GemmVariant::best);

struct GemmOperands {  // row-major FP32 in cluster DDR
  sim::Pointer x;      // [m, k]
  sim::Pointer w;      // [k, n]
  sim::Pointer y;      // [m, n], written
};

/// The DSP program of the plan; launch it on all cores of `cluster`.
sim::DspProgram gemm_f32(sim::Cluster& cluster, const GemmPlan& plan, const GemmOperands& operands);

}  // namespace mtsim::kernels
