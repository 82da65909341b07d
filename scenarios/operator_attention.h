// SPDX-License-Identifier: Apache-2.0
// What `mtsim op attention` and `mtsim explore attention` make of the dimensions they share.
#pragma once

#include "kernels/attention/attention.h"
#include "scenarios/operator.h"

namespace mtsim::scenarios {

/// Dimensions of the attention operator, in its order; scores are scaled by 1 / sqrt(head_dim).
kernels::AttentionShape attention_shape(const Shape& shape, DType dtype, bool causal);

}  // namespace mtsim::scenarios
