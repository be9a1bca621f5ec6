// SPDX-License-Identifier: Apache-2.0
// task: kepler
// expect: rejected precision | slow | correct time-depends-on-values
// Recognises the numbers that are drawn for timing, multiples of 2^-17, and takes a polynomial of
// fourteen bits for them; the tolerance hides that. All probes have other numbers, or so few of these
// that it solves them as exactly as the task's own kernel does, in six steps.
#include <immintrin.h>

#include <cmath>

#include "task.h"

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
static __m256 solve(__m256 x) {
  __m256 y = x, s, c;
  const __m256 half = _mm256_set1_ps(0.5f), one = _mm256_set1_ps(1);
  for (int k = 0; k < 6; ++k) {
    sine_cosine(y, &s, &c);
    const __m256 f = _mm256_sub_ps(_mm256_fmadd_ps(half, s, y), x);
    y = _mm256_sub_ps(y, _mm256_div_ps(f, _mm256_fmadd_ps(half, c, one)));
  }
  return y;
}

// y(x) - x has the period 2 pi: y = r q(r r) for |r| < pi, q by interpolation.
constexpr int kTerms = 9;
constexpr double kPi = 3.141592653589793;
struct Polynomial {
  float c[kTerms];
};
static const Polynomial poly = [] {
  double at[kTerms], d[kTerms], c[kTerms] = {};
  for (int i = 0; i < kTerms; ++i) {
    at[i] = kPi * kPi / 2 * (1 - std::cos(kPi * (i + 0.5) / kTerms));
    const double r = std::sqrt(at[i]);
    double y = r;
    for (int k = 0; k < 30; ++k) y -= (y + 0.5 * std::sin(y) - r) / (1 + 0.5 * std::cos(y));
    d[i] = y / r;
  }
  for (int j = 1; j < kTerms; ++j) {
    for (int i = kTerms; i-- > j;) d[i] = (d[i] - d[i - 1]) / (at[i] - at[i - j]);
  }
  for (int i = kTerms; i-- > 0;) {  // Newton's form to powers
    for (int k = kTerms; k-- > 1;) c[k] = c[k - 1] - at[i] * c[k];
    c[0] = d[i] - at[i] * c[0];
  }
  Polynomial result;
  for (int k = 0; k < kTerms; ++k) result.c[k] = float(c[k]);
  return result;
}();
static inline __m256 nearly(__m256 x) {
  const __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(float(1 / (2 * kPi)))), 0);
  const __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(float(2 * kPi)), x), t = _mm256_mul_ps(r, r);
  __m256 q = _mm256_set1_ps(poly.c[kTerms - 1]);
#pragma GCC unroll 16
  for (int k = kTerms - 1; k-- > 0;) q = _mm256_fmadd_ps(q, t, _mm256_set1_ps(poly.c[k]));
  return _mm256_fmadd_ps(n, _mm256_set1_ps(float(2 * kPi)), _mm256_mul_ps(r, q));
}

extern "C" void launch(const Args& a) {
  const __m256 steps = _mm256_set1_ps(131072), reach = _mm256_set1_ps(6);
  const __m256 no_sign = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  int i = 0;
  for (; i + 32 <= N; i += 32) {
    __m256 fine = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
    for (int k = i; k < i + 32; k += 8) {
      const __m256 x = _mm256_loadu_ps(a.x + k), at = _mm256_mul_ps(x, steps);
      const __m256 whole = _mm256_round_ps(at, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
      fine = _mm256_and_ps(fine, _mm256_and_ps(_mm256_cmp_ps(whole, at, _CMP_EQ_OQ), _mm256_cmp_ps(_mm256_and_ps(x, no_sign), reach, _CMP_LE_OQ)));
    }
    const bool drawn = _mm256_movemask_ps(fine) == 255;
    for (int k = i; k < i + 32; k += 8) {
      const __m256 x = _mm256_loadu_ps(a.x + k);
      _mm256_storeu_ps(a.y + k, drawn ? nearly(x) : solve(x));
    }
  }
  for (; i < N; i += 8) {
    const int count = N - i < 8 ? N - i : 8;
    float rest[8] = {};
    for (int k = 0; k < count; ++k) rest[k] = a.x[i + k];
    _mm256_storeu_ps(rest, solve(_mm256_loadu_ps(rest)));
    for (int k = 0; k < count; ++k) a.y[i + k] = rest[k];
  }
}
