// SPDX-License-Identifier: Apache-2.0
#include "models/tensor_names.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace mtsim::models {

namespace {

struct Names {
  const char* hugging_face;
  const char* gguf;
};

/// In the order of Role; those of a layer follow its prefix.
constexpr std::array<Names, k_roles> k_names = {{
    {"input_layernorm.weight", "attn_norm.weight"},
    {"self_attn.q_proj.weight", "attn_q.weight"},
    {"self_attn.k_proj.weight", "attn_k.weight"},
    {"self_attn.v_proj.weight", "attn_v.weight"},
    {"self_attn.o_proj.weight", "attn_output.weight"},
    {"self_attn.q_proj.bias", "attn_q.bias"},
    {"self_attn.k_proj.bias", "attn_k.bias"},
    {"self_attn.v_proj.bias", "attn_v.bias"},
    {"self_attn.o_proj.bias", "attn_output.bias"},
    {"post_attention_layernorm.weight", "ffn_norm.weight"},
    {"mlp.gate_proj.weight", "ffn_gate.weight"},
    {"mlp.up_proj.weight", "ffn_up.weight"},
    {"mlp.down_proj.weight", "ffn_down.weight"},
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"model.norm.weight", "output_norm.weight"},
    {"lm_head.weight", "output.weight"},
}};

const char* base_name(Naming naming, int role) {
  const Names& names = k_names[static_cast<std::size_t>(role)];
  return naming == Naming::gguf ? names.gguf : names.hugging_face;
}

std::string_view layer_prefix(Naming naming) { return naming == Naming::gguf ? "blk." : "model.layers."; }

}  // namespace

std::string tensor_name(Naming naming, Role role, std::int64_t layer) {
  const char* name = base_name(naming, static_cast<int>(role));
  return static_cast<int>(role) < k_layer_roles ? fmt::format("{}{}.{}", layer_prefix(naming), layer, name) : name;
}

std::optional<Place> place_of(Naming naming, std::string_view name) {
  for (int role = k_layer_roles; role < k_roles; ++role)
    if (name == base_name(naming, role)) return Place{static_cast<Role>(role), 0};
  const auto prefix = layer_prefix(naming);
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  Place place;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), place.layer);
  const auto digits = static_cast<std::size_t>(end - name.data());
  const bool is_plain = error == std::errc() && name.front() != '-' && (digits == 1 || name.front() != '0');
  if (!is_plain || !name.substr(digits).starts_with('.')) return std::nullopt;
  name.remove_prefix(digits + 1);
  for (int role = 0; role < k_layer_roles; ++role) {
    if (name != base_name(naming, role)) continue;
    place.role = static_cast<Role>(role);
    return place;
  }
  return std::nullopt;
}

bool is_without_effect(std::string_view name) { return name.ends_with("rotary_emb.inv_freq"); }

}  // namespace mtsim::models
