// SPDX-License-Identifier: Apache-2.0
// Y[i] = T[ids[i]]: rows of a table, the embedding lookup. The ids are known to the host, which starts the operator
// with them; rows move from DDR to DDR and no core touches a value.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/dtype.h"
#include "sim/cluster.h"
#include "sim/dsp.h"

namespace mtsim::kernels {

struct GatherOperands {  // row-major, in cluster DDR
  sim::Pointer table;    // [vocabulary, columns]
  sim::Pointer y;        // [ids.size(), columns], written; no part of the table
  std::vector<std::int32_t> ids;
};

/// `row_bytes`: of a row of the table, which has `vocabulary` rows. Throws KernelError for an id that is no row of it:
/// which, where.
sim::DspProgram gather(sim::Cluster& cluster, std::int64_t row_bytes, std::int64_t vocabulary,
                       const GatherOperands& operands);

}  // namespace mtsim::kernels
