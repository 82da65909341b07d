// SPDX-License-Identifier: Apache-2.0
// The block sizes of a GEMM that `mtsim explore gemm` looks at: every combination of a grid, those that fit ranked by
// their bound (kernels/gemm/gemm_bound.h), the others counted by the condition that rules them out.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "scenarios/explore/candidate.h"
#include "sim/config/machine.h"

namespace mtsim::scenarios {

/// mg of large_m is what m2 makes it: the rows of all cores.
inline constexpr std::array<std::string_view, 11> k_gemm_dimensions = {
    "m1", "n1", "m2", "n2", "k2", "kg", "mg", "x_buffers", "w_buffers", "y_buffers", "y_tiles"};
/// Y stationary (large_m) and W stationary.
inline constexpr std::array<std::string_view, 2> k_gemm_dataflows = {"large_m", "w_stationary"};

/// A third one, which is of no space: what `mtsim op` takes for few rows.
inline constexpr const char* k_own_choice = "small_m";

struct GemmQuery {
  kernels::GemmShape shape;
  kernels::DType dtype = kernels::DType::f32;
  kernels::GemmSums sums = kernels::GemmSums::promoted;
  std::int64_t k_promote = 0;  // numerics, not a block size: the same for all
  std::vector<std::string> dataflows = {k_gemm_dataflows.begin(), k_gemm_dataflows.end()};
};

/// What --only leaves of a dimension: "k2" -> {128, 256}. Dimensions that are not there have their whole grid.
using Restrictions = std::map<std::string, std::vector<std::int64_t>, std::less<>>;

class GemmSpace {
 public:
  /// UsageError for a dimension there is not, or one that --only leaves nothing of.
  GemmSpace(const GemmQuery& query, const sim::MachineConfig& machine, Restrictions restrictions);

  /// A dataflow and an M1 x N1 each: pieces of the space, ranked one by one.
  std::size_t pieces() const { return m_microkernels.size() * m_query.dataflows.size(); }
  /// Of one piece the `top` best by their bound.
  Ranking rank(std::size_t piece, std::size_t top) const;

  /// The next smaller and larger value of each dimension, the others kept where that is possible. Points that do not
  /// fit are there too, with the reason.
  std::vector<Neighbour> neighbours(const Candidate& of) const;
  /// The block sizes the paper has, or of FP16 those the fidelity study found.
  Candidate paper_point() const;
  /// The small-M dataflow, which has no blocks to choose, where `mtsim op` takes it by itself.
  std::optional<Candidate> small_m_point() const;
  /// Whether a point is one of those that --dataflow and --only leave.
  bool holds(const Candidate& point) const;
  /// A point of `op gemm --tile`; UsageError when it does not fit.
  Candidate candidate(const std::string& dataflow, const kernels::GemmTiles& tiles) const;

 private:
  struct Microkernel {
    std::int64_t m1, n1;
  };
  class Walk;

  kernels::GemmChoice choice(std::string_view dataflow) const;
  std::vector<std::int64_t> grid(std::string_view dimension, const std::string& dataflow,
                                 const kernels::GemmTiles& tiles) const;
  std::vector<std::int64_t> allowed(std::string_view dimension, std::vector<std::int64_t> grid) const;
  std::vector<std::int64_t> m2_grid(std::int64_t m1, bool all_cores) const;
  std::vector<std::int64_t> n2_grid(std::int64_t n1, bool all_columns) const;
  std::vector<std::int64_t> mg_grid(std::int64_t m2) const;
  std::vector<std::int64_t> k2_grid() const;
  std::vector<std::int64_t> kg_grid(std::int64_t k2) const;
  std::string tile_text(std::string_view dataflow, const kernels::GemmTiles& tiles) const;

  GemmQuery m_query;
  const sim::MachineConfig& m_machine;
  Restrictions m_restrictions;
  std::vector<Microkernel> m_microkernels;
};

}  // namespace mtsim::scenarios
