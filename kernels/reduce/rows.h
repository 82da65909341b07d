// SPDX-License-Identifier: Apache-2.0
// What operators along rows have in common: the layout of rows in AM and groups of rows that are reduced together.
#pragma once

#include <cstdint>

#include "kernels/dtype.h"

namespace mtsim::kernels {

/// Rows that one reduction of Fig. 9 takes.
inline constexpr std::int64_t k_rows_at_once = 32;
/// Elements of a block: eight FP32 vectors.
inline constexpr std::int64_t k_row_block = 256;
/// Of the area in AM that kernels/reduce/rows.inc.s works in.
inline constexpr std::int64_t k_rows_area_bytes = 15360;

constexpr std::int64_t row_blocks(std::int64_t columns) { return (columns + k_row_block - 1) / k_row_block; }
/// From row to row in AM: whole blocks.
constexpr std::int64_t row_pitch(std::int64_t columns, DType dtype) {
  return row_blocks(columns) * k_row_block * bytes_of(dtype);
}

/// Calls f(first, count) for rows [first, first + count) of `rows`, at most k_rows_at_once each.
template <typename F>
void for_each_row_group(std::int64_t rows, const F& f) {
  for (std::int64_t first = 0; first < rows; first += k_rows_at_once) {
    f(first, rows - first < k_rows_at_once ? rows - first : k_rows_at_once);
  }
}

}  // namespace mtsim::kernels
