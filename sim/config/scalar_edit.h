// SPDX-License-Identifier: Apache-2.0
// Other scalars in a YAML text, and every other byte as it was: how a fit writes its numbers back.
#pragma once

#include <string>
#include <vector>

#include "isa/diagnostic.h"

namespace mtsim::sim {

struct ScalarEdit {
  isa::Place place;         // where a scalar stands in one line, quotes included
  std::string replacement;  // as it is written
};

/// Blanks behind the comma that follows make up for the length, so that columns stay aligned. A scalar over several
/// lines, or with a comma outside quotes, ends elsewhere than this thinks: read the result again.
std::string with_scalars(std::string text, const std::vector<ScalarEdit>& edits);

std::string double_quoted(const std::string& text);

}  // namespace mtsim::sim
