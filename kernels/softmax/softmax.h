// SPDX-License-Identifier: Apache-2.0
// Y[m,n] = softmax(scale * X[m,n]) along the rows, FP32 inside. Rows are streamed; up to 32 of a tile are reduced
// together (paper, Fig. 9). Y may be X.
//
// A NaN or +infinity in a row makes the row NaN, -infinity counts as exp(-infinity) = 0, and a row of nothing else
// gives 0: attention masks whole rows so.
#pragma once

#include <cstdint>

#include "kernels/dtype.h"
#include "kernels/stream/stream.h"

namespace mtsim::kernels {

struct SoftmaxShape {
  std::int64_t rows = 0, columns = 0;
  DType dtype = DType::f32;  // of X and Y
  float scale = 1;           // above 0
};

struct SoftmaxPlan {
  SoftmaxShape shape;
  StreamPlan stream;  // items are rows
};

/// `tile_rows`: rows a core holds at a time, 0 for the default. Throws KernelError for a scale that is not above 0 and
/// finite, and as plan_stream does: when not even one row fits AM, with the bytes.
SoftmaxPlan plan_softmax(const SoftmaxShape& shape, std::int64_t tile_rows, const sim::MachineConfig& machine);

struct SoftmaxOperands {  // [rows, columns] each, in cluster DDR
  sim::Pointer x;
  sim::Pointer y;  // written
};
/// The DSP program; launch it on any number of cores of `cluster`.
sim::DspProgram softmax(sim::Cluster& cluster, const SoftmaxPlan& plan, const SoftmaxOperands& operands);

}  // namespace mtsim::kernels
