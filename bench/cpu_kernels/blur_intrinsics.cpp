// SPDX-License-Identifier: Apache-2.0
// task: blur
// truth: vectorised=yes threads=all
// Three unaligned loads per vector; the two ends and each piece's tail by scalars.
#include <omp.h>
#if defined(__AVX2__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "task.h"

static inline float one(const float* x, int i) {
  const float left = i > 0 ? x[i - 1] : 0, right = i + 1 < N ? x[i + 1] : 0;
  return (left + 2 * x[i] + right) * 0.25f;
}

extern "C" void launch(const Args& args) {
  const float* x = args.x;
  float* y = args.y;
#pragma omp parallel
  {
    const long t = omp_get_thread_num(), of = omp_get_num_threads();
    int i = int(long(N) * t / of);
    const int end = int(long(N) * (t + 1) / of);
    if (i == 0 && i < end) {
      y[0] = one(x, 0);
      i = 1;
    }
#if defined(__AVX512F__)
    const __m512 half = _mm512_set1_ps(0.5f), quarter = _mm512_set1_ps(0.25f);
    for (; i + 17 <= end; i += 16) {
      const __m512 sides = _mm512_add_ps(_mm512_loadu_ps(x + i - 1), _mm512_loadu_ps(x + i + 1));
      const __m512 mid = _mm512_mul_ps(_mm512_loadu_ps(x + i), half);
      _mm512_storeu_ps(y + i, _mm512_fmadd_ps(sides, quarter, mid));
    }
#elif defined(__AVX2__)
    const __m256 half = _mm256_set1_ps(0.5f), quarter = _mm256_set1_ps(0.25f);
    for (; i + 9 <= end; i += 8) {
      const __m256 sides = _mm256_add_ps(_mm256_loadu_ps(x + i - 1), _mm256_loadu_ps(x + i + 1));
      _mm256_storeu_ps(y + i, _mm256_add_ps(_mm256_mul_ps(sides, quarter),
                                            _mm256_mul_ps(_mm256_loadu_ps(x + i), half)));
    }
#endif
    for (; i < end; ++i) y[i] = one(x, i);
  }
}
