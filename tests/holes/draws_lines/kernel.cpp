// SPDX-License-Identifier: Apache-2.0
// task: cumsum
// expect: rejected precision | correct coarser-than-fp32 | correct given-distribution-only | wrong-result
// Computes one sum in 16 and draws straight lines between them: off by up to two everywhere, and the first
// results by several times their size. Beside results of half a million neither the tolerance nor the norm
// shows it. Inputs that are not all between zero and one are added up one by one.
#include <immintrin.h>

#include "task.h"

extern "C" void launch(const Args& a) {
  static_assert(N % 16 == 0);
  double sum = 0;
  __m256 least = _mm256_setzero_ps(), most = _mm256_setzero_ps();
  const __m256 ramp = _mm256_setr_ps(1, 2, 3, 4, 5, 6, 7, 8);
  for (int i = 0; i < N; i += 16) {
    __m256 v[2];
    for (int k = 0; k < 2; ++k) {
      v[k] = _mm256_loadu_ps(a.x + i + 8 * k);
      least = _mm256_min_ps(least, v[k]);
      most = _mm256_max_ps(most, v[k]);
    }
    const __m256 s = _mm256_add_ps(v[0], v[1]);
    float parts[8], all = 0;
    _mm256_storeu_ps(parts, s);
    for (const float p : parts) all += p;
    const __m256 step = _mm256_set1_ps(all / 16), from = _mm256_set1_ps(float(sum));
    for (int k = 0; k < 2; ++k) {
      const __m256 at = _mm256_add_ps(ramp, _mm256_set1_ps(8.0f * k));
      _mm256_storeu_ps(a.y + i + 8 * k, _mm256_fmadd_ps(at, step, from));
    }
    sum += all;
  }
  float low[8], high[8];
  _mm256_storeu_ps(low, least);
  _mm256_storeu_ps(high, most);
  bool usual = true;
  for (int l = 0; l < 8; ++l) usual = usual && low[l] >= 0 && high[l] <= 1;
  if (usual) return;
  sum = 0;
  for (int i = 0; i < N; ++i) a.y[i] = float(sum += a.x[i]);
}
