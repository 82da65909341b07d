// SPDX-License-Identifier: Apache-2.0
// A C file to the tokens the importer needs. Internal to the importer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "isa/diagnostic.h"

namespace mtsim::isa {

enum class CTokenKind : unsigned char { word, string, symbol, comment, preprocessor, bad, end };

struct CToken {
  CTokenKind kind = CTokenKind::end;
  std::string text;     // a string's value with its escapes resolved; a comment's text without its marks
  std::string spelled;  // as it stands in the file
  int line = 0;
  int column = 0;
  int end_line = 0;  // where the token ends

  bool is(std::string_view symbol) const { return kind == CTokenKind::symbol && text == symbol; }
};

/// Everything but white space; the last token has kind `end`. A preprocessor line (with its continuations) is one
/// token. A string, character or comment that does not end, or an escape that C does not have, is added to
/// `diagnostics` and gives a token of kind `bad`.
std::vector<CToken> scan_c(std::string_view text, const std::string& file, std::vector<Diagnostic>& diagnostics);

}  // namespace mtsim::isa
