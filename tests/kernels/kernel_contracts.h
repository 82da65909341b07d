// SPDX-License-Identifier: Apache-2.0
// Which bytes a microkernel takes and leaves, as the register contract on top of its .s file states them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/rope/rope_tile.h"
#include "sim/dsp.h"

namespace mtsim::kernels {

/// What a program was assembled with and its calls do not show.
struct KernelFacts {
  DType dtype = DType::f32;
  DType gamma = DType::f32;  // of rmsnorm
  RopePairs pairs = RopePairs::interleaved;
  std::int64_t rope_heads = 0;      // HEADS of the rotation; all calls of a program have the same
  std::int64_t rope_head_dim = 0;   // in AM
  std::int64_t rescaled_bytes = 0;  // of a row, of attention_rescale
};

/// `rows` rows of `bytes` bytes, `pitch` bytes from row to row.
struct Tile {
  sim::Pointer at;
  std::int64_t rows = 0, bytes = 0, pitch = 0;
};
struct KernelContract {
  std::vector<Tile> reads;   // of what the caller gives it
  std::vector<Tile> writes;  // all of it
};
/// Throws std::logic_error for a microkernel it does not know.
KernelContract contract_of(const sim::Kernel& kernel, std::span<const sim::Argument> arguments,
                           const KernelFacts& facts);

}  // namespace mtsim::kernels
