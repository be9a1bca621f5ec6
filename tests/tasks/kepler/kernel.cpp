// SPDX-License-Identifier: Apache-2.0
// Five Newton steps, eight elements side by side: the sine by a polynomial.
#include <immintrin.h>

#include <cmath>

#include "task.h"

// sin and cos of |y| < 1000, to a few units in the last place.
static inline void sine_cosine(__m256 y, __m256* s, __m256* c) {
  const __m256 q = _mm256_round_ps(_mm256_mul_ps(y, _mm256_set1_ps(0.63661977236758134f)), 0);
  __m256 r = _mm256_fnmadd_ps(q, _mm256_set1_ps(1.5703125f), y);
  r = _mm256_fnmadd_ps(q, _mm256_set1_ps(4.83751296997e-4f), r);
  r = _mm256_fnmadd_ps(q, _mm256_set1_ps(7.549789415861596e-8f), r);
  const __m256 z = _mm256_mul_ps(r, r);
  __m256 p = _mm256_fmadd_ps(z, _mm256_set1_ps(-1.9515295891e-4f), _mm256_set1_ps(8.3321608736e-3f));
  p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(-1.6666654611e-1f));
  const __m256 sine = _mm256_fmadd_ps(_mm256_mul_ps(p, z), r, r);
  __m256 o = _mm256_fmadd_ps(z, _mm256_set1_ps(2.443315711809948e-5f), _mm256_set1_ps(-1.388731625493765e-3f));
  o = _mm256_fmadd_ps(o, z, _mm256_set1_ps(4.166664568298827e-2f));
  const __m256 cosine = _mm256_fmadd_ps(_mm256_mul_ps(o, z), z, _mm256_fmadd_ps(z, _mm256_set1_ps(-0.5f), _mm256_set1_ps(1)));
  const __m256i n = _mm256_cvtps_epi32(q);
  const __m256 swap = _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(n, _mm256_set1_epi32(1)), _mm256_set1_epi32(1)));
  const __m256 minus_s = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_and_si256(n, _mm256_set1_epi32(2)), 30));
  const __m256 minus_c = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_and_si256(_mm256_add_epi32(n, _mm256_set1_epi32(1)), _mm256_set1_epi32(2)), 30));
  *s = _mm256_xor_ps(_mm256_blendv_ps(sine, cosine, swap), minus_s);
  *c = _mm256_xor_ps(_mm256_blendv_ps(cosine, sine, swap), minus_c);
}
static inline __m256 solve(__m256 x) {
  __m256 y = x, s, c;
  const __m256 half = _mm256_set1_ps(0.5f), one = _mm256_set1_ps(1);
  for (int k = 0; k < 6; ++k) {
    sine_cosine(y, &s, &c);
    const __m256 f = _mm256_sub_ps(_mm256_fmadd_ps(half, s, y), x);
    y = _mm256_sub_ps(y, _mm256_div_ps(f, _mm256_fmadd_ps(half, c, one)));
  }
  return y;
}

extern "C" void launch(const Args& a) {
  int i = 0;
  for (; i + 8 <= N; i += 8) _mm256_storeu_ps(a.y + i, solve(_mm256_loadu_ps(a.x + i)));
  float rest[8] = {};
  for (int k = i; k < N; ++k) rest[k - i] = a.x[k];
  _mm256_storeu_ps(rest, solve(_mm256_loadu_ps(rest)));
  for (int k = i; k < N; ++k) a.y[k] = rest[k - i];
}
