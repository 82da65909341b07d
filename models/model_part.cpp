// SPDX-License-Identifier: Apache-2.0
#include "models/model_part.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/error.h"

namespace mtsim::models {

ModelPart ModelPart::whole(const LlamaConfig& config) { return {.layers = config.layers}; }

ModelPart ModelPart::stage(const LlamaConfig& config, std::int64_t stages, std::int64_t stage, std::int64_t tp,
                           std::int64_t tp_rank) {
  if (stages < 1 || stage < 0 || stage >= stages || tp < 1 || tp_rank < 0 || tp_rank >= tp)
    throw ModelError(fmt::format("stage {} of {}, share {} of {}: there is none", stage, stages, tp_rank, tp));
  if (stages > config.layers)
    throw ModelError(fmt::format("{} pipeline stages, {} has {} layers", stages, config.name, config.layers));
  const auto divides = [&](const char* what, std::int64_t count) {
    if (count % tp != 0)
      throw ModelError(
          fmt::format("tensor parallelism of {}: {} has {} {}, no multiple of it", tp, config.name, count, what));
  };
  divides("heads", config.heads);
  divides("KV heads", config.kv_heads);
  divides("columns of the feed-forward layer", config.intermediate_size);
  divides("words in its vocabulary", config.vocab_size);
  const std::int64_t each = config.layers / stages, over = config.layers % stages;
  ModelPart part;
  part.first_layer = stage * each + std::min(stage, over);
  part.layers = each + (stage < over ? 1 : 0);
  part.embedding = stage == 0;
  part.head = stage == stages - 1;
  part.tp = tp;
  part.tp_rank = tp_rank;
  return part;
}

LlamaConfig ModelPart::config(const LlamaConfig& whole) const {
  LlamaConfig result = whole;
  result.layers = layers;
  result.heads /= tp;
  result.kv_heads /= tp;
  result.intermediate_size /= tp;
  return result;
}

std::int64_t ModelPart::parameters(const LlamaConfig& whole) const {
  const bool shares = embedding && whole.tie_word_embeddings;  // the head's rows are rows of the embedding
  return (embedding ? whole.embedding_parameters() : 0) + layers * config(whole).layer_parameters() +
         (head ? whole.hidden_size + (shares ? 0 : head_rows(whole) * whole.hidden_size) : 0);
}

}  // namespace mtsim::models
