// SPDX-License-Identifier: Apache-2.0
// What of a model one cluster has: the layers of a pipeline stage, and of each of them a share of a tensor-parallel
// group (paper, III-D3). Q, K, V, gate and up are cut by outputs, O and down by inputs, so that a layer needs two sums
// over the group; the head is cut by words of the vocabulary.
#pragma once

#include <cstdint>

#include "models/config.h"

namespace mtsim::models {

struct ModelPart {
  std::int64_t first_layer = 0, layers = 0;
  bool embedding = true;  // begins with token ids; else with the residual stream of the stage before
  bool head = true;       // ends with logits; else with the residual stream
  std::int64_t tp = 1, tp_rank = 0;

  static ModelPart whole(const LlamaConfig& config);
  /// Of a pipeline of `stages`: layers are dealt evenly, the first stages take what is over. Throws ModelError for more
  /// stages than layers, and where heads, KV heads, intermediate size or vocabulary are no multiples of `tp`.
  static ModelPart stage(const LlamaConfig& config, std::int64_t stages, std::int64_t stage, std::int64_t tp = 1,
                         std::int64_t tp_rank = 0);

  /// The model as this part computes it: its layers, heads and intermediate size.
  LlamaConfig config(const LlamaConfig& whole) const;
  /// Words of the vocabulary whose logits it computes, [first, first + count).
  std::int64_t head_rows(const LlamaConfig& whole) const { return whole.vocab_size / tp; }
  std::int64_t head_first(const LlamaConfig& whole) const { return tp_rank * head_rows(whole); }
  /// Weights it has.
  std::int64_t parameters(const LlamaConfig& whole) const;
};

}  // namespace mtsim::models
