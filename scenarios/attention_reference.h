// SPDX-License-Identifier: Apache-2.0
// Softmax(scale Q K^T) V in FP64, and what its FP32 arithmetic may be off by.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mtsim::scenarios {

/// One row of O with its bounds.
struct AttentionRow {
  std::vector<double> values, bounds;
};

/// q [head_dim], the keys that the row sees: k and v [keys, head_dim]. `passes`: how many
/// parts of the keys online softmax joins, at most. `scales_apart`: the kernel rounds scale * score; `half_scores`:
/// scores and weights are stored in FP16.
struct AttentionKind {
  std::int64_t passes = 1;
  bool scales_apart = false, half_scores = false;
};
AttentionRow attention_row(std::span<const float> q, std::span<const float> k, std::span<const float> v, double scale,
                           const AttentionKind& kind);

}  // namespace mtsim::scenarios
