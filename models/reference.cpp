// SPDX-License-Identifier: Apache-2.0
#include "models/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/error.h"

namespace mtsim::models {

namespace {

template <class Real>
void add(std::vector<Real>& x, const std::vector<Real>& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

/// x [n] -> exp(x) / sum of exp(x)
template <class Real>
void softmax(std::vector<Real>& x) {
  const Real maximum = *std::max_element(x.begin(), x.end());
  Real sum = 0;
  for (Real& value : x) sum += value = std::exp(value - maximum);
  for (Real& value : x) value /= sum;
}

}  // namespace

template <class Real>
Reference<Real>::Reference(const Checkpoint& checkpoint)
    : m_checkpoint(checkpoint),
      m_config(checkpoint.config()),
      m_cache(static_cast<std::size_t>(m_config.layers)),
      m_logits(static_cast<std::size_t>(m_config.vocab_size)) {}

template <class Real>
void Reference<Real>::reset() {
  for (LayerCache& cache : m_cache) cache = {};
  m_position = 0;
}

// The decoder of Fig. 4 of the paper, operator by operator.
template <class Real>
std::span<const Real> Reference<Real>::forward(std::int64_t token) {
  if (token < 0 || token >= m_config.vocab_size)
    throw ModelError(fmt::format("token {}: ids of this vocabulary are 0 to {}", token, m_config.vocab_size - 1));
  if (m_position >= m_config.max_positions)
    throw ModelError(fmt::format("token {}: the context of {} positions is full", token, m_config.max_positions));
  m_row.resize(static_cast<std::size_t>(m_config.hidden_size));
  m_checkpoint.tensor(Role::embedding).read_f32(token, 1, m_row.data());
  Vector x(m_row.begin(), m_row.end());  // [hidden]: the residual stream
  for (std::int64_t layer = 0; layer < m_config.layers; ++layer) {
    LayerCache& cache = m_cache[static_cast<std::size_t>(layer)];
    const Vector a = rms_norm(Role::attn_norm, layer, x);  // [hidden]
    Vector q = linear(Role::q, layer, a);                  // [heads, head_dim]
    Vector k = linear(Role::k, layer, a);                  // [kv_heads, head_dim]
    Vector v = linear(Role::v, layer, a);                  // [kv_heads, head_dim]
    add_bias(Role::q_bias, layer, q);
    add_bias(Role::k_bias, layer, k);
    add_bias(Role::v_bias, layer, v);
    rope(q);
    rope(k);
    cache.k.insert(cache.k.end(), k.begin(), k.end());
    cache.v.insert(cache.v.end(), v.begin(), v.end());
    Vector o = linear(Role::o, layer, attention(q, cache));  // [hidden]
    add_bias(Role::o_bias, layer, o);
    add(x, o);
    add(x, feed_forward(layer, rms_norm(Role::ffn_norm, layer, x)));
  }
  m_logits = linear(Role::head, 0, rms_norm(Role::final_norm, 0, x));
  ++m_position;
  return m_logits;
}

template <class Real>
typename Reference<Real>::Vector Reference<Real>::weight(Role role, std::int64_t layer) {
  const Tensor& tensor = m_checkpoint.tensor(role, layer);
  m_row.resize(static_cast<std::size_t>(tensor.columns));
  tensor.read_f32(0, 1, m_row.data());
  return Vector(m_row.begin(), m_row.end());
}

template <class Real>
typename Reference<Real>::Vector Reference<Real>::linear(Role role, std::int64_t layer, const Vector& x) {
  const Tensor& w = m_checkpoint.tensor(role, layer);
  Vector y(static_cast<std::size_t>(w.rows));
  m_row.resize(x.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    w.read_f32(static_cast<std::int64_t>(i), 1, m_row.data());
    Real sum = 0;
    for (std::size_t j = 0; j < x.size(); ++j) sum += static_cast<Real>(m_row[j]) * x[j];
    y[i] = sum;
  }
  return y;
}

template <class Real>
void Reference<Real>::add_bias(Role role, std::int64_t layer, Vector& y) {
  if (is_present(role, m_config)) add(y, weight(role, layer));
}

/// x / sqrt(mean(x^2) + eps) * w
template <class Real>
typename Reference<Real>::Vector Reference<Real>::rms_norm(Role role, std::int64_t layer, const Vector& x) {
  Vector y = weight(role, layer);
  Real squares = 0;
  for (const Real value : x) squares += value * value;
  const Real scale = 1 / std::sqrt(squares / static_cast<Real>(x.size()) + static_cast<Real>(m_config.rms_norm_eps));
  for (std::size_t i = 0; i < x.size(); ++i) y[i] *= scale * x[i];
  return y;
}

/// Pair i of each head, (a, b), turns by position * theta^(-2 i / head_dim). Angles are worked out in FP64: at a late
/// position FP32 would lose digits that both pair layouts and all implementations should agree on.
template <class Real>
void Reference<Real>::rope(Vector& heads) const {
  const auto dim = static_cast<std::size_t>(m_config.head_dim);
  const bool half = m_config.rope_pairs == RopePairs::half;
  for (std::size_t i = 0; i < dim / 2; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(dim);
    const double angle = static_cast<double>(m_position) * std::pow(m_config.rope_theta, exponent);
    const auto cosine = static_cast<Real>(std::cos(angle)), sine = static_cast<Real>(std::sin(angle));
    const std::size_t first = half ? i : 2 * i, second = half ? i + dim / 2 : 2 * i + 1;
    for (std::size_t head = 0; head < heads.size(); head += dim) {
      const Real a = heads[head + first], b = heads[head + second];
      heads[head + first] = a * cosine - b * sine;
      heads[head + second] = a * sine + b * cosine;
    }
  }
}

/// softmax(q K^T / sqrt(head_dim)) V, a head at a time; each KV head serves heads / kv_heads heads.
template <class Real>
typename Reference<Real>::Vector Reference<Real>::attention(const Vector& q, const LayerCache& cache) const {
  const auto dim = static_cast<std::size_t>(m_config.head_dim),
             kv_width = static_cast<std::size_t>(m_config.kv_width());
  const auto sharing = static_cast<std::size_t>(m_config.queries_per_kv_head());
  const Real scale = 1 / std::sqrt(static_cast<Real>(dim));
  Vector out(q.size());                      // [heads, head_dim]
  Vector scores(cache.k.size() / kv_width);  // [positions] of one head
  for (std::size_t head = 0; head < q.size() / dim; ++head) {
    const Real* q_head = &q[head * dim];             // [head_dim]
    const Real* k = &cache.k[head / sharing * dim];  // [positions, head_dim], rows kv_width apart
    const Real* v = &cache.v[head / sharing * dim];  // the same
    for (std::size_t t = 0; t < scores.size(); ++t) {
      Real sum = 0;
      for (std::size_t i = 0; i < dim; ++i) sum += q_head[i] * k[t * kv_width + i];
      scores[t] = sum * scale;
    }
    softmax(scores);
    for (std::size_t t = 0; t < scores.size(); ++t)
      for (std::size_t i = 0; i < dim; ++i) out[head * dim + i] += scores[t] * v[t * kv_width + i];
  }
  return out;
}

/// W_down (silu(W_gate x) * W_up x), silu(g) = g / (1 + exp(-g))
template <class Real>
typename Reference<Real>::Vector Reference<Real>::feed_forward(std::int64_t layer, const Vector& x) {
  Vector gate = linear(Role::gate, layer, x);    // [intermediate]
  const Vector up = linear(Role::up, layer, x);  // [intermediate]
  for (std::size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
  return linear(Role::down, layer, gate);
}

template class Reference<float>;
template class Reference<double>;

}  // namespace mtsim::models
