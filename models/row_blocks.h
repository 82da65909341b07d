// SPDX-License-Identifier: Apache-2.0
// The rows of a weight some at a time, converted: what everything that lays weights out anew begins with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "models/checkpoint.h"

namespace mtsim::models {

inline constexpr std::int64_t k_block_rows = 64;

inline void read_rows(const Tensor& tensor, std::int64_t first, std::int64_t count, float* to) {
  tensor.read_f32(first, count, to);
}
/// FP16.
inline void read_rows(const Tensor& tensor, std::int64_t first, std::int64_t count, std::uint16_t* to) {
  tensor.read_f16(first, count, to);
}

/// Calls f(first row, rows, elements [rows, columns]) for blocks of at most k_block_rows rows. Throws ModelError for a
/// weight that is no number.
template <class Element, class F>
void for_each_row_block(const Tensor& tensor, const F& f) {
  std::vector<Element> block(static_cast<std::size_t>(std::min(k_block_rows, tensor.rows) * tensor.columns));
  for (std::int64_t first = 0; first < tensor.rows; first += k_block_rows) {
    const std::int64_t rows = std::min(k_block_rows, tensor.rows - first);
    read_rows(tensor, first, rows, block.data());
    f(first, rows, block.data());
  }
}

}  // namespace mtsim::models
