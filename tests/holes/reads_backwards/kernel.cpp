// SPDX-License-Identifier: Apache-2.0
// task: ema
// expect: slow
// The task's own kernel from the end to the beginning: the judge has just written the inputs and
// poisoned the output, and what it wrote last is still in the caches.
#include <immintrin.h>

#include "task.h"

extern "C" void launch(const Args& a) {
  const __m256 much = _mm256_set1_ps(0.99999f), little = _mm256_set1_ps(0.00001f);
  int i = N;
  for (; i >= 8; i -= 8) {
    const __m256 p = _mm256_mul_ps(little, _mm256_loadu_ps(a.p + i - 8));
    _mm256_storeu_ps(a.y + i - 8, _mm256_fmadd_ps(much, _mm256_loadu_ps(a.m + i - 8), p));
  }
  for (; i-- > 0;) a.y[i] = 0.99999f * a.m[i] + 0.00001f * a.p[i];
}
