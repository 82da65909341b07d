// SPDX-License-Identifier: Apache-2.0
// The reference against a second one, written the other way round: all positions at once, matrices instead of a cache.
#include "models/reference.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/models/support.h"

using namespace mtsim::models;
using namespace mtsim::models::test;

namespace {

using Matrix = std::vector<std::vector<double>>;  // [positions][n]

/// Logits [positions][vocab] of a whole text, by the formulas as Hugging Face has them.
class WholeText {
 public:
  explicit WholeText(const Checkpoint& checkpoint) : m_checkpoint(checkpoint), m_config(checkpoint.config()) {}

  Matrix operator()(const std::vector<std::int64_t>& tokens) const {
    Matrix x;
    for (const auto token : tokens) x.push_back(values(Role::embedding, 0, token));
    for (std::int64_t layer = 0; layer < m_config.layers; ++layer) {
      const Matrix a = normed(x, Role::attn_norm, layer);
      const Matrix q = rotated(times(a, Role::q, Role::q_bias, layer)),
                   k = rotated(times(a, Role::k, Role::k_bias, layer));
      add(x, times(attended(q, k, times(a, Role::v, Role::v_bias, layer)), Role::o, Role::o_bias, layer));
      const Matrix f = normed(x, Role::ffn_norm, layer);
      Matrix gate = times(f, Role::gate, {}, layer);
      const Matrix up = times(f, Role::up, {}, layer);
      for (std::size_t t = 0; t < gate.size(); ++t)
        for (std::size_t i = 0; i < gate[t].size(); ++i) gate[t][i] *= up[t][i] / (1 + std::exp(-gate[t][i]));
      add(x, times(gate, Role::down, {}, layer));
    }
    return times(normed(x, Role::final_norm, 0), Role::head, {}, 0);
  }

 private:
  std::vector<double> values(Role role, std::int64_t layer, std::int64_t index) const {
    const auto found = row(m_checkpoint.tensor(role, layer), index);
    return {found.begin(), found.end()};
  }

  static void add(Matrix& x, const Matrix& y) {
    for (std::size_t t = 0; t < x.size(); ++t)
      for (std::size_t i = 0; i < x[t].size(); ++i) x[t][i] += y[t][i];
  }

  Matrix times(const Matrix& x, Role role, std::optional<Role> bias, std::int64_t layer) const {
    const auto rows = m_checkpoint.tensor(role, layer).rows;
    Matrix y(x.size(), std::vector<double>(static_cast<std::size_t>(rows)));
    const bool has_bias = bias && is_present(*bias, m_config);
    const std::vector<double> b =
        has_bias ? values(*bias, layer, 0) : std::vector<double>(static_cast<std::size_t>(rows));
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto w = values(role, layer, i);
      for (std::size_t t = 0; t < x.size(); ++t) {
        double sum = b[static_cast<std::size_t>(i)];
        for (std::size_t j = w.size(); j-- > 0;) sum += w[j] * x[t][j];
        y[t][static_cast<std::size_t>(i)] = sum;
      }
    }
    return y;
  }

  Matrix normed(const Matrix& x, Role role, std::int64_t layer) const {
    const auto w = values(role, layer, 0);
    Matrix y = x;
    for (auto& token : y) {
      double squares = 0;
      for (const double value : token) squares += value * value;
      const double root = std::sqrt(squares / static_cast<double>(token.size()) + m_config.rms_norm_eps);
      for (std::size_t i = 0; i < token.size(); ++i) token[i] = token[i] / root * w[i];
    }
    return y;
  }

  /// Hugging Face's form: x cos + rotate_half(x) sin.
  Matrix rotated(const Matrix& x) const {
    Matrix y = x;
    const auto dim = static_cast<std::size_t>(m_config.head_dim), half = dim / 2;
    for (std::size_t t = 0; t < x.size(); ++t) {
      for (std::size_t i = 0; i < x[t].size(); ++i) {
        const std::size_t in_head = i % dim;
        const double frequency =
            1 / std::pow(m_config.rope_theta, static_cast<double>(2 * (in_head % half)) / static_cast<double>(dim));
        const double angle = static_cast<double>(t) * frequency;
        const double other = in_head < half ? -x[t][i + half] : x[t][i - half];
        y[t][i] = x[t][i] * std::cos(angle) + other * std::sin(angle);
      }
    }
    return y;
  }

  Matrix attended(const Matrix& q, const Matrix& k, const Matrix& v) const {
    const auto dim = static_cast<std::size_t>(m_config.head_dim);
    Matrix out(q.size(), std::vector<double>(q.front().size()));
    for (std::size_t t = 0; t < q.size(); ++t) {
      for (std::size_t i = 0; i < q[t].size(); ++i) {
        const std::size_t head = i / dim, kv_head = head * k.front().size() / q.front().size();
        double sum = 0, weighted = 0;
        for (std::size_t s = 0; s <= t; ++s) {
          double score = 0;
          for (std::size_t j = 0; j < dim; ++j) score += q[t][head * dim + j] * k[s][kv_head * dim + j];
          const double weight = std::exp(score / std::sqrt(static_cast<double>(dim)));
          sum += weight;
          weighted += weight * v[s][kv_head * dim + i % dim];
        }
        out[t][i] = weighted / sum;
      }
    }
    return out;
  }

  const Checkpoint& m_checkpoint;
  const LlamaConfig& m_config;
};

const std::vector<std::int64_t> k_tokens = {1, 17, 299, 17, 0, 105, 64};

}  // namespace

TEST_CASE("the reference agrees with a second one, with grouped heads, biases and a tied head", "[reference]") {
  for (const bool variant : {false, true}) {
    const Folder folder;
    const auto checkpoint = Checkpoint::open(make_small_model(folder, [&](RandomModel& model) {
      model.config.qkv_bias = model.config.tie_word_embeddings = variant;
      model.config.head_dim = variant ? 12 : 8;  // heads * head_dim beside hidden_size, too
      model.config.kv_heads = variant ? 1 : 2;
    }));
    const Matrix expected = WholeText(checkpoint)(k_tokens);
    Reference<double> in_f64(checkpoint);
    Reference<float> in_f32(checkpoint);
    for (std::size_t t = 0; t < k_tokens.size(); ++t) {
      const auto f64 = in_f64.forward(k_tokens[t]);
      const auto f32 = in_f32.forward(k_tokens[t]);
      for (std::size_t i = 0; i < f64.size(); ++i) {
        // Both in FP64, other orders: some hundred roundings of values near 1, 2^-53 each.
        REQUIRE(std::abs(f64[i] - expected[t][i]) < 1e-12);
        // FP32: the same roundings at 2^-24; a few thousand of them do not add up to 2e-5 unless they are all one way.
        REQUIRE(std::abs(static_cast<double>(f32[i]) - f64[i]) < 2e-5);
      }
    }
  }
}

TEST_CASE("a reference starts over after reset and stops where the context ends", "[reference]") {
  const Folder folder;
  const auto checkpoint =
      Checkpoint::open(make_small_model(folder, [](RandomModel& model) { model.config.max_positions = 3; }));
  Reference<float> reference(checkpoint);
  const auto first = reference.forward(1);
  const std::vector<float> logits(first.begin(), first.end());
  reference.forward(2);
  reference.forward(3);
  CHECK(reference.position() == 3);
  CHECK(error_of([&] { reference.forward(4); }) == "token 4: the context of 3 positions is full");
  reference.reset();
  const auto again = reference.forward(1);
  CHECK(logits == std::vector<float>(again.begin(), again.end()));
  CHECK(error_of([&] { reference.forward(300); }) == "token 300: ids of this vocabulary are 0 to 299");
  CHECK(error_of([&] { reference.forward(-1); }) == "token -1: ids of this vocabulary are 0 to 299");
}
