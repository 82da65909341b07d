// SPDX-License-Identifier: Apache-2.0
// The block sizes of an attention that `mtsim explore attention` looks at: Mr, Mc and the blocks of keys of a pass, of
// mt and flash, ranked by their bound (kernels/attention/attention_bound.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/attention/attention.h"
#include "scenarios/explore/space.h"

namespace mtsim::scenarios {

/// Block sizes as every query has them, for options of the command.
std::span<const SpaceDimension> attention_dimensions();

/// Heads are equal pieces: of each point a few are simulated (CaseOptions::skip_pieces).
class AttentionQuery final : public Query {
 public:
  /// `dimensions_given`: `mtsim op attention`. KernelError for one that is none.
  AttentionQuery(const Shape& dimensions_given, DType its_dtype, bool causal);

  const kernels::AttentionShape attention;

  /// Kinds of the space; what is behind them is compared with it.
  static constexpr std::size_t k_spaces = 2;
  std::span<const PointKind> kinds() const override;
  std::string_view kind_column() const override { return "variant"; }
  std::span<const SpaceDimension> dimensions() const override { return attention_dimensions(); }
  std::unique_ptr<Space> space(const sim::MachineConfig& machine) const override;
};

class AttentionSpace final : public Space {
 public:
  AttentionSpace(const AttentionQuery& query, const sim::MachineConfig& machine);

  /// A variant and an Mc each.
  std::size_t pieces() const override { return m_mcs.size() * m_query.kinds_explored.size(); }
  Ranking rank(std::size_t piece, std::size_t top) const override;
  std::vector<Neighbour> neighbours(const Candidate& of) const override;
  /// The paper's blocks (Mr 64, Mc 512), also in its sequence, and the other two variants.
  std::vector<std::pair<std::string, Candidate>> named() const override;
  bool holds(const Candidate& point) const override;

 private:
  std::vector<std::int64_t> allowed(std::string_view dimension, std::vector<std::int64_t> grid) const {
    return scenarios::allowed(m_query.only, dimension, std::move(grid));
  }
  std::vector<std::int64_t> mr_grid() const;
  std::vector<std::int64_t> pass_grid(std::size_t kind, std::int64_t mc) const;
  kernels::TriedAttention tried(std::size_t kind, const kernels::AttentionTiles& tiles) const;
  Candidate candidate(std::size_t kind, const kernels::AttentionPlan& plan) const;

  const AttentionQuery& m_query;
  const sim::MachineConfig& m_machine;
  std::vector<std::int64_t> m_mcs;
};

}  // namespace mtsim::scenarios
