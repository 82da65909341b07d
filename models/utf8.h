// SPDX-License-Identifier: Apache-2.0
// UTF-8 by RFC 3629: shortest forms, no surrogates, up to U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mtsim::models {

/// Bytes of the character that begins `text`, or 0 when none does.
std::size_t utf8_length(std::string_view text);
/// Whether more bytes could make `text` begin with a character.
bool is_utf8_beginning(std::string_view text);
/// Whether all of it is UTF-8, without a zero byte.
bool is_utf8(std::string_view text);

/// A name or text for a message: bytes that are no printable UTF-8 as \xNN, cut after `most` bytes.
std::string printable(std::string_view text, std::size_t most = 100);

}  // namespace mtsim::models
