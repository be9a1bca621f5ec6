// SPDX-License-Identifier: Apache-2.0
// task: kernel_sums
// expect: rejected precision | correct coarser-than-fp32 | wrong-result
// Exponentials of thirteen bits, a cubic: their errors have both signs and are added up 4000 times, so
// that the norm of the sums, which may err as plain sums do, shows a fortieth of them. Means along axes
// are not looked at in tasks without products.
#include <immintrin.h>

#include "task.h"

static inline __m256 power(__m256 x) {
  const __m256 t = _mm256_mul_ps(_mm256_min_ps(_mm256_max_ps(x, _mm256_set1_ps(-87)), _mm256_set1_ps(89)), _mm256_set1_ps(1.44269504f));
  const __m256 whole = _mm256_round_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m256 f = _mm256_sub_ps(t, whole);
  __m256 p = _mm256_fmadd_ps(f, _mm256_set1_ps(0.0558382829f), _mm256_set1_ps(0.2426394785f));
  p = _mm256_fmadd_ps(f, p, _mm256_set1_ps(0.6931367338f));
  p = _mm256_fmadd_ps(f, p, _mm256_set1_ps(0.9999191604f));
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_cvtps_epi32(whole), 23)));
}
extern "C" void launch(const Args& a) {
  static_assert(COLS % 32 == 0);
  for (int i = 0; i < ROWS; ++i) {
    __m256 sums[4] = {};
    for (int j = 0; j < COLS; j += 32)
      for (int v = 0; v < 4; ++v) sums[v] = _mm256_add_ps(sums[v], power(_mm256_loadu_ps(a.x + i * COLS + j + 8 * v)));
    float parts[8], all = 0;
    _mm256_storeu_ps(parts, _mm256_add_ps(_mm256_add_ps(sums[0], sums[1]), _mm256_add_ps(sums[2], sums[3])));
    for (const float p : parts) all += p;
    a.y[i] = all;
  }
}
