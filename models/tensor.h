// SPDX-License-Identifier: Apache-2.0
// Tensors as they lie in a file, whatever its format.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mtsim::models {

enum class ElementType {
  f32,
  f16,
  bf16,
  q8_0,   // blocks of 32 elements along a row: an FP16 scale and 32 signed bytes, 34 bytes in all (GGUF)
  other,  // announced in a file, read by nobody here
};

const char* to_string(ElementType type);  // "F32", as the formats write it

inline constexpr std::int64_t k_q8_0_elements = 32, k_q8_0_bytes = 34;

/// Bytes of so many elements side by side; whole blocks of Q8_0.
std::int64_t row_bytes(ElementType type, std::int64_t elements);

/// One tensor of a file.
struct StoredTensor {
  std::string name;
  std::string type_name;  // as the file has it
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape;  // [out, in] row-major, or [n]
  std::uint64_t offset = 0;         // from the file's first byte
  std::uint64_t bytes = 0;
};

/// "[4096, 11008]"
std::string shape_text(const std::vector<std::int64_t>& shape);

/// Throws ModelError when a tensor reaches past the file's end, two share bytes or two have one name.
void check_places(const std::vector<StoredTensor>& tensors, std::uint64_t file_bytes, const std::string& file);

}  // namespace mtsim::models
