// SPDX-License-Identifier: Apache-2.0
// The file is compiled without automatic vzeroupper: nothing but the loop runs until it leaves, and it leaves the
// registers clean for the SSE code of its caller.
#include "sim/core/decode.h"

#define MTSIM_LEAVE_HOST_CODE __builtin_ia32_vzeroupper()

namespace mtsim::sim {
namespace {

#include "sim/core/handlers_scalar.inc"

#include "sim/core/handlers_data.inc"

#include "sim/core/loop.inc"

}  // namespace

const Loop k_loop_avx2 = &loop;

}  // namespace mtsim::sim
