// SPDX-License-Identifier: Apache-2.0
#include "sim/core/decode.h"

// The file is compiled without a vzeroupper in each handler: that costs a third of the loop's speed. Nothing but these
// handlers runs until the loop leaves, and it leaves the registers clean for the SSE code of its caller.
#define MTSIM_HOST_CODE k_host_avx2
#define MTSIM_LEAVE_HOST_CODE __builtin_ia32_vzeroupper()
#include "sim/core/ops.inc"
