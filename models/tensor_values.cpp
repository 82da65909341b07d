// SPDX-License-Identifier: Apache-2.0
// The values of a checkpoint's tensors: converted, and refused when they are no numbers.
#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "models/checkpoint.h"
#include "models/convert.h"
#include "models/error.h"
#include "models/utf8.h"

namespace mtsim::models {

namespace {

/// What to look at again as FP32 for the message: an exponent of all ones.
bool is_special(float value) { return (std::bit_cast<std::uint32_t>(value) & 0x7F800000) == 0x7F800000; }
bool is_special(std::uint16_t f16) { return (f16 & 0x7C00) == 0x7C00; }

/// [row, column], or [column] of a vector.
std::string index_text(const Tensor& tensor, std::int64_t row, std::int64_t column) {
  return tensor.rows == 1 ? fmt::format("[{}]", column) : fmt::format("[{}, {}]", row, column);
}

/// Without the sign that a NaN may have.
std::string value_text(float value) { return std::isnan(value) ? "NaN" : fmt::format("{}", value); }

template <class T>
void check(const Tensor& tensor, std::int64_t row, const T* values) {
  bool found = false;
  for (std::int64_t i = 0; i < tensor.columns; ++i) found |= is_special(values[i]);
  if (!found) return;
  std::vector<float> exact(static_cast<std::size_t>(tensor.columns));
  convert(tensor.type, tensor.bytes.data() + row * row_bytes(tensor.type, tensor.columns), tensor.columns,
          exact.data());
  for (std::int64_t i = 0; i < tensor.columns; ++i) {
    if (!is_special(values[i])) continue;
    const float value = exact[static_cast<std::size_t>(i)];
    const char* remedy = std::isfinite(value) ? "which FP16 (up to 65504) cannot hold; use FP32"
                                              : "which no weight is; the checkpoint is damaged";
    throw ModelError(fmt::format("{}: tensor '{}': element {} is {}, {}", tensor.file, printable(tensor.name),
                                 index_text(tensor, row, i), value_text(value), remedy));
  }
}

template <class T>
void read(const Tensor& tensor, std::int64_t first, std::int64_t count, T* to) {
  const std::int64_t bytes = row_bytes(tensor.type, tensor.columns);
  for (std::int64_t row = first; row < first + count; ++row, to += tensor.columns) {
    convert(tensor.type, tensor.bytes.data() + row * bytes, tensor.columns, to);
    check(tensor, row, to);
  }
}

}  // namespace

void Tensor::read_f32(std::int64_t first, std::int64_t count, float* to) const { read(*this, first, count, to); }

void Tensor::read_f16(std::int64_t first, std::int64_t count, std::uint16_t* to) const {
  read(*this, first, count, to);
}

void Tensor::check_values() const {
  std::vector<float> row(static_cast<std::size_t>(columns));
  for (std::int64_t i = 0; i < rows; ++i) read_f32(i, 1, row.data());
}

}  // namespace mtsim::models
