// SPDX-License-Identifier: Apache-2.0
// How long a GEMM takes at least, in closed form: what ranks thousands of block sizes before any is simulated.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <tuple>

#include "kernels/gemm/gemm.h"
#include "sim/config/machine.h"

namespace mtsim::kernels {

/// Bounds on one machine; keeps what microkernels take.
class GemmBounds {
 public:
  /// The machine outlives it.
  explicit GemmBounds(const sim::MachineConfig& machine);

  /// Seconds, launch included; `plan`: of plan_gemm or try_plan_gemm. A step takes as long as the slower of its
  /// computing and its DDR traffic (bytes, and rows of W and Y where they cost something), rendezvous and what a single
  /// buffer exposes added to the computing; the whole no less than all bytes and rows through DDR or GSM. It knows no
  /// queueing and no tails between rounds, so that a run takes longer; where rounds of different width trade places, or
  /// there is but one, it can be over by the difference of two rounds.
  double of(const GemmPlan& plan) const;

 private:
  double tile_cycles(const GemmPlan& plan, std::int64_t rows, std::int64_t columns, std::int64_t k) const;
  double step_seconds(const GemmPlan& plan, std::int64_t rows, std::int64_t columns, std::int64_t k) const;
  double of_large_m(const GemmPlan& plan) const;
  double of_w_stationary(const GemmPlan& plan) const;

  const sim::MachineConfig& m_machine;
  const double m_transfer_s;           // of a core: to issue a transfer and to wait for it
  std::array<int, 2> m_multipliers{};  // of FP32, FP16
  using TileKey = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool, DType>;
  mutable std::map<TileKey, double> m_tiles;  // by rows, columns, k, K2
};

}  // namespace mtsim::kernels
