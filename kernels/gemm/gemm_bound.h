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

/// Seconds. A step takes as long as the slower of its computing and its DDR bytes, rendezvous and what a single buffer
/// exposes added to the computing; the whole no less than all bytes through DDR or GSM. It knows no queueing and no
/// tails between rounds, so that a run takes longer; where rounds of different width trade places it can be over by the
/// difference of two rounds.
struct GemmBound {
  double total = 0;      // launch included
  double computing = 0;  // of the core with most rows: microkernels alone
  double rendezvous = 0;
  double ddr = 0, gsm = 0;  // all bytes at full bandwidth
};

/// Bounds on one machine; keeps what microkernels take.
class GemmBounds {
 public:
  /// The machine outlives it.
  explicit GemmBounds(const sim::MachineConfig& machine);

  /// `plan`: of plan_gemm or try_plan_gemm.
  GemmBound of(const GemmPlan& plan) const;

 private:
  double tile_cycles(const GemmPlan& plan, std::int64_t rows, std::int64_t columns, std::int64_t k) const;
  double step_seconds(const GemmPlan& plan, std::int64_t rows, std::int64_t columns, std::int64_t k) const;
  GemmBound of_large_m(const GemmPlan& plan) const;
  GemmBound of_w_stationary(const GemmPlan& plan) const;

  const sim::MachineConfig& m_machine;
  const double m_transfer_s;           // of a core: to issue a transfer and to wait for it
  std::array<int, 2> m_multipliers{};  // of FP32, FP16
  using TileKey = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool, DType>;
  mutable std::map<TileKey, double> m_tiles;  // by rows, columns, k, K2
};

}  // namespace mtsim::kernels
