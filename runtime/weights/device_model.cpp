// SPDX-License-Identifier: Apache-2.0
#include "runtime/weights/device_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "runtime/error.h"
#include "runtime/weights/packing.h"

namespace mtsim::runtime {
namespace {

using kernels::DType;
using models::Role;

constexpr std::int64_t k_head_unit = 16;  // attention takes heads of multiples of it

kernels::RopePairs pairs_of(models::RopePairs pairs) {
  return pairs == models::RopePairs::half ? kernels::RopePairs::half : kernels::RopePairs::interleaved;
}

/// A weight of the graph and the tensor it is made of.
struct Source {
  const char* name;  // in a layer "q.weight"
  Role role;
  enum Form { matrix, vector, norm } form;
};
constexpr Source k_layer_weights[] = {
    {"attention_norm.weight", Role::attn_norm, Source::norm}, {"q.weight", Role::q, Source::matrix},
    {"k.weight", Role::k, Source::matrix},                    {"v.weight", Role::v, Source::matrix},
    {"o.weight", Role::o, Source::matrix},                    {"q.bias", Role::q_bias, Source::vector},
    {"k.bias", Role::k_bias, Source::vector},                 {"v.bias", Role::v_bias, Source::vector},
    {"o.bias", Role::o_bias, Source::vector},                 {"ffn_norm.weight", Role::ffn_norm, Source::norm},
    {"gate.weight", Role::gate, Source::matrix},              {"up.weight", Role::up, Source::matrix},
    {"down.weight", Role::down, Source::matrix},
};

/// How the rows (out) or columns (in) of a role are padded.
IndexMap head_map(const HeadLayout& heads, std::int64_t count, bool rotated) {
  if (heads.dim == heads.padded) return {count * heads.dim, {}};
  return {count * heads.padded, [heads, rotated](std::int64_t i) {
            const std::int64_t element = i % heads.dim;
            return i / heads.dim * heads.padded + (rotated ? heads.rotated(element) : element);
          }};
}
IndexMap out_map(Role role, const models::LlamaConfig& config, const HeadLayout& heads) {
  switch (role) {
    case Role::q:
    case Role::q_bias: return head_map(heads, config.heads, true);
    case Role::k:
    case Role::k_bias: return head_map(heads, config.kv_heads, true);
    case Role::v:
    case Role::v_bias: return head_map(heads, config.kv_heads, false);
    default: return {models::shape_of(role, config).front(), {}};
  }
}
IndexMap in_map(Role role, const models::LlamaConfig& config, const HeadLayout& heads) {
  if (role == Role::o) return head_map(heads, config.heads, false);
  return {models::shape_of(role, config).back(), {}};
}

}  // namespace

HeadLayout HeadLayout::of(const models::LlamaConfig& config) {
  return {config.head_dim, (config.head_dim + k_head_unit - 1) / k_head_unit * k_head_unit, config.rope_pairs};
}

std::int64_t HeadLayout::rotated(std::int64_t element) const {
  if (pairs == models::RopePairs::interleaved || element < dim / 2) return element;
  return padded / 2 + element - dim / 2;
}

std::vector<float> HeadLayout::inv_freq(double theta) const {
  std::vector<float> result = kernels::rope_inv_freq(dim, theta);
  result.resize(static_cast<std::size_t>(padded / 2));
  return result;
}

DeviceModel::DeviceModel(sim::Cluster& cluster, const models::LlamaConfig& config, DType dtype, std::int64_t layers,
                         const models::Checkpoint* checkpoint)
    : m_config(config),
      m_heads(HeadLayout::of(config)),
      m_dtype(dtype),
      m_layers(layers),
      m_attention_scale(1 / std::sqrt(static_cast<float>(config.head_dim))),
      m_inv_freq(m_heads.inv_freq(config.rope_theta)) {
  m_config.head_dim = m_heads.padded;
  const double needed = weight_bytes(config, dtype, layers);
  if (needed > static_cast<double>(cluster.machine().ddr.bytes)) {
    throw RuntimeError(fmt::format("{}: {} layers of weights in {} take {:.1f} GB, the cluster's DDR has {:.1f} (eq. 16); use "
                                   "fewer layers, a smaller type or more clusters",
                                   config.name, layers, to_string(dtype), needed / 1e9,
                                   static_cast<double>(cluster.machine().ddr.bytes) / 1e9));
  }
  const std::int64_t b = bytes_of(dtype);
  const auto put = [&](const std::string& name, const Source& source, std::int64_t layer) {
    const IndexMap out = out_map(source.role, config, m_heads), in = in_map(source.role, config, m_heads);
    if (source.form == Source::matrix) {
      const sim::Pointer at = place(cluster, name, out.size * in.size * b);
      if (checkpoint != nullptr)
        cluster.write(at, pack_transposed(checkpoint->tensor(source.role, layer), dtype, out, in));
      return;
    }
    const DType type = source.form == Source::norm ? DType::f32 : dtype;
    const sim::Pointer at = place(cluster, name, out.size * bytes_of(type));
    if (checkpoint != nullptr) cluster.write(at, pack(checkpoint->tensor(source.role, layer), type, out));
  };
  const auto put_rows = [&](const std::string& name, Role role) {  // [vocab, hidden], as checkpoints have them
    const sim::Pointer at = place(cluster, name, config.embedding_parameters() * b);
    if (checkpoint != nullptr) cluster.write(at, pack(checkpoint->tensor(role), dtype, {config.hidden_size, {}}));
    return at;
  };
  const sim::Pointer embedding = put_rows("embedding", Role::embedding);
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    for (const Source& source : k_layer_weights) {
      if (models::is_present(source.role, config)) put(fmt::format("layers.{}.{}", layer, source.name), source, layer);
    }
  }
  put("final_norm.weight", {"", Role::final_norm, Source::norm}, 0);
  if (config.tie_word_embeddings)
    m_weights.emplace("head.weight", embedding);
  else
    put_rows("head.weight", Role::head);
  add_frequencies(cluster, m_inv_freq);
  for (const std::int64_t heads : {m_config.heads, m_config.kv_heads}) {
    const auto layout = kernels::RopeLayout::of(heads, m_config.head_dim, pairs_of(m_config.rope_pairs), m_dtype);
    add_frequencies(cluster, layout.frequencies(m_inv_freq));
  }
}

sim::Pointer DeviceModel::place(sim::Cluster& cluster, const std::string& name, std::int64_t bytes) {
  const sim::Pointer at = cluster.ddr_malloc(bytes);
  m_bytes += bytes;
  m_weights.emplace(name, at);
  return at;
}

void DeviceModel::add_frequencies(sim::Cluster& cluster, const std::vector<float>& values) {
  const auto [it, is_new] = m_frequencies.try_emplace(values);
  if (!is_new) return;
  it->second = cluster.ddr_malloc(std::ssize(values) * 4);
  cluster.write(it->second, std::as_bytes(std::span(values)));
}

sim::Pointer DeviceModel::weight(const std::string& name) const {
  const auto it = m_weights.find(name);
  if (it == m_weights.end()) throw RuntimeError(fmt::format("the model has no weight '{}'", name));
  return it->second;
}

sim::Pointer DeviceModel::frequencies(const std::vector<float>& values) const { return m_frequencies.at(values); }

double DeviceModel::weight_bytes(const models::LlamaConfig& config, DType dtype, std::int64_t layers) {
  const double all = static_cast<double>(layers) * static_cast<double>(config.layer_parameters()) +
                     static_cast<double>(config.tie_word_embeddings ? 1 : 2) *
                         static_cast<double>(config.embedding_parameters());
  return all * static_cast<double>(bytes_of(dtype));
}

}  // namespace mtsim::runtime
