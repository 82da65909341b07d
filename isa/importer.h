// SPDX-License-Identifier: Apache-2.0
// GCC extended asm in C files to .s files: published MT-3000 kernels run without a change of an instruction.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "isa/diagnostic.h"

namespace mtsim::isa {

struct ImportedBody {
  std::string name;  // FUNCTION, FUNCTION_2 for a second body in it
  std::string text;  // assembly with %n kept and a .param for each operand, outputs before inputs
  Place place;       // of the asm keyword
};

struct Import {
  std::vector<ImportedBody> bodies;     // those that could be read, in the order of the file
  std::vector<Diagnostic> diagnostics;  // why others could not, with their places in the C file; all fatal
};

/// Every asm body of a C file. A bad body, or malformed C around it, does not keep the others from being imported.
Import import_c(std::string_view text, const std::string& file);

}  // namespace mtsim::isa
