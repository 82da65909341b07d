// SPDX-License-Identifier: Apache-2.0
#include "sim/core/decode.h"

#define MTSIM_LEAVE_HOST_CODE static_cast<void>(0)

namespace mtsim::sim {
namespace {

#include "sim/core/handlers_scalar.inc"

#include "sim/core/handlers_data.inc"

#include "sim/core/loop.inc"

}  // namespace

const Loop k_loop_baseline = &loop;

}  // namespace mtsim::sim
