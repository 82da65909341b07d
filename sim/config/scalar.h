// SPDX-License-Identifier: Apache-2.0
// What a scalar's text means: one strict reading for YAML files and for --set on the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mtsim::sim {

struct Problem {
  std::string message;     // "expected an integer, found '010'"
  std::string suggestion;  // what to write instead; may be empty
};

/// A value, or why the text is none.
template <class T>
struct Scalar {
  std::optional<T> value;
  Problem problem;
};

/// Decimal or 0x hex, 64 bits signed; a leading zero as in 010 is refused (octal or decimal?).
Scalar<std::int64_t> scan_integer(std::string_view text);
/// A finite decimal number.
Scalar<double> scan_number(std::string_view text);
/// true or false and nothing else.
Scalar<bool> scan_boolean(std::string_view text);

/// The text in single quotes, for messages.
std::string in_quotes(std::string_view text);

/// The shortest decimal text that reads back as the same number.
std::string shortest(double value);

}  // namespace mtsim::sim
