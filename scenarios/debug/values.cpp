// SPDX-License-Identifier: Apache-2.0
#include "scenarios/debug/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "scenarios/operands.h"
#include "scenarios/table.h"

namespace mtsim::scenarios {

namespace {

using Kind = ValueType::Kind;

constexpr std::array<ValueType, 11> k_types = {{{"f16", Kind::floating, 2},
                                                {"f32", Kind::floating, 4},
                                                {"f64", Kind::floating, 8},
                                                {"hex", Kind::hex, 8},
                                                {"hex32", Kind::hex, 4},
                                                {"hex16", Kind::hex, 2},
                                                {"hex8", Kind::hex, 1},
                                                {"int", Kind::integer, 8},
                                                {"int32", Kind::integer, 4},
                                                {"int16", Kind::integer, 2},
                                                {"int8", Kind::integer, 1}}};

constexpr std::size_t k_shown = 4;  // numbers of a summary

std::uint64_t bits_of(std::span<const std::byte> bytes, std::size_t count) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes.data(), count);
  return bits;
}

template <class Number>
Number number_of(std::span<const std::byte> bytes) {
  Number number;
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

// NaNs are many; only the canonical one goes without its bits.
template <class Bits>
std::string nan_text(Bits bits, Bits canonical) {
  return bits == canonical ? "nan" : fmt::format("nan({:#x})", bits);
}

// The fewest digits that come nearest to this number of all FP16 numbers.
std::string f16_text(std::uint16_t bits) {
  const double value = from_f16(bits);
  if (std::isnan(value)) return nan_text<std::uint16_t>(bits, 0x7E00);
  if (std::isinf(value) || value == 0) return fmt::format("{}", value);
  for (int digits = 1; digits < 5; ++digits) {
    const double shorter = std::strtod(fmt::format("{:.{}e}", value, digits - 1).c_str(), nullptr);
    if (to_f16(shorter) == bits) return fmt::format("{}", shorter);
  }
  return fmt::format("{}", std::strtod(fmt::format("{:.4e}", value).c_str(), nullptr));  // five always suffice
}

std::int64_t signed_of(std::uint64_t bits, std::size_t bytes) {
  const int unused = 64 - 8 * static_cast<int>(bytes);
  return static_cast<std::int64_t>(bits << unused) >> unused;
}

bool uniform(std::span<const std::byte> bytes, std::size_t width) {
  return std::equal(bytes.begin() + static_cast<std::ptrdiff_t>(width), bytes.end(), bytes.begin());
}

}  // namespace

std::span<const ValueType> value_types() { return k_types; }

const ValueType* find_value_type(std::string_view name) {
  const auto* const found =
      std::find_if(k_types.begin(), k_types.end(), [&](const ValueType& t) { return t.name == name; });
  return found == k_types.end() ? nullptr : found;
}

const ValueType& value_type(std::string_view name) {
  const ValueType* found = find_value_type(name);
  if (found == nullptr) throw std::logic_error("no value type " + std::string(name));
  return *found;
}

std::string number_text(std::span<const std::byte> bytes, const ValueType& type) {
  const std::uint64_t bits = bits_of(bytes, type.bytes);
  if (type.kind == Kind::hex) return fmt::format("{:#x}", bits);
  if (type.kind == Kind::integer) return fmt::format("{}", signed_of(bits, type.bytes));
  if (type.bytes == 2) return f16_text(static_cast<std::uint16_t>(bits));
  if (type.bytes == 4) {
    const auto value = number_of<float>(bytes);
    return std::isnan(value) ? nan_text(static_cast<std::uint32_t>(bits), 0x7FC00000U) : fmt::format("{}", value);
  }
  const auto value = number_of<double>(bytes);
  return std::isnan(value) ? nan_text<std::uint64_t>(bits, 0x7FF8000000000000U) : fmt::format("{}", value);
}

std::string summary(std::span<const std::byte> bytes, const ValueType& type) {
  const std::size_t count = bytes.size() / type.bytes;
  if (count == 1) return number_text(bytes, type);
  if (uniform(bytes, type.bytes)) return fmt::format("{} x {}", count, number_text(bytes, type));
  std::string out;
  for (std::size_t i = 0; i < std::min(count, k_shown); ++i) {
    out += (i > 0 ? ", " : "") + number_text(bytes.subspan(i * type.bytes), type);
  }
  return count > k_shown ? out + fmt::format(", ... ({} {})", count, type.name) : out;
}

std::string change_summary(std::span<const std::byte> before, std::span<const std::byte> after, const ValueType& type) {
  const std::size_t count = after.size() / type.bytes;
  if (std::equal(before.begin(), before.end(), after.begin())) return summary(after, type) + ", as before";
  if (uniform(before, type.bytes) && uniform(after, type.bytes)) {
    return fmt::format("{} -> {}", summary(before, type), summary(after, type));
  }
  std::string out;
  std::size_t differing = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto old_number = before.subspan(i * type.bytes, type.bytes),
               number = after.subspan(i * type.bytes, type.bytes);
    if (std::equal(old_number.begin(), old_number.end(), number.begin())) continue;
    if (++differing > k_shown) continue;
    out += fmt::format("{}[{}] {} -> {}", differing > 1 ? ", " : "", i, number_text(old_number, type),
                       number_text(number, type));
  }
  if (differing > k_shown) out += fmt::format(", ... ({} of {} {} differ)", differing, count, type.name);
  return out;
}

std::string number_lines(std::span<const std::byte> bytes, const ValueType& type, std::size_t per_line,
                         const std::vector<std::string>& heads) {
  Table table(std::vector<Align>(per_line + 1, Align::right));
  for (std::size_t line = 0; line < heads.size(); ++line) {
    std::vector<std::string> cells = {heads[line]};
    const auto rest = bytes.subspan(line * per_line * type.bytes);
    for (std::size_t i = 0; i < std::min(per_line, rest.size() / type.bytes); ++i) {
      cells.push_back(number_text(rest.subspan(i * type.bytes), type));
    }
    table.add(std::move(cells));
  }
  return table.text(2);
}

}  // namespace mtsim::scenarios
