// SPDX-License-Identifier: Apache-2.0
// What the formats call the tensors of a Llama. Private to models/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "models/checkpoint.h"

namespace mtsim::models {

enum class Naming { hugging_face, gguf };

struct Place {
  Role role = Role::embedding;
  std::int64_t layer = 0;
};

/// "model.layers.3.self_attn.q_proj.weight", "blk.3.attn_q.weight"
std::string tensor_name(Naming naming, Role role, std::int64_t layer);

/// What a tensor of this name is for; nothing when no Llama has one.
std::optional<Place> place_of(Naming naming, std::string_view name);

/// Tensors that checkpoints carry along and nobody computes with: tables of RoPE.
bool is_without_effect(std::string_view name);

}  // namespace mtsim::models
