// SPDX-License-Identifier: Apache-2.0
// Which registers are live between the blocks of linear code, and new names for values that share one. Internal to isa.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "isa/linear.h"

namespace mtsim::isa {

class BlockLiveness {
 public:
  explicit BlockLiveness(const LinearCode& code);

  /// The register is read behind block `b` before it is written; its own repetition does not count. A physical register
  /// is live where the code is left.
  bool live_behind(std::size_t b, Register reg) const;
  /// The block its branch leads to, or -1 when it has none or leaves the code.
  int target(std::size_t b) const { return m_target[b]; }
  bool is_target(const std::string& label) const { return m_targets.count(label) > 0; }

 private:
  std::vector<std::vector<int>> m_successors;  // -1: out of the code
  std::vector<int> m_target;
  std::vector<std::set<Register>> m_live_in;
  std::set<std::string> m_targets;
};

/// A register or, with `pair`, the even one of two, that nothing uses.
Register fresh_register(LinearCode& code, RegisterFile file, bool scalar_side, const std::string& name,
                        bool pair = false);

/// A virtual register written several times in one block holds several values. Each but the last gets a name of its
/// own, so that only true dependences order them.
void rename_values(LinearCode& code);

}  // namespace mtsim::isa
