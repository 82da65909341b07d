// SPDX-License-Identifier: Apache-2.0
// Any bytes as assembly and as a C file, each text through exercise().
#include <cstddef>
#include <cstdint>
#include <string>

#include "exercise.h"
#include "isa/importer.h"

using namespace mtsim::isa;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 4 != 0) {
    exercise(text);
    return 0;
  }
  const Import import = import_c(text, "fuzz.c");
  for (const ImportedBody& body : import.bodies) exercise(body.text);
  for (const Diagnostic& diagnostic : import.diagnostics) require(!diagnostic.str().empty());
  return 0;
}
