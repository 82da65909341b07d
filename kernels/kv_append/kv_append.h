// SPDX-License-Identifier: Apache-2.0
// New keys and values into the caches of their sequences, as attention reads them: K^T [kv_heads, head_dim, block] and
// V [kv_heads, block, head_dim] a block (docs/architecture.md, "Where K is transposed"). Rows of several tokens go
// through the transpose microkernel; the one row of a decoded token is moved by DMA as a column.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/dtype.h"
#include "sim/cluster.h"
#include "sim/config/machine.h"
#include "sim/dsp.h"

namespace mtsim::kernels {

struct KvAppendShape {
  std::int64_t kv_heads = 0, head_dim = 0;
  std::int64_t block = 0;  // positions of a block of a cache
  DType dtype = DType::f32;

  std::int64_t row() const { return kv_heads * head_dim; }  // elements of K, and of V, a token
  std::int64_t block_bytes() const { return row() * block * bytes_of(dtype); }
};

/// Consecutive tokens of one sequence.
struct KvAppend {
  std::int64_t first = 0;  // position of the first in the cache
  std::int64_t tokens = 0;
  sim::Pointer k, v;       // [tokens, kv_heads * head_dim], in cluster DDR or GSM
  AttentionBlocks blocks;  // of the cache, at least up to the last position, in cluster DDR
};

/// The DSP program of all appends; launch it on any number of cores. Throws KernelError for an empty append and for
/// positions that the blocks do not have.
sim::DspProgram kv_append(sim::Cluster& cluster, const KvAppendShape& shape, const std::vector<KvAppend>& appends);

}  // namespace mtsim::kernels
