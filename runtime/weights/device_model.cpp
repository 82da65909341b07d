// SPDX-License-Identifier: Apache-2.0
#include "runtime/weights/device_model.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <system_error>

#include "models/packed_weights.h"
#include "runtime/error.h"
#include "runtime/weights/packing.h"

namespace mtsim::runtime {
namespace {

using kernels::DType;
using models::Role;

constexpr std::int64_t k_head_unit = 16;  // attention takes heads of multiples of it

/// A weight of the graph and the tensor it is made of.
struct Source {
  const char* name;  // in a layer "q.weight"
  Role role;
  WeightForm form;
  static constexpr WeightForm matrix = WeightForm::matrix, rows = WeightForm::rows, vector = WeightForm::vector,
                              norm = WeightForm::norm;
};
constexpr Source k_layer_weights[] = {
    {"attention_norm.weight", Role::attn_norm, Source::norm},
    {"q.weight", Role::q, Source::matrix},
    {"k.weight", Role::k, Source::matrix},
    {"v.weight", Role::v, Source::matrix},
    {"o.weight", Role::o, Source::matrix},
    {"q.bias", Role::q_bias, Source::vector},
    {"k.bias", Role::k_bias, Source::vector},
    {"v.bias", Role::v_bias, Source::vector},
    {"o.bias", Role::o_bias, Source::vector},
    {"ffn_norm.weight", Role::ffn_norm, Source::norm},
    {"gate.weight", Role::gate, Source::matrix},
    {"up.weight", Role::up, Source::matrix},
    {"down.weight", Role::down, Source::matrix},
};

/// `count` heads from `first` on, each padded.
IndexMap head_map(const HeadLayout& heads, std::int64_t first, std::int64_t count, bool rotated) {
  return {count * heads.padded, [=](std::int64_t i) {
            const std::int64_t head = i / heads.dim - first, element = i % heads.dim;
            if (head < 0 || head >= count) return IndexMap::k_nowhere;
            return head * heads.padded + (rotated ? heads.rotated(element) : element);
          }};
}
IndexMap slice(std::int64_t first, std::int64_t count) {
  return {count, [=](std::int64_t i) { return i < first || i >= first + count ? IndexMap::k_nowhere : i - first; }};
}

/// Bytes of one of the files as pages of the DDR.
sim::Pointer map_bytes(sim::Cluster& cluster, const models::Checkpoint& checkpoint, const models::PackedWeights& packed,
                       const std::byte* data, std::int64_t bytes) {
  std::vector<const models::MappedFile*> files;
  for (const models::MappedFile& file : checkpoint.files()) files.push_back(&file);
  if (packed.cache()) files.push_back(&*packed.cache());
  const auto* at = reinterpret_cast<const char*>(data);
  for (const models::MappedFile* file : files) {
    const std::string_view text = file->text();
    if (at < text.data() || at >= text.data() + text.size()) continue;
    const int descriptor = ::open(file->path().c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) throw std::system_error(errno, std::generic_category(), file->path());
    struct Closed {
      int descriptor;
      ~Closed() { ::close(descriptor); }
    } closed{descriptor};
    return cluster.ddr_map(descriptor, at - text.data(), bytes);
  }
  throw std::logic_error("a packed matrix lies in none of the files");
}

}  // namespace

kernels::RopePairs rope_pairs(const models::LlamaConfig& config) {
  return config.rope_pairs == models::RopePairs::half ? kernels::RopePairs::half : kernels::RopePairs::interleaved;
}

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

DeviceModel::DeviceModel(sim::Cluster& cluster, const models::LlamaConfig& config, DType dtype,
                         const models::ModelPart& part, const models::Checkpoint* checkpoint, std::int64_t mapped_from)
    : m_part(part),
      m_given(config),
      m_config(part.config(config)),
      m_heads(HeadLayout::of(config)),
      m_dtype(dtype),
      m_attention_scale(1 / std::sqrt(static_cast<float>(config.head_dim))),
      m_inv_freq(m_heads.inv_freq(config.rope_theta)) {
  m_config.head_dim = m_heads.padded;
  const double needed = weight_bytes(config, dtype, part);
  if (needed > static_cast<double>(cluster.machine().ddr.bytes)) {
    throw RuntimeError(
        fmt::format("{}: {} layers of weights in {} take {:.1f} GB, the cluster's DDR has {:.1f} (eq. 16); use "
                    "fewer layers, a smaller type or more clusters",
                    config.name, part.layers, to_string(dtype), needed / 1e9,
                    static_cast<double>(cluster.machine().ddr.bytes) / 1e9));
  }
  collect();
  std::int64_t matrix_bytes = 0;
  for (const Weight& weight : m_list) matrix_bytes += weight.bytes;
  if (checkpoint == nullptr)
    take_memory(cluster);
  else if (m_heads.dim == m_heads.padded && part.tp == 1 && matrix_bytes >= mapped_from)
    map(cluster, *checkpoint);
  else
    write(cluster, *checkpoint);
  if (part.embedding && part.head && config.tie_word_embeddings) {
    const std::int64_t row = config.hidden_size * bytes_of(dtype);
    m_weights.emplace("head.weight", weight("embedding") + part.head_first(config) * row);
  }
  add_frequencies(cluster, m_inv_freq);
  for (const std::int64_t heads : {m_config.heads, m_config.kv_heads}) {
    const auto layout = kernels::RopeLayout::of(heads, m_config.head_dim, rope_pairs(m_config), m_dtype);
    add_frequencies(cluster, layout.frequencies(m_inv_freq));
  }
}

models::LlamaConfig DeviceModel::whole() const {
  models::LlamaConfig result = m_given;
  result.head_dim = m_heads.padded;
  return result;
}

/// Where the outputs (rows) of a role's tensor go.
IndexMap DeviceModel::out_map(Role role) const {
  const auto& whole = m_given;
  const std::int64_t heads = m_config.heads, kv_heads = m_config.kv_heads;
  switch (role) {
    case Role::q:
    case Role::q_bias: return head_map(m_heads, m_part.tp_rank * heads, heads, true);
    case Role::k:
    case Role::k_bias: return head_map(m_heads, m_part.tp_rank * kv_heads, kv_heads, true);
    case Role::v:
    case Role::v_bias: return head_map(m_heads, m_part.tp_rank * kv_heads, kv_heads, false);
    case Role::gate:
    case Role::up: return slice(m_part.tp_rank * m_config.intermediate_size, m_config.intermediate_size);
    case Role::head: return slice(m_part.head_first(whole), m_part.head_rows(whole));
    default: return {models::shape_of(role, whole).front(), {}};
  }
}

/// Where its inputs (columns) go.
IndexMap DeviceModel::in_map(Role role) const {
  switch (role) {
    case Role::o: return head_map(m_heads, m_part.tp_rank * m_config.heads, m_config.heads, false);
    case Role::down: return slice(m_part.tp_rank * m_config.intermediate_size, m_config.intermediate_size);
    default: return {models::shape_of(role, m_given).back(), {}};
  }
}

/// Every weight of the part, in the order in which they lie.
void DeviceModel::collect() {
  const auto add = [&](const std::string& name, const Source& source, std::int64_t layer) {
    const bool is_matrix = models::shape_of(source.role, m_given).size() > 1;
    const std::int64_t rows = out_map(source.role).size;
    const std::int64_t columns = is_matrix ? in_map(source.role).size : 1;
    const DType type = source.form == Source::norm ? DType::f32 : m_dtype;
    m_list.push_back({name, source.role, layer, source.form, rows * columns * bytes_of(type)});
  };
  if (m_part.embedding) add("embedding", {"", Role::embedding, Source::rows}, 0);
  for (std::int64_t layer = m_part.first_layer; layer < m_part.first_layer + m_part.layers; ++layer) {
    for (const Source& source : k_layer_weights) {
      if (models::is_present(source.role, m_given)) add(fmt::format("layers.{}.{}", layer, source.name), source, layer);
    }
  }
  if (!m_part.head) return;
  add("final_norm.weight", {"", Role::final_norm, Source::norm}, 0);
  if (!m_part.embedding || !m_given.tie_word_embeddings) add("head.weight", {"", Role::head, Source::rows}, 0);
}

void DeviceModel::put(const Weight& weight, sim::Pointer at) {
  m_bytes += weight.bytes;
  m_weights.emplace(weight.name, at);
}

void DeviceModel::take_memory(sim::Cluster& cluster) {
  for (const Weight& weight : m_list) put(weight, cluster.ddr_malloc(weight.bytes));
}

std::vector<std::byte> DeviceModel::packed(const Weight& weight, const models::Checkpoint& checkpoint) const {
  const models::Tensor& tensor = checkpoint.tensor(weight.role, weight.layer);
  const IndexMap out = out_map(weight.role), in = in_map(weight.role);
  switch (weight.form) {
    case Source::matrix: return pack_transposed(tensor, m_dtype, out, in);
    case Source::rows: return pack(tensor, m_dtype, out, in);
    case Source::vector: return pack(tensor, m_dtype, {}, out);
    default: return pack(tensor, DType::f32, {}, out);
  }
}

void DeviceModel::write(sim::Cluster& cluster, const models::Checkpoint& checkpoint) {
  for (const Weight& weight : m_list) {
    const sim::Pointer at = cluster.ddr_malloc(weight.bytes);
    cluster.write(at, packed(weight, checkpoint));
    put(weight, at);
  }
}

/// Matrices are pages of the checkpoint, or of the file that holds them packed.
void DeviceModel::map(sim::Cluster& cluster, const models::Checkpoint& checkpoint) {
  std::vector<models::PackedMatrix> matrices;
  for (const Weight& weight : m_list) {
    if (weight.form == Source::matrix || weight.form == Source::rows)
      matrices.push_back({{{weight.role, weight.layer}}, weight.form == Source::matrix, 0});
  }
  const auto type = m_dtype == DType::f32 ? models::ElementType::f32 : models::ElementType::f16;
  models::PackedWeights files(checkpoint, type, matrices);
  std::size_t next = 0;
  for (const Weight& weight : m_list) {
    if (weight.form == Source::matrix || weight.form == Source::rows) {
      put(weight, map_bytes(cluster, checkpoint, files, files.matrix(next++).data, weight.bytes));
      continue;
    }
    const sim::Pointer at = cluster.ddr_malloc(weight.bytes);
    cluster.write(at, packed(weight, checkpoint));
    put(weight, at);
  }
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

double DeviceModel::weight_bytes(const models::LlamaConfig& config, DType dtype, const models::ModelPart& part) {
  return static_cast<double>(part.parameters(config)) * static_cast<double>(bytes_of(dtype));
}

}  // namespace mtsim::runtime
