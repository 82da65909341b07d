// SPDX-License-Identifier: Apache-2.0
#include "models/convert.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace mtsim::models {

namespace {

template <class T>
T load(const char* bytes, std::int64_t index) {
  T value;
  std::memcpy(&value, bytes + index * static_cast<std::int64_t>(sizeof value), sizeof value);
  return value;
}

/// One block of Q8_0 to FP32: an FP16 scale, then 32 signed bytes.
void convert_block(const char* block, float* to) {
  const float scale = f16_to_f32(load<std::uint16_t>(block, 0));
  for (std::int64_t i = 0; i < k_q8_0_elements; ++i)
    to[i] = scale * static_cast<float>(load<std::int8_t>(block + 2, i));
}

}  // namespace

void convert(ElementType from, const char* source, std::int64_t count, float* to) {
  switch (from) {
    case ElementType::f32: std::memcpy(to, source, static_cast<std::size_t>(count) * sizeof *to); return;
    case ElementType::f16:
      for (std::int64_t i = 0; i < count; ++i) to[i] = f16_to_f32(load<std::uint16_t>(source, i));
      return;
    case ElementType::bf16:
      for (std::int64_t i = 0; i < count; ++i) to[i] = bf16_to_f32(load<std::uint16_t>(source, i));
      return;
    case ElementType::q8_0:
      for (std::int64_t i = 0; i < count; i += k_q8_0_elements)
        convert_block(source + i / k_q8_0_elements * k_q8_0_bytes, to + i);
      return;
    case ElementType::other: return;
  }
}

void convert(ElementType from, const char* source, std::int64_t count, std::uint16_t* to_f16) {
  if (from == ElementType::f16) {
    std::memcpy(to_f16, source, static_cast<std::size_t>(count) * sizeof *to_f16);
    return;
  }
  std::array<float, 1024> piece;  // whole blocks of Q8_0
  constexpr auto k_piece = static_cast<std::int64_t>(piece.size());
  for (std::int64_t done = 0; done < count; done += k_piece) {
    const std::int64_t part = std::min(k_piece, count - done);
    convert(from, source + row_bytes(from, done), part, piece.data());
    for (std::int64_t i = 0; i < part; ++i) to_f16[done + i] = f32_to_f16(piece[static_cast<std::size_t>(i)]);
  }
}

}  // namespace mtsim::models
