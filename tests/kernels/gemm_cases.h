// SPDX-License-Identifier: Apache-2.0
// What the tests of whole GEMMs share.
#pragma once

#include <string>
#include <vector>

#include "bench_cluster.h"
#include "kernels/gemm/gemm.h"
#include "reference.h"
#include "row_reference.h"

namespace mtsim::kernels {

struct GemmCase {
  GemmShape shape;
  GemmDataflow dataflow = GemmDataflow::automatic;
  std::string tiles = "";
  DType dtype = DType::f32;
  GemmSums sums = GemmSums::promoted;
  GemmWeights weights = GemmWeights::in_out;
};

std::string text(const GemmCase& c);
GemmPlan plan(const GemmCase& c, GemmVariant variant, const sim::MachineConfig& config = machine());

inline const sim::ClusterOptions k_functional{sim::Depth::functional, false};
inline const sim::ClusterOptions k_timing{sim::Depth::timing};

/// Largest error in units of its bound. Pad columns of X meet pad rows of W as 0 * 0 + y = y, so the bound is that of
/// the unpadded k.
double error_in_bounds(const std::vector<float>& y, const Product& product, const GemmErrorBound& bound);

/// The plan's Y is that of OpenBLAS in FP64 within its bound, nothing but Y is written, the hazard monitor finds
/// nothing, and both depths take the same cycles. Returns the run in timing depth.
GemmRun expect_right(const GemmPlan& plan);

}  // namespace mtsim::kernels
