// SPDX-License-Identifier: Apache-2.0
#include "models/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "models/error.h"
#include "models/utf8.h"

namespace mtsim::models {

const char* to_string(ElementType type) {
  switch (type) {
    case ElementType::f32: return "F32";
    case ElementType::f16: return "F16";
    case ElementType::bf16: return "BF16";
    case ElementType::q8_0: return "Q8_0";
    case ElementType::other: break;
  }
  return "?";
}

std::int64_t row_bytes(ElementType type, std::int64_t elements) {
  switch (type) {
    case ElementType::f32: return 4 * elements;
    case ElementType::f16:
    case ElementType::bf16: return 2 * elements;
    case ElementType::q8_0: return elements / k_q8_0_elements * k_q8_0_bytes;
    case ElementType::other: break;
  }
  return 0;
}

std::string shape_text(const std::vector<std::int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

void check_places(const std::vector<StoredTensor>& tensors, std::uint64_t file_bytes, const std::string& file) {
  std::set<std::string_view> names;
  for (const auto& tensor : tensors) {
    const auto refuse = [&](const std::string& what) {
      throw ModelError(fmt::format("{}: tensor '{}': {}", file, printable(tensor.name), what));
    };
    if (!names.insert(tensor.name).second) refuse("is there twice; the file is damaged");
    if (tensor.offset > file_bytes || tensor.bytes > file_bytes - tensor.offset)
      refuse(
          fmt::format("its {} bytes from byte {} on reach past the file's end at {}; the file is cut short or damaged",
                      tensor.bytes, tensor.offset, file_bytes));
  }
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return tensors[a].offset < tensors[b].offset; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const auto& before = tensors[order[i - 1]];
    const auto& tensor = tensors[order[i]];
    if (before.offset + before.bytes > tensor.offset)
      throw ModelError(fmt::format(
          "{}: tensor '{}' begins at byte {}, inside tensor '{}', which ends at {}; the file is damaged", file,
          printable(tensor.name), tensor.offset, printable(before.name), before.offset + before.bytes));
  }
}

}  // namespace mtsim::models
