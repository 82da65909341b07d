// SPDX-License-Identifier: Apache-2.0
// A model as it lies in a cluster's DDR: matrices [in, out] in the type of the run, so that microkernels load rows of
// outputs, but for embedding and head, which stay [vocab, hidden]; norms in FP32. Of a part of a model
// (models/model_part.h) what that part has. Heads are padded with zeros to the multiple of 16 elements that attention
// takes: a head of 8 has the results of 8.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/rope/rope_tile.h"
#include "models/checkpoint.h"
#include "models/config.h"
#include "models/model_part.h"
#include "runtime/weights/packing.h"
#include "sim/cluster.h"

namespace mtsim::runtime {

/// What the kernels call it.
kernels::RopePairs rope_pairs(const models::LlamaConfig& config);

/// Where the elements of a head go: one index each, into a head of head_dim_padded elements.
struct HeadLayout {
  std::int64_t dim = 0, padded = 0;
  models::RopePairs pairs = models::RopePairs::half;

  static HeadLayout of(const models::LlamaConfig& config);
  /// Elements i and i + dim / 2 still rotate together when they do in the model.
  std::int64_t rotated(std::int64_t element) const;
  std::vector<float> inv_freq(double theta) const;  // of a padded head, 0 in the pads
};

/// matrix: [in, out]. rows: [out, in], as checkpoints have it. norm: FP32 whatever the run's type.
enum class WeightForm : std::uint8_t { matrix, rows, vector, norm };

inline constexpr std::int64_t k_mapped_from = std::int64_t{64} << 20;

class DeviceModel {
 public:
  /// Of `config` what `part` has. Without a checkpoint memory is taken and nothing written: for timing. From so many
  /// bytes on, matrices are not copied but mapped: the checkpoint's own pages where type and layout are right, else
  /// those of a file they are packed into once (models/packed_weights.h); those of a tensor-parallel share are
  /// always copied. Throws RuntimeError when the DDR does not
  /// hold them, models::ModelError for a weight that is no number.
  DeviceModel(sim::Cluster& cluster, const models::LlamaConfig& config, kernels::DType dtype,
              const models::ModelPart& part, const models::Checkpoint* checkpoint,
              std::int64_t mapped_from = k_mapped_from);

  /// As the cluster computes it: layers, heads and widths are those of the part, head_dim is the padded one.
  const models::LlamaConfig& config() const { return m_config; }
  const models::ModelPart& part() const { return m_part; }
  /// The whole model, with heads as the cluster pads them.
  models::LlamaConfig whole() const;
  kernels::DType dtype() const { return m_dtype; }
  float attention_scale() const { return m_attention_scale; }
  std::int64_t bytes() const { return m_bytes; }  // of DDR

  /// By the name of the graph's weight tensor, "layers.0.q.weight".
  sim::Pointer weight(const std::string& name) const;
  const std::vector<float>& inv_freq() const { return m_inv_freq; }
  /// inv_freq(), or what RopeLayout::frequencies or gemm_frequencies make of it, in DDR.
  sim::Pointer frequencies(const std::vector<float>& values) const;

  /// DDR that the weights of a part take (eqs. 12 and 14), without padding of heads.
  static double weight_bytes(const models::LlamaConfig& config, kernels::DType dtype, const models::ModelPart& part);

 private:
  struct Weight {
    std::string name;
    models::Role role;
    std::int64_t layer;
    WeightForm form;
    std::int64_t bytes;
  };
  IndexMap out_map(models::Role role) const;
  IndexMap in_map(models::Role role) const;
  void collect();
  void take_memory(sim::Cluster& cluster);
  void write(sim::Cluster& cluster, const models::Checkpoint& checkpoint);
  void map(sim::Cluster& cluster, const models::Checkpoint& checkpoint);
  void put(const Weight& weight, sim::Pointer at);
  std::vector<std::byte> packed(const Weight& weight, const models::Checkpoint& checkpoint) const;
  void add_frequencies(sim::Cluster& cluster, const std::vector<float>& values);

  const models::ModelPart m_part;
  models::LlamaConfig m_given, m_config;  // m_given: of the whole model
  HeadLayout m_heads;
  kernels::DType m_dtype;
  float m_attention_scale;
  std::int64_t m_bytes = 0;
  std::vector<float> m_inv_freq;
  std::vector<Weight> m_list;
  std::map<std::string, sim::Pointer> m_weights;
  std::map<std::vector<float>, sim::Pointer> m_frequencies;
};

}  // namespace mtsim::runtime
