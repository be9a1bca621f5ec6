// SPDX-License-Identifier: Apache-2.0
// Blocks of 3 x 4 results, FMA: an honest kernel.
#include <immintrin.h>

#include <cmath>

#include "task.h"

extern "C" void launch(const Args& t) {
  for (int i = 0; i < M; i += 3)
    for (int j = 0; j < N; j += 4) {
      __m256 s[3][4] = {};
      for (int k = 0; k < K; k += 8) {
        __m256 a[3];
        for (int p = 0; p < 3; ++p) a[p] = _mm256_loadu_ps(t.a + (i + p) * K + k);
#pragma GCC unroll 4
        for (int q = 0; q < 4; ++q) {
          const __m256 b = _mm256_loadu_ps(t.b + (j + q) * K + k);
#pragma GCC unroll 3
          for (int p = 0; p < 3; ++p) s[p][q] = _mm256_fmadd_ps(a[p], b, s[p][q]);
        }
      }
      for (int p = 0; p < 3; ++p)
        for (int q = 0; q < 4; ++q) {
          float parts[8], sum = 0;
          _mm256_storeu_ps(parts, s[p][q]);
          for (const float v : parts) sum += v;
          const int at = (i + p) * N + j + q;
          t.c[at] = sum / (1 + std::exp(-t.g[at]));
        }
    }
}
