// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding of a tile in AM: a table of cosines and sines for its rows, then the rotation of all heads
// in place. kernels/rope streams tiles through it, kernels/gemm ends a linear layer with it (Algorithm 1 of the paper).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/dtype.h"
#include "sim/cluster.h"
#include "sim/dsp.h"

namespace mtsim::kernels {

/// Which elements of a head of d rotate together: (2i, 2i+1), or (i, i + d/2) as in Hugging Face's Llama.
enum class RopePairs : std::uint8_t { interleaved, half };

inline constexpr std::int64_t k_rope_max_head_dim = 256;
/// Sine and cosine are right to 3.5 ULP up to this angle in radians; inv_freq being at most 1, up to this position.
inline constexpr std::int64_t k_rope_max_position = 1 << 17;

/// theta^(-2i/d) / factor for i < d/2, each rounded once: what linear scaling by `factor` makes of it.
std::vector<float> rope_inv_freq(std::int64_t head_dim, double theta, double factor = 1);

/// Position of each row: first + row, or list[row] where there is a list.
struct RopePositions {
  std::int64_t first = 0;
  std::vector<std::int64_t> list;

  std::int64_t at(std::int64_t row) const { return list.empty() ? first + row : list[static_cast<std::size_t>(row)]; }
  /// Throws KernelError for a list of another length and for a position that is negative or above k_rope_max_position.
  void check(std::int64_t rows) const;
};

/// How the heads of a row lie in AM. Vectors are whole in both halves of a head: `dense` says that they are so as the
/// row lies in DDR; else each head (interleaved) or each half of one is padded.
struct RopeLayout {
  RopePairs pairs = RopePairs::interleaved;
  DType dtype = DType::f32;
  std::int64_t heads = 0;     // of a row. Small interleaved heads count together as one of 64 elements
  std::int64_t head_dim = 0;  // elements of it, without pad
  std::int64_t angles = 0;    // of a row of the table: head_dim / 2 and the pad
  bool dense = true;

  /// Throws KernelError for an odd or too large head_dim.
  static RopeLayout of(std::int64_t heads, std::int64_t head_dim, RopePairs pairs, DType dtype);

  std::int64_t head_bytes() const { return 2 * angles * bytes_of(dtype); }                   // in AM
  std::int64_t row_bytes() const { return heads * head_bytes(); }                            // in AM
  std::int64_t column_bytes() const { return pairs == RopePairs::interleaved ? 256 : 128; }  // of 32 angles' cosines
  std::int64_t sine_offset() const { return angles / 32 * column_bytes(); }                  // in a row of the table
  std::int64_t table_pitch() const { return 2 * sine_offset(); }

  /// The `angles` frequencies of a row of the table, for the inv_freq of one head: repeated for heads that count
  /// together, 0 in the pad. Throws KernelError when inv_freq does not have one a pair.
  std::vector<float> frequencies(std::span<const float> inv_freq) const;
};

/// The microcode of one layout.
class RopeTile {
 public:
  RopeTile(sim::Cluster& cluster, const RopeLayout& layout);

  /// table [rows][table_pitch] in AM for rows first_row .. first_row + rows - 1. `frequencies` is in AM.
  void tabulate(sim::Dsp& dsp, const RopePositions& positions, std::int64_t first_row, std::int64_t rows,
                sim::Pointer frequencies, sim::Pointer table) const;
  /// Rotates x [rows][heads * head_bytes] in AM, `pitch` bytes from row to row, both multiples of 16. `heads` is any
  /// number.
  void rotate(sim::Dsp& dsp, sim::Pointer x, std::int64_t pitch, std::int64_t rows, std::int64_t heads,
              sim::Pointer table) const;

  const RopeLayout& layout() const { return m_layout; }

 private:
  void walk(sim::Dsp& dsp, const sim::Kernel& kernel, sim::Pointer x, std::int64_t pitch, std::int64_t rows,
            std::int64_t blocks, std::int64_t block_bytes, sim::Pointer table) const;

  RopeLayout m_layout;
  std::int64_t m_block_heads = 1;
  sim::Kernel m_angles, m_block, m_head;
};

}  // namespace mtsim::kernels
