// SPDX-License-Identifier: Apache-2.0
// What went wrong, where, and what to do about it: the one shape every layer reports errors in.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtsim::isa {

/// A place in a text file. Lines and columns count from 1; 0 means unknown.
struct Place {
  std::string file;
  int line = 0;
  int column = 0;

  /// "file:line:col", leaving out what is unknown.
  std::string str() const;
  bool operator==(const Place&) const = default;
};

enum class Severity { note, warning, error, fatal };  // fatal: the text does not assemble

const char* to_string(Severity severity);

/// One finding: "kernels/k.s:12:7: error: unknown mnemonic 'VFMULAS23'; did you mean 'VFMULAS32'?"
struct Diagnostic {
  Severity severity = Severity::error;
  Place place;
  std::string message;     // what, with the offending value
  std::string suggestion;  // what to do; may be empty
  std::string code;        // stable short name, e.g. "unit-clash"; may be empty

  std::string str() const;
};

/// Text that does not assemble, with every finding and not just the first.
class IsaError : public std::runtime_error {
 public:
  explicit IsaError(std::vector<Diagnostic> diagnostics);
  const std::vector<Diagnostic>& diagnostics() const { return m_diagnostics; }

 private:
  std::vector<Diagnostic> m_diagnostics;
};

/// The candidate closest to `word` by edit distance, or "" when none is near enough to be a typo.
std::string closest(std::string_view word, std::span<const std::string_view> candidates);

/// "; did you mean 'X'?" or "" (the tail of an error message).
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace mtsim::isa
