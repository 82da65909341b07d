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

/// Fills in a plan of that dataflow whose tiles check_tiles has seen, and gives its conditions in the order they are
/// told. Throws KernelError for all that is no capacity.
GemmLimits size_large_m(GemmPlan& plan, const sim::MachineConfig& machine);
/// The same; throws GemmLimitError for the first condition that is broken.
GemmPlan plan_large_m(GemmPlan plan, const sim::MachineConfig& machine);

}  // namespace mtsim::kernels::gemm
