// SPDX-License-Identifier: Apache-2.0
// How long an attention takes at least, in closed form: what ranks block sizes before any is simulated.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "kernels/attention/attention.h"
#include "sim/config/machine.h"

namespace mtsim::kernels {

/// Bounds on one machine; keeps what microkernels take.
class AttentionBounds {
 public:
  /// The machine outlives it.
  explicit AttentionBounds(const sim::MachineConfig& machine);

  /// Seconds, launch included, of mt and flash: no run of the plan takes less. The longest of
  ///   - what the core with most to do computes: products by the cycles of the microkernel or the multipliers it has,
  ///     the two loops of the softmax by their initiation intervals, jumps into them, transfers programmed and waited
  ///     for; with it the rendezvous of each broadcast, and what flash waits of its bytes;
  ///   - all bytes through the DDR (and rows of Q, K^T and O, where they cost something), all bytes through the GSM.
  /// It knows no queueing, no masks, no filling of pipelines and nothing of the passes over the rows' maxima.
  double of(const AttentionPlan& plan) const;

 private:
  struct Totals;
  double product_cycles(std::int64_t rows, std::int64_t vectors, std::int64_t k) const;
  double block_cycles(const AttentionPlan& plan, std::int64_t rows, std::int64_t keys) const;
  double interval(const std::string& name, const std::string& loop, std::int64_t vectors = 0) const;
  double widen_cycles(std::int64_t bytes) const;
  double cycles(double seconds) const { return seconds * m_machine.core.clock_ghz * 1e9; }
  Totals of_mt(const AttentionPlan& plan) const;
  Totals of_flash(const AttentionPlan& plan) const;

  const sim::MachineConfig& m_machine;
  double m_transfer = 0;  // cycles of a core: to issue a transfer and to wait for it
  double m_jump = 0;      // into a microkernel, and the loop around it
  double m_products = 0;  // a cycle
  using BlockKey = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  mutable std::map<BlockKey, double> m_blocks;  // by rows, keys, head_dim, weight_columns
  mutable std::map<std::tuple<std::string, std::string, std::int64_t>, double> m_intervals;
};

}  // namespace mtsim::kernels
