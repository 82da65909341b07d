// SPDX-License-Identifier: Apache-2.0
#include "yardsticks.h"

#include <cblas.h>
#include <immintrin.h>

extern "C" void openblas_set_num_threads(int threads);

namespace mtsim::bench {

bool host_has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

void bare_fma_steps(float* registers, int steps) {
  for (int step = 0; step < steps; ++step) {
    for (int row = 0; row < 6; ++row) {
      const float* x = registers + 32 * (24 + row);
      for (int column = 0; column < 4; ++column) {
        const float* w = registers + 32 * (32 + column);
        float* y = registers + 32 * (4 * row + column);
        for (int lane = 0; lane < 32; lane += 8) {
          _mm256_store_ps(
              y + lane, _mm256_fmadd_ps(_mm256_load_ps(x + lane), _mm256_load_ps(w + lane), _mm256_load_ps(y + lane)));
        }
      }
    }
    asm volatile("" ::: "memory");  // each step is real work
  }
}

void openblas_sgemm(int m, int n, int k, const float* a, const float* b, float* c) {
  openblas_set_num_threads(1);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1.0f, a, k, b, n, 1.0f, c, n);
}

}  // namespace mtsim::bench
