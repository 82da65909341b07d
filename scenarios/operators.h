// SPDX-License-Identifier: Apache-2.0
// The operators there are: one function and one operator_*.cpp each. operator.cpp lists them.
#pragma once

#include "scenarios/operator.h"

namespace mtsim::scenarios {

const Operator& add_operator();
const Operator& attention_operator();
const Operator& bias_operator();
const Operator& convert_operator();
const Operator& gather_operator();
const Operator& gemm_operator();
const Operator& linear_rope_operator();
const Operator& rmsnorm_operator();
const Operator& rope_operator();
const Operator& silu_mul_operator();
const Operator& softmax_operator();
const Operator& transpose_operator();

}  // namespace mtsim::scenarios
