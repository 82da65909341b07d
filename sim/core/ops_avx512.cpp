// SPDX-License-Identifier: Apache-2.0
#include "sim/core/decode.h"

#define MTSIM_HANDLER_TABLE k_handlers_avx512
#include "sim/core/ops.inc"
