// SPDX-License-Identifier: Apache-2.0
// What the interpreter's speed is compared with, in the same run on the same host.
#pragma once

#include <cstddef>

namespace mtsim::bench {

bool host_has_avx2();

/// The arithmetic of one 6x128 k-step and nothing else: 24 fused multiply-adds on 128-byte vectors that all lie in
/// memory, as the simulated register file does. `registers`: 64 x 128 bytes, 64-byte aligned. 768 MAC per step.
void bare_fma_steps(float* registers, int steps);

/// C[m,n] += A[m,k] * B[k,n] by OpenBLAS on one thread.
void openblas_sgemm(int m, int n, int k, const float* a, const float* b, float* c);

}  // namespace mtsim::bench
