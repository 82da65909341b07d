// SPDX-License-Identifier: Apache-2.0
#include "models/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "models/error.h"

namespace mtsim::models {

namespace {

constexpr std::size_t k_max_printed = 100;

/// Bytes of the character that begins `text`, or 0 when none does (RFC 3629: shortest form, no surrogates).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto follows = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF)
    return follows(1, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF) && follows(2) ? 3 : 0;
  if (first >= 0xF0 && first <= 0xF4)
    return follows(1, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF) && follows(2) && follows(3) ? 4 : 0;
  return 0;
}

}  // namespace

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

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto length = utf8_length(text);
    if (length == 0 || text.front() == '\0') return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string printable(std::string_view name) {
  std::string text;
  while (!name.empty()) {
    if (text.size() >= k_max_printed) return text + "...";
    const auto length = utf8_length(name);
    const auto first = static_cast<unsigned char>(name.front());
    if (length == 0 || first < 0x20 || first == 0x7F) {
      text += fmt::format("\\x{:02X}", first);
      name.remove_prefix(1);
    } else {
      text += name.substr(0, length);
      name.remove_prefix(length);
    }
  }
  return text;
}

}  // namespace mtsim::models
