// SPDX-License-Identifier: Apache-2.0
#include "runtime/weights/packing.h"

#include <algorithm>
#include <cstring>

namespace mtsim::runtime {
namespace {

constexpr std::int64_t k_rows = 64;  // of a checkpoint's matrix that are converted at a time

void read(const models::Tensor& tensor, std::int64_t first, std::int64_t count, float* to) {
  tensor.read_f32(first, count, to);
}
void read(const models::Tensor& tensor, std::int64_t first, std::int64_t count, std::uint16_t* to) {
  tensor.read_f16(first, count, to);
}

/// Calls f(row, elements) for each row.
template <class Element, class F>
void for_each_row(const models::Tensor& tensor, const F& f) {
  std::vector<Element> rows(static_cast<std::size_t>(k_rows * tensor.columns));
  for (std::int64_t first = 0; first < tensor.rows; first += k_rows) {
    const std::int64_t count = std::min(k_rows, tensor.rows - first);
    read(tensor, first, count, rows.data());
    f(first, count, rows.data());
  }
}

template <class Element>
std::vector<std::byte> transposed(const models::Tensor& tensor, const IndexMap& out, const IndexMap& in) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(out.size * in.size) * sizeof(Element));
  auto* to = reinterpret_cast<Element*>(bytes.data());
  for_each_row<Element>(tensor, [&](std::int64_t first, std::int64_t count, const Element* rows) {
    std::int64_t columns[k_rows];
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
  for_each_row<Element>(tensor, [&](std::int64_t first, std::int64_t count, const Element* rows) {
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
