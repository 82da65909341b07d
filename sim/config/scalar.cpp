// SPDX-License-Identifier: Apache-2.0
#include "sim/config/scalar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <system_error>

namespace mtsim::sim {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// "010" and "-007": readers disagree whether that is octal.
bool has_leading_zero(std::string_view text) {
  if (!text.empty() && text.front() == '-') text.remove_prefix(1);
  return text.size() >= 2 && text[0] == '0' && is_digit(text[1]);
}

/// "007" -> "7", "-00" -> "-0", "00.5" -> "0.5".
std::string without_leading_zeros(std::string_view text) {
  std::string sign;
  if (text.front() == '-') {
    sign = "-";
    text.remove_prefix(1);
  }
  while (text.size() >= 2 && text[0] == '0' && is_digit(text[1])) text.remove_prefix(1);
  return sign + std::string(text);
}

template <class T>
Scalar<T> refuse(const char* wanted, std::string_view text, std::string suggestion = {}) {
  return {std::nullopt, {std::string("expected ") + wanted + ", found " + in_quotes(text), std::move(suggestion)}};
}

}  // namespace

Scalar<std::int64_t> scan_integer(std::string_view text) {
  constexpr const char* k_wanted = "an integer";
  if (has_leading_zero(text))
    return refuse<std::int64_t>(k_wanted, text,
                                "a leading zero may mean octal; write " + in_quotes(without_leading_zeros(text)));
  const bool negative = !text.empty() && text.front() == '-';
  std::string_view digits = text.substr(negative ? 1 : 0);
  int base = 10;
  if (digits.size() > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) {
    base = 16;
    digits.remove_prefix(2);
  }
  if (digits.empty() || digits.front() == '-') return refuse<std::int64_t>(k_wanted, text);
  std::uint64_t magnitude = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, base);
  if (end != digits.data() + digits.size()) return refuse<std::int64_t>(k_wanted, text);
  const std::uint64_t limit = static_cast<std::uint64_t>(INT64_MAX) + (negative ? 1 : 0);
  if (error == std::errc::result_out_of_range || magnitude > limit)
    return refuse<std::int64_t>("an integer of 64 bits", text);
  return {static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude), {}};
}

Scalar<double> scan_number(std::string_view text) {
  constexpr const char* k_wanted = "a number";
  if (has_leading_zero(text))
    return refuse<double>(k_wanted, text,
                          "a leading zero may mean octal; write " + in_quotes(without_leading_zeros(text)));
  // from_chars also reads "inf", "nan" and their spellings; a number here starts with a digit, a point or a minus sign.
  const std::string_view digits = text.substr(!text.empty() && text.front() == '-' ? 1 : 0);
  if (digits.empty() || !(is_digit(digits.front()) || digits.front() == '.')) return refuse<double>(k_wanted, text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return refuse<double>(k_wanted, text);
  if (error == std::errc::result_out_of_range || !std::isfinite(value))
    return refuse<double>("a number that fits 64-bit floating point", text);
  return {value, {}};
}

Scalar<bool> scan_boolean(std::string_view text) {
  if (text == "true") return {true, {}};
  if (text == "false") return {false, {}};
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  std::string suggestion;
  if (lower == "yes" || lower == "on" || lower == "true" || lower == "y" || lower == "1") suggestion = "write true";
  if (lower == "no" || lower == "off" || lower == "false" || lower == "n" || lower == "0") suggestion = "write false";
  return refuse<bool>("true or false", text, std::move(suggestion));
}

std::string in_quotes(std::string_view text) { return std::string(1, '\'').append(text).append(1, '\''); }

std::string shortest(double value) {
  // Plain digits where they are readable: 100000 rather than 1e+05.
  const double size = std::abs(value);
  const bool plain = value == 0 || (size >= 1e-6 && size < 1e15);
  std::array<char, 64> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                    plain ? std::chars_format::fixed : std::chars_format::general);
  return {buffer.data(), result.ptr};
}

}  // namespace mtsim::sim
