// SPDX-License-Identifier: Apache-2.0
// Arrays in SM as the naive operators use them: FP32 values. Where the operand is FP16 its halves arrive in the second
// half of the array and are widened from the first element on, and narrowed to its beginning: in place, since the one
// that reads is never behind the one that writes.
// Every transfer is waited for at once. Internal to kernels/naive.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/dtype.h"
#include "sim/cluster.h"
#include "sim/config/machine.h"
#include "sim/dsp.h"

namespace mtsim::kernels {

struct ScalarKernels {  // entries of rows_naive.s
  explicit ScalarKernels(sim::Cluster& cluster);
  sim::Kernel fill, widen, narrow;
};

/// Throws KernelError when SM has fewer than `bytes`.
void require_sm(std::string_view op, std::int64_t bytes, const sim::MachineConfig& machine);

/// [rows][columns] in SM, rows 8-byte aligned in both types.
class ScalarTile {
 public:
  ScalarTile(sim::Dsp& dsp, const ScalarKernels& kernels, DType dtype, std::int64_t rows, std::int64_t columns);
  /// What the constructor takes of SM.
  static std::int64_t sm_bytes(std::int64_t rows, std::int64_t columns);

  /// From or to rows of `stride` elements in DDR.
  void load(sim::Pointer ddr, std::int64_t rows, std::int64_t columns, std::int64_t stride);
  /// Of FP16 the values are gone then.
  void store(sim::Pointer ddr, std::int64_t rows, std::int64_t columns, std::int64_t stride);
  void clear(std::int64_t rows);  // to zeros

  sim::Pointer values() const { return m_values; }  // FP32
  std::int64_t pitch() const { return 4 * m_columns; }

 private:
  sim::Rows rows_of(std::int64_t rows, std::int64_t columns, std::int64_t stride) const;

  sim::Dsp& m_dsp;
  const ScalarKernels& m_kernels;
  DType m_dtype;
  std::int64_t m_columns;           // a multiple of 4, with the pad
  sim::Pointer m_values, m_halves;  // one array; halves where they arrive
};

}  // namespace mtsim::kernels
