// SPDX-License-Identifier: Apache-2.0
// The block sizes of a GEMM that `mtsim explore gemm` looks at: every combination of a grid, those that fit ranked by
// their bound (kernels/gemm/gemm_bound.h), the others counted by the condition that rules them out.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "scenarios/explore/space.h"

namespace mtsim::scenarios {

/// Block sizes as every query has them, for options of the command.
std::span<const SpaceDimension> gemm_dimensions();

class GemmQuery final : public Query {
 public:
  /// `promote`: k_promote of FP16; 0 where nothing is promoted.
  GemmQuery(const kernels::GemmShape& its_shape, DType its_dtype, kernels::GemmSums its_sums, std::int64_t promote);

  const kernels::GemmShape gemm;
  const kernels::GemmSums sums;
  const std::int64_t k_promote;  // numerics, not a block size: the same for all; 0: the type has none

  /// Kinds of the space; what is behind them is compared with it.
  static constexpr std::size_t k_spaces = 2;
  std::span<const PointKind> kinds() const override;
  std::string_view kind_column() const override { return "stays"; }
  std::span<const SpaceDimension> dimensions() const override { return gemm_dimensions(); }
  std::unique_ptr<Space> space(const sim::MachineConfig& machine) const override;
  std::string common_tile() const override;

  kernels::GemmChoice choice(std::size_t kind) const;
  /// Values as block sizes and back.
  kernels::GemmTiles tiles(const Candidate& point) const;
  Candidate candidate(std::size_t kind, const kernels::GemmTiles& tiles) const;
};

class GemmSpace final : public Space {
 public:
  GemmSpace(const GemmQuery& query, const sim::MachineConfig& machine);

  /// A dataflow and an M1 x N1 each.
  std::size_t pieces() const override { return m_microkernels.size() * m_query.kinds_explored.size(); }
  Ranking rank(std::size_t piece, std::size_t top) const override;
  std::vector<Neighbour> neighbours(const Candidate& of) const override;
  /// The blocks the paper has, or of FP16 those the fidelity study found, also in its sequence; and the small-M
  /// dataflow, which has no blocks to choose, where `mtsim op` takes it by itself.
  std::vector<std::pair<std::string, Candidate>> named() const override;
  bool holds(const Candidate& point) const override;

 private:
  struct Microkernel {
    std::int64_t m1, n1;
  };
  class Walk;

  std::vector<std::int64_t> grid(std::string_view dimension, std::size_t kind, const kernels::GemmTiles& tiles) const;
  std::vector<std::int64_t> allowed(std::string_view dimension, std::vector<std::int64_t> grid) const {
    return scenarios::allowed(m_query.only, dimension, std::move(grid));
  }
  std::vector<std::int64_t> m2_grid(std::int64_t m1, bool all_cores) const;
  std::vector<std::int64_t> n2_grid(std::int64_t n1, bool all_columns) const;
  std::vector<std::int64_t> mg_grid(std::int64_t m2) const;
  std::vector<std::int64_t> k2_grid() const;
  std::vector<std::int64_t> kg_grid(std::int64_t k2) const;
  /// A point of a plan; KernelError when it does not fit.
  Candidate planned(std::size_t kind, const kernels::GemmTiles& tiles) const;

  const GemmQuery& m_query;
  const sim::MachineConfig& m_machine;
  std::vector<Microkernel> m_microkernels;
};

}  // namespace mtsim::scenarios
