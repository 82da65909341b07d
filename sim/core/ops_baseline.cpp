// SPDX-License-Identifier: Apache-2.0
#include "sim/core/decode.h"

#define MTSIM_HOST_CODE k_host_baseline
#define MTSIM_LEAVE_HOST_CODE static_cast<void>(0)
#include "sim/core/ops.inc"
