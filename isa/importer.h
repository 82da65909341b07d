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

/// Every asm body of a C file. Throws IsaError with the place for malformed C strings or unbalanced parentheses.
std::vector<ImportedBody> import_c(std::string_view text, const std::string& file);

}  // namespace mtsim::isa
