// SPDX-License-Identifier: Apache-2.0
#include "models/utf8.h"

#include <fmt/format.h>

#include <algorithm>

namespace mtsim::models {

namespace {

unsigned byte(std::string_view text, std::size_t i) { return static_cast<unsigned char>(text[i]); }

/// Bytes of a character with this first byte; 0 when none begins so.
std::size_t announced_length(unsigned first) {
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

/// How many of the first bytes fit together, up to one character.
std::size_t fitting(std::string_view text) {
  const unsigned first = byte(text, 0);
  const std::size_t length = std::min(announced_length(first), text.size());
  for (std::size_t i = 1; i < length; ++i) {
    // The second byte has limits of its own: no longer form than needed, no surrogate, nothing above U+10FFFF.
    const unsigned low = i > 1 ? 0x80 : first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    const unsigned high = i > 1 ? 0xBF : first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (byte(text, i) < low || byte(text, i) > high) return i;
  }
  return length;
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const std::size_t length = announced_length(byte(text, 0));
  return fitting(text) == length ? length : 0;
}

bool is_utf8_beginning(std::string_view text) {
  return !text.empty() && announced_length(byte(text, 0)) > text.size() && fitting(text) == text.size();
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto length = utf8_length(text);
    if (length == 0 || text.front() == '\0') return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string printable(std::string_view text, std::size_t most) {
  std::string shown;
  while (!text.empty()) {
    if (shown.size() >= most) return shown + "...";
    const auto length = std::max<std::size_t>(utf8_length(text), 1);
    const bool is_plain = utf8_length(text) != 0 && byte(text, 0) >= 0x20 && byte(text, 0) != 0x7F;
    shown += is_plain ? std::string(text.substr(0, length)) : fmt::format("\\x{:02X}", byte(text, 0));
    text.remove_prefix(is_plain ? length : 1);
  }
  return shown;
}

}  // namespace mtsim::models
