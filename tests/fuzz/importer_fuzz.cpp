// SPDX-License-Identifier: Apache-2.0
// Any bytes as a C file, as the asm statement of a function and as a template with its operands: bodies and diagnostics
// with places in the file, nothing else. A body is a .s file; one that assembles is used as any other.
#include <cstdint>
#include <set>
#include <string_view>

#include "exercise.h"
#include "isa/importer.h"

namespace {

using namespace mtsim::isa;

void import_file(const std::string& file) {
  const Import import = import_c(file, "fuzz.c");
  std::set<std::string> names;
  const auto in_file = [](const Place& place) {
    return place.file == "fuzz.c" && place.line >= 1 && place.column >= 1;
  };
  for (const ImportedBody& body : import.bodies) {
    require(!body.name.empty() && names.insert(body.name).second);
    require(in_file(body.place));
    exercise(body.text);
  }
  for (const Diagnostic& diagnostic : import.diagnostics) {
    require(diagnostic.severity == Severity::fatal && !diagnostic.message.empty());
    require(in_file(diagnostic.place));
  }
}

/// `text` as the contents of a C string literal.
std::string quoted(std::string_view text) {
  std::string literal = "\"";
  for (const char c : text) {
    if (c == '\n') {
      literal += "\\n\"\n\"";
      continue;
    }
    if (c == '"' || c == '\\') literal += '\\';
    literal += c;
  }
  return literal + '"';
}

}  // namespace

// The first byte chooses what the others are: few random bytes hold an asm statement.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0: import_file(text); break;
    case 1: import_file("void kernel(long *x, long n) {\n  asm volatile(" + text + ");\n}\n"); break;
    case 2:
      import_file("void kernel(long *x, long n) {\n  __asm__ __volatile__(" + quoted(text) +
                  " : \"+r\"(x) : [n] \"r\"(n) : \"memory\");\n}\n");
      break;
  }
  return 0;
}
