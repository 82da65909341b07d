// SPDX-License-Identifier: Apache-2.0
// The conditions a plan has to keep, and the messages when it does not. Private to kernels/gemm.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/gemm/gemm.h"

namespace mtsim::kernels::gemm {

inline std::string text(const GemmShape& shape) {
  return fmt::format("gemm m={} n={} k={}", shape.m, shape.n, shape.k);
}

/// "gemm m=1 n=2 k=3: eq. (6): `formula` needs 70000 bytes of SM, 65536 available; `advice`".
[[noreturn]] void refuse(const GemmShape& shape, const GemmLimit& limit, const std::string& formula,
                         const std::string& advice);
inline void check(const GemmShape& shape, const GemmLimit& limit, const std::string& formula,
                  const std::string& advice) {
  if (limit.is_broken()) refuse(shape, limit, formula, advice);
}
void check_channels(const GemmShape& shape, std::string_view dataflow, int needed, const sim::MachineConfig& machine);

/// "use k2=196 or less", or what else to shrink when not even the smallest value fits.
std::string shrink(std::string_view tile, std::int64_t largest, std::int64_t smallest, std::string_view otherwise);
/// "3 * 4 B * M2 * N2", for the formulas of eqs. (5) and (7).
std::string term(std::int64_t count, std::int64_t bytes, std::string_view sizes);
constexpr std::int64_t floor_to(std::int64_t value, std::int64_t unit) { return value / unit * unit; }

// Steps that the dataflows in rounds share.
inline constexpr std::int64_t k_y_buffers = 3;  // of Y2: coming in, being computed, going out (Fig. 7)
/// Throws KernelError unless kg holds whole k-steps.
void check_kg(const GemmShape& shape, const GemmTiles& tiles);
/// Rows and columns of X2 and Y2 as they lie in SM and AM, of m2 and n2.
void set_padded_sizes(GemmPlan& plan);
/// What is kept of Y2 in AM: `rounds` tiles of `sums_tile` bytes would stay there, W leaves `free`.
void choose_y_buffers(GemmPlan& plan, std::int64_t rounds, std::int64_t sums_tile, std::int64_t free);
/// Eqs. (4) and (6). `m2`: how M2 comes about; `rows`: the tile it depends on.
void check_x(const GemmPlan& plan, const GemmLimit& one, const GemmLimit& all, std::string_view m2,
             std::string_view rows);
/// The left side of eq. (7), which in the paper has a bias row more; `w`: elements of W in a buffer.
std::string y_formula(const GemmPlan& plan, std::string_view w, std::string_view sizes);

/// Fills in a plan of that dataflow whose tiles check_tiles has seen, and gives its conditions in the order they are
/// told. Throws KernelError for all that is no capacity.
GemmLimits size_large_m(GemmPlan& plan, const sim::MachineConfig& machine);
/// The same; throws GemmLimitError for the first condition that is broken.
GemmPlan plan_large_m(GemmPlan plan, const sim::MachineConfig& machine);

/// The plan with those tiles chosen that are 0, for its shape.
GemmPlan with_w_stationary_tiles(const GemmPlan& plan, const sim::MachineConfig& machine);
GemmLimits size_w_stationary(GemmPlan& plan, const sim::MachineConfig& machine);
GemmPlan plan_w_stationary(GemmPlan plan, const sim::MachineConfig& machine);

}  // namespace mtsim::kernels::gemm
