// SPDX-License-Identifier: Apache-2.0
#include "runtime/weights/packing.h"

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
    for (std::int64_t column = 0; column < tensor.columns; ++column) {
      Element* line = to + in(column)*out.size;
      for (std::int64_t row = 0; row < count; ++row) line[columns[row]] = rows[row * tensor.columns + column];
    }
  });
  return bytes;
}

template <class Element>
std::vector<std::byte> converted(const models::Tensor& tensor, const IndexMap& columns) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.rows * columns.size) * sizeof(Element));
  auto* to = reinterpret_cast<Element*>(bytes.data());
  models::for_each_row_block<Element>(tensor, [&](std::int64_t first, std::int64_t count, const Element* rows) {
    for (std::int64_t row = 0; row < count; ++row) {
      for (std::int64_t column = 0; column < tensor.columns; ++column)
        to[(first + row) * columns.size + columns(column)] = rows[row * tensor.columns + column];
    }
  });
  return bytes;
}

}  // namespace

std::vector<std::byte> pack_transposed(const models::Tensor& tensor, kernels::DType dtype, const IndexMap& out,
                                       const IndexMap& in) {
  return dtype == kernels::DType::f32 ? transposed<float>(tensor, out, in) : transposed<std::uint16_t>(tensor, out, in);
}

std::vector<std::byte> pack(const models::Tensor& tensor, kernels::DType dtype, const IndexMap& columns) {
  return dtype == kernels::DType::f32 ? converted<float>(tensor, columns) : converted<std::uint16_t>(tensor, columns);
}

}  // namespace mtsim::runtime
