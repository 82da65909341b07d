// SPDX-License-Identifier: Apache-2.0
// A Llama in plain C++, for comparison with everything else that computes one. It is written to be read, shares nothing
// with the simulator, and takes each weight from the checkpoint when it needs it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/checkpoint.h"

namespace mtsim::models {

/// One sequence in arithmetic of Real: float or double. Sums run upwards, one at a time.
template <class Real>
class Reference {
 public:
  /// `checkpoint` must outlive this.
  explicit Reference(const Checkpoint& checkpoint);

  /// Takes one token at position() and gives the logits [vocab] of the next; they last until the next call. Throws
  /// ModelError for an id outside the vocabulary, behind max_positions, and for a weight that is no number.
  std::span<const Real> forward(std::int64_t token);

  /// Tokens taken so far.
  std::int64_t position() const { return m_position; }
  /// Forgets them.
  void reset();

 private:
  using Vector = std::vector<Real>;

  struct LayerCache {
    Vector k;  // [positions, kv_heads * head_dim], RoPE applied
    Vector v;  // [positions, kv_heads * head_dim]
  };

  Vector weight(Role role, std::int64_t layer);                      // [n]
  Vector linear(Role role, std::int64_t layer, const Vector& x);     // W [out, in] x [in] -> [out]
  void add_bias(Role role, std::int64_t layer, Vector& y);           // [out]
  Vector rms_norm(Role role, std::int64_t layer, const Vector& x);   // [hidden] -> [hidden]
  void rope(Vector& heads) const;                                    // [heads, head_dim], at m_position
  Vector attention(const Vector& q, const LayerCache& cache) const;  // [heads, head_dim] -> the same
  Vector feed_forward(std::int64_t layer, const Vector& x);          // [hidden] -> [hidden]

  const Checkpoint& m_checkpoint;
  const LlamaConfig& m_config;
  std::vector<LayerCache> m_cache;  // [layers]
  std::int64_t m_position = 0;
  Vector m_logits;           // [vocab]
  std::vector<float> m_row;  // of a matrix, converted
};

extern template class Reference<float>;
extern template class Reference<double>;

}  // namespace mtsim::models
