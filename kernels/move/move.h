// SPDX-License-Identifier: Apache-2.0
// Data that only moves: 2-D transfers from DDR to DDR (or GSM), dealt to the cores. No core touches a value.
#pragma once

#include <vector>

#include "sim/dsp.h"

namespace mtsim::kernels {

struct RowsMove {
  sim::Pointer from;
  sim::Rows from_rows;
  sim::Pointer to;
  sim::Rows to_rows;  // as many bytes; no two moves write the same ones
};

/// The DSP program, for any number of cores: each takes as many neighbouring moves.
sim::DspProgram move_rows(std::vector<RowsMove> moves);

}  // namespace mtsim::kernels
