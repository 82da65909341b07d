// SPDX-License-Identifier: Apache-2.0
#include "runtime/weights/packing.h"

#include <algorithm>

#include "models/row_blocks.h"

namespace mtsim::runtime {
namespace {

template <class Element>
std::vector<std::byte> transposed(const models::Tensor& tensor, const IndexMap& out, const IndexMap& in) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(out.size * in.size) * sizeof(Element));
  auto* to = reinterpret_cast<Element*>(bytes.data());
  models::for_each_row_block<Element>(tensor, [&](std::int64_t first, std::int64_t count, const Element* rows) {
    std::int64_t columns[models::k_block_rows];
    for (std::int64_t row = 0; row < count; ++row) columns[row] = out(first + row);
    if (std::all_of(columns, columns + count, [](std::int64_t c) { return c == IndexMap::k_nowhere; })) return;
    for (std::int64_t column = 0; column < tensor.columns; ++column) {
      const std::int64_t place = in(column);
      if (place == IndexMap::k_nowhere) continue;
      Element* line = to + place * out.size;
      for (std::int64_t row = 0; row < count; ++row) {
        if (columns[row] != IndexMap::k_nowhere) line[columns[row]] = rows[row * tensor.columns + column];
      }
    }
  });
  return bytes;
}

template <class Element>
std::vector<std::byte> converted(const models::Tensor& tensor, const IndexMap& rows, const IndexMap& columns) {
  const std::int64_t height = rows.size > 0 ? rows.size : tensor.rows;
  std::vector<std::byte> bytes(static_cast<std::size_t>(height * columns.size) * sizeof(Element));
  auto* to = reinterpret_cast<Element*>(bytes.data());
  models::for_each_row_block<Element>(tensor, [&](std::int64_t first, std::int64_t count, const Element* block) {
    for (std::int64_t row = 0; row < count; ++row) {
      const std::int64_t line = rows(first + row);
      if (line == IndexMap::k_nowhere) continue;
      for (std::int64_t column = 0; column < tensor.columns; ++column) {
        if (const std::int64_t place = columns(column); place != IndexMap::k_nowhere)
          to[line * columns.size + place] = block[row * tensor.columns + column];
      }
    }
  });
  return bytes;
}

}  // namespace

std::vector<std::byte> pack_transposed(const models::Tensor& tensor, kernels::DType dtype, const IndexMap& out,
                                       const IndexMap& in) {
  return dtype == kernels::DType::f32 ? transposed<float>(tensor, out, in) : transposed<std::uint16_t>(tensor, out, in);
}

std::vector<std::byte> pack(const models::Tensor& tensor, kernels::DType dtype, const IndexMap& rows,
                            const IndexMap& columns) {
  return dtype == kernels::DType::f32 ? converted<float>(tensor, rows, columns)
                                      : converted<std::uint16_t>(tensor, rows, columns);
}

}  // namespace mtsim::runtime
